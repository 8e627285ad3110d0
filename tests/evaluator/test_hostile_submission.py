"""A workspace full of traps, from the collector to the report: named errors, bounded memory, neighbours unharmed."""

from __future__ import annotations

import gzip
import os
import pickle
import resource
import shutil
import struct
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
import pytest

from evaluator.isolation import Budget
from evaluator.score import score
from evaluator.submission import collect

GIGABYTE = 1 << 30


def claim_giant(path: Path) -> None:
    header = nibabel.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4)).header
    header["dim"][1:4] = 30_000
    path.write_bytes(gzip.compress(header.binaryblock + b"\0" * 4 + b"\0" * 100))


def bomb(path: Path) -> None:
    honest = nibabel.load(path)
    raw = gzip.decompress(path.read_bytes())
    assert honest.shape
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(raw)
        for _ in range(300):
            file.write(b"\0" * (1 << 20))


def corrupt(path: Path) -> None:
    packed = bytearray(path.read_bytes())
    packed[len(packed) // 2 :] = bytes(value ^ 0xFF for value in packed[len(packed) // 2 :])
    path.write_bytes(packed)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def sparse_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def pickled(path: Path) -> None:
    class Trap:
        def __reduce__(self):
            return (os.system, (f"touch {path.with_name('pwned')}",))

    np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)


def bare_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"a": 1}))


def huge_header(path: Path) -> None:
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n" + b"\0" * 64)


def replaced_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        path.unlink()
        make(path)

    return plant


def hard_link(path: Path) -> None:
    twin = path.with_name("twin")
    twin.write_bytes(b"x" * 100)
    path.hardlink_to(twin)


ANYWHERE = {
    "symlink": (replaced_by(lambda path: path.symlink_to("/etc/passwd")), "link"),
    "dangling": (replaced_by(lambda path: path.symlink_to("/nowhere")), "link"),
    "hard_link": (replaced_by(hard_link), "hard_link"),
    "fifo": (replaced_by(os.mkfifo), "not_regular"),
    "sparse": (replaced_by(sparse_terabyte), "too_large"),
    "folder": (replaced_by(Path.mkdir), "not_regular"),
    "empty": (lambda path: path.write_bytes(b""), "empty"),
}
TRAPS = (
    [("segmentation", name, *trap) for name, trap in ANYWHERE.items()]
    + [
        ("segmentation", "corrupt", corrupt, "corrupt"),
        ("segmentation", "truncated", truncate, "truncated"),
        ("segmentation", "giant", claim_giant, "too_large"),
        ("segmentation", "bomb", bomb, "trailing_data"),
        ("segmentation", "text", lambda path: path.write_text("not NIfTI at all" * 40), "bad_format"),
        ("enhancement", "pickled", pickled, "pickled"),
        ("enhancement", "bare_pickle", bare_pickle, "bad_format"),
        ("enhancement", "huge_header", huge_header, "too_large"),
        ("detection", "nan", lambda path: path.write_text('{"boxes": [{"class": "cell", "x1": NaN}]}'), "bad_json"),
        ("detection", "deep", lambda path: path.write_text("[" * 100_000), "too_deep"),
        ("detection", "twice", lambda path: path.write_text('{"boxes": [], "boxes": []}'), "duplicate_key"),
        ("detection", "million", lambda path: path.write_text("[" + "1," * 1_000_000 + "1]"), "too_large"),
        ("vqa", "utf16", lambda path: path.write_bytes('{"predicted_answer": "no"}'.encode("utf-16")), "not_utf8"),
        ("vqa", "surrogate", lambda path: path.write_text('{"predicted_answer": "\\ud800"}'), "lone_surrogate"),
        ("report", "binary", lambda path: path.write_bytes(os.urandom(4096)), "not_utf8"),
    ]
)  # fmt: skip


@pytest.mark.parametrize(("track", "name", "plant", "code"), TRAPS, ids=[f"{t[0]}-{t[1]}" for t in TRAPS])
def test_a_trap_is_one_named_case_error(stage, track, name, plant, code, tmp_path) -> None:
    staged = stage(track)
    outputs = tmp_path / "workspace" / "outputs"
    shutil.copytree(staged.submission, outputs)
    plant(outputs / "c2" / staged.task.output.filenames[0])
    collect(tmp_path / "workspace", tmp_path / "collected", staged.task, staged.cases)
    started = time.monotonic()
    report = staged.score(2, tmp_path / "collected")
    assert time.monotonic() - started < 20
    assert [case.status for case in report.cases] == ["scored", "invalid", "scored"]
    assert report.cases[1].error.code == code
    assert report.cases[0].score == report.cases[2].score == 1.0
    assert not report.format_valid
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(("plant", "code"), ANYWHERE.values(), ids=ANYWHERE)
def test_a_folder_that_nobody_collected_is_read_as_carefully(stage, plant, code) -> None:
    staged = stage("report")
    plant(staged.output("c2"))
    report = staged.score(2)
    assert report.cases[1].error.code == code
    assert [case.score for case in report.cases] == [1.0, 0.0, 1.0]


def test_a_crowd_and_a_fifo_named_report_json_change_nothing(stage, tmp_path) -> None:
    staged = stage("report")
    outputs = tmp_path / "workspace" / "outputs"
    shutil.copytree(staged.submission, outputs)
    os.mkfifo(outputs / "report.json")
    os.mkfifo(outputs / "manifest.json")
    folder = os.open(outputs, os.O_DIRECTORY)
    for number in range(20_000):
        os.mknod(f"f{number}", dir_fd=folder)
    os.close(folder)
    collect(tmp_path / "workspace", tmp_path / "collected", staged.task, staged.cases)
    assert staged.score(1, tmp_path / "collected").task_score == 1.0
    assert staged.score(1, outputs).task_score == 1.0


def test_memory_of_the_evaluator_stays_below_two_gigabytes(stage, tmp_path) -> None:
    staged = stage("segmentation")
    claim_giant(staged.output("c1"))
    bomb(staged.output("c2"))
    command = [sys.executable, "-m", "evaluator", "score", "--task", "kidney-seg-task"]
    places = ["--submission", staged.submission, "--references", staged.private, "--public", staged.public]
    kidney = (staged.root / "manifest.json").read_text().replace(staged.task.id, "kidney-seg-task")
    (staged.root / "manifest.json").write_text(kidney)
    subprocess.run([*command, *places, "--out", tmp_path / "report.json"], check=True, capture_output=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < 2 * GIGABYTE


def test_a_case_past_its_budget_scores_zero_and_the_others_stay(stage, monkeypatch) -> None:
    staged = stage("segmentation")
    monkeypatch.setattr("evaluator.score._cpu_seconds", lambda *_: 1)
    monkeypatch.setattr("evaluator.tracks.segmentation.surface_per_label", _spin_on_full_masks)
    image = nibabel.load(staged.output("c1"))
    full = np.ones(image.shape, np.uint8)
    nibabel.save(nibabel.Nifti1Image(full, image.affine), staged.output("c1"))
    report = staged.score(2)
    assert (report.cases[0].status, report.cases[0].error.code) == ("limit", "evaluation_limit")
    assert [case.score for case in report.cases] == [0.0, 1.0, 1.0]
    assert report.cases[0].metrics["dice_organ"] == 0.0


def _spin_on_full_masks(reference, prediction, labels, *_):
    while prediction.all():
        pass
    from evaluator.metrics.segmentation import Surface

    return dict.fromkeys(labels, Surface(1.0, 0.0))


def test_a_budget_is_shared_by_many_cases() -> None:
    from evaluator.score import CPU_SECONDS_FOR_ALL, _cpu_seconds

    assert _cpu_seconds(6, 0) == 60
    assert _cpu_seconds(100, 1_000_000) * 100 <= CPU_SECONDS_FOR_ALL
    assert _cpu_seconds(5000, 0) >= 1


def test_a_large_volume_has_time_to_be_measured_however_many_there_are() -> None:
    from evaluator.score import _cpu_seconds

    assert _cpu_seconds(1000, 512 * 512 * 300) >= 15


def test_an_error_of_our_own_stays_with_its_case(stage, monkeypatch) -> None:
    staged = stage("report")

    def broken(prediction: str, reference: str):
        raise ZeroDivisionError("in a metric")

    original = score.__globals__["track_of"]

    def track_of(task):
        track = original(task)
        check = track.check

        def spoiled(case):
            if case.id == "c2":
                broken("", "")
            return check(case)

        track.check = spoiled
        return track

    monkeypatch.setattr("evaluator.score.track_of", track_of)
    report = staged.score(2)
    assert report.cases[1].error.code == "evaluation_error"
    assert "ZeroDivisionError" in report.cases[1].error.message
    assert [case.score for case in report.cases] == [1.0, 0.0, 1.0]
    assert Budget().memory_mb < 2048


def test_images_full_of_boxes_fit_into_memory(stage) -> None:
    """The boxes of all images meet in the parent, which has no child to die in its place."""
    import tracemalloc

    from evaluator.report import CaseResult
    from evaluator.tracks.base import Finished
    from evaluator.tracks.detection import Box, DetectionTrack, _packed, _table

    track = DetectionTrack(stage("detection").task)
    full = [Box(0, (n / 100, 0.0, 90.0, 90.0), n / 1000) for n in range(1000)]
    true = [Box(0, (0.0, 0.0, 500.0 + n, 500.0), 1.0) for n in range(20)]
    evidence = {"expected": _packed(_table(true)), "found": _packed(_table(full))}
    cases = [
        Finished(CaseResult(case_id=f"c{n}", status="scored", score=0.0, metrics={"f1_iou50": 0.0}), evidence)
        for n in range(300)
    ]
    tracemalloc.start()
    track.aggregate(cases)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 256 << 20


@pytest.mark.parametrize("written", ["NFD", "NFC", "both"])
def test_a_case_folder_is_found_under_its_exact_name_alone(stage, written: str, tmp_path) -> None:
    staged = stage("report")
    composed, decomposed = (unicodedata.normalize(form, "fäll é 2") for form in ("NFC", "NFD"))
    cases = tuple(
        case.model_copy(update={"id": composed}) if case.id == "c2" else case
        for case in staged.manifest.cases
    )
    (staged.private / "c2").rename(staged.private / composed)
    outputs = tmp_path / "workspace" / "outputs"
    shutil.copytree(staged.submission, outputs)
    (outputs / "c2").rename(outputs / (composed if written == "NFC" else decomposed))
    if written == "both":
        shutil.copytree(outputs / decomposed, outputs / composed)
        (outputs / decomposed / "report.txt").write_text("The wrong report, of which nobody may take notice.")
    manifest = staged.manifest.model_copy(update={"cases": cases})
    collect(tmp_path / "workspace", tmp_path / "collected", staged.task, manifest.case_ids())
    report = score(staged.task, tmp_path / "collected", staged.private, staged.public, manifest, jobs=1)
    assert report.cases[1].status == ("missing" if written == "NFD" else "scored")
    assert report.cases[1].score == float(written != "NFD")
