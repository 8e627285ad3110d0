"""Cases of real runs side by side: every kind of artifact is drawn, and what a hostile one holds stays a sentence."""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from evaluator.tracks.detection import Box
from hf_datasets.records import load_record
from space.site import Site
from space.snapshot import RunDetail
from space.staged import staged_for
from space.viewer import boxes, canvas, images, masks
from space.viewer.cache import ByteCache
from space.viewer.case import Handed, Staged, grid_shape, load_case
from space.viewer.draw import draw, focus
from space.viewer.look import AGREEMENT, FILL, THREE, Look
from tasks.manifest import load_manifest
from tasks.registry import load_task
from tasks.schema import Redistribution, Release

TASKS = (
    "kidney-seg-task", "ldct-denoising-task", "vqa-rad-task", "iu-xray-report-task", "bccd-det-task",
    "skin-lesion-cls-task", "synthrad2025-mrct-task",
)  # fmt: skip
HUGE_ARRAY = b"\x93NUMPY\x01\x00F\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999, 99999), }"
EVIL = "<script>window.hacked=1</script>"


@pytest.fixture(params=TASKS)
def task(request):
    return load_task(request.param)


@pytest.fixture
def staged(drawn_results, staged_phantom):
    def of(task) -> Staged:
        folder = staged_phantom(task.id)
        return Staged(folder, load_manifest(folder))

    return of


@pytest.fixture
def handed(drawn_results):
    def of(task) -> list[Handed]:
        return [
            Handed(agent, drawn_results / task.id / "lite" / agent / "r00" / "submission", (("score", "1"),))
            for agent in ("cirrus", "stratus")
        ]

    return of


def test_every_kind_is_drawn_beside_its_reference(task, staged, handed) -> None:
    data = staged(task)
    first, second, third = data.manifest.case_ids()[:3]
    view = load_case(task, first, handed(task), data)
    html = draw(view, Look(place=focus(view)))
    assert [side.fault for side in view.sides] == ["", "", ""]
    for name in ("cirrus", "stratus", "reference"):
        assert name in html
    spoiled = {case: load_case(task, case, handed(task), data) for case in (second, third)}
    for case, view in spoiled.items():
        html = draw(view, Look(place=focus(view)))
        assert view.sides[0].output is not None, case
        assert view.sides[1].fault, case
        assert "<script" not in html


def test_without_staged_data_outputs_stand_alone(task, handed, staged) -> None:
    view = load_case(task, staged(task).manifest.case_ids()[0], handed(task), None)
    html = draw(view, Look(place=focus(view)))
    assert view.given is None
    assert view.reference is None
    assert all(side.output is not None for side in view.sides)
    assert "cirrus" in html


def test_a_view_may_be_asked_for_in_every_way(staged, handed) -> None:
    task = load_task("kidney-seg-task")
    data = staged(task)
    view = load_case(task, data.manifest.case_ids()[0], handed(task), data)
    assert grid_shape(view) == view.given.data.shape
    look = Look(place=focus(view))
    one = draw(view, look)
    assert one.count("<img") == 3
    assert draw(view, dataclasses.replace(look, view=THREE)).count("<img") == 9
    assert draw(view, dataclasses.replace(look, layer=FILL)) != one
    assert draw(view, dataclasses.replace(look, opacity=0.1)) != one
    assert draw(view, dataclasses.replace(look, window="bone")) != one
    only = draw(view, dataclasses.replace(look, targets=("lesion",)))
    assert only != one
    assert "contours of lesion by" in only
    agreed = draw(view, dataclasses.replace(look, layer=AGREEMENT))
    assert "agreement of cirrus with reference" in agreed
    assert "not in reference (false)" in agreed
    far = draw(view, dataclasses.replace(look, place=(10**6, -4, 10**6)))
    assert far.count("<img") == 3


def test_swipe_and_difference_of_images(staged, handed) -> None:
    task = load_task("synthrad2025-mrct-task")
    data = staged(task)
    view = load_case(task, data.manifest.case_ids()[0], handed(task), data)
    assert images.names(view) == ["input", "cirrus", "stratus", "reference"]
    html = draw(view, Look(place=focus(view), left="cirrus", right="reference"))
    assert "Bar between cirrus and reference" in html
    assert "stratus minus reference" in html
    for plane in canvas.PLANES:
        assert f"{plane} slice of cirrus" in draw(view, Look(view=plane, place=focus(view)))


def test_the_threshold_leaves_weak_boxes_out_and_counts_anew(staged, handed) -> None:
    task = load_task("bccd-det-task")
    data = staged(task)
    view = load_case(task, data.manifest.case_ids()[0], handed(task), data)
    everything = draw(view, Look())
    strict = draw(view, Look(threshold=0.9))
    assert "0.21</text>" in everything
    assert "0.21</text>" not in strict
    assert everything.count("<rect") > strict.count("<rect")
    assert "missed (dashed)" in draw(view, Look(layer=AGREEMENT))


def test_reports_show_words_and_findings(staged, handed) -> None:
    task = load_task("iu-xray-report-task")
    data = staged(task)
    html = draw(load_case(task, data.manifest.case_ids()[0], handed(task), data), Look())
    assert "<ins>" in html
    assert "% of words shared with reference" in html
    assert "Observations that each text affirms" in html


def test_matching_is_greedy_by_score_within_a_class() -> None:
    truth = [Box(0, (0, 0, 10, 10), 1.0), Box(1, (20, 20, 30, 30), 1.0)]
    found = [
        Box(0, (0, 0, 10, 9), 0.4),
        Box(0, (0, 0, 10, 10), 0.9),
        Box(0, (20, 20, 30, 30), 0.8),
        Box(1, (20, 20, 30, 26), 0.1),
    ]
    matched = boxes.match(found, truth)
    assert matched.hits == {1, 3}
    assert matched.false == {0, 2}
    assert matched.missed == frozenset()
    assert matched.f1 == pytest.approx(4 / 6)
    assert boxes.match([], []).f1 == 1.0


# --- hostile submissions ---


@pytest.fixture
def spoiled(tmp_path, staged):
    """A submission of one case whose expected file holds what the test says."""

    def make(task_id: str, content: bytes):
        task = load_task(task_id)
        data = staged(task)
        case = data.manifest.case_ids()[0]
        for name in task.output.filenames:
            path = tmp_path / "submission" / case / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return load_case(task, case, [Handed("bad", tmp_path / "submission")], data)

    return make


@pytest.mark.parametrize(
    ("task_id", "content"),
    [
        ("kidney-seg-task", gzip.compress(bytes(1 << 20))),
        ("ldct-denoising-task", HUGE_ARRAY),
        ("bccd-det-task", b"[" * 100_000),
        ("bccd-det-task", json.dumps({"boxes": [{"class": EVIL, "x1": 0, "y1": 0, "x2": 1, "y2": 1}]}).encode()),
        ("vqa-rad-task", json.dumps({"predicted_answer": {EVIL: 1}}).encode()),
        ("iu-xray-report-task", b"\xff\xfe\x00"),
    ],
)  # fmt: skip
def test_a_hostile_file_is_a_sentence(spoiled, task_id, content) -> None:
    view = spoiled(task_id, content)
    assert view.sides[0].output is None
    assert view.sides[0].fault
    html = draw(view, Look())
    assert "amb-bad" in html
    assert "<script" not in html


def test_an_answer_of_markup_is_shown_as_text(spoiled) -> None:
    view = spoiled("vqa-rad-task", json.dumps({"predicted_answer": EVIL}).encode())
    html = draw(view, Look())
    assert "<script" not in html
    assert "window.hacked" in html


def test_links_out_of_the_submission_are_not_followed(tmp_path, staged, handed) -> None:
    task = load_task("iu-xray-report-task")
    data = staged(task)
    case = data.manifest.case_ids()[0]
    (tmp_path / "s" / case).mkdir(parents=True)
    (tmp_path / "s" / case / "report.txt").symlink_to(data.private / case / "report.txt")
    side = load_case(task, case, [Handed("bad", tmp_path / "s")], data).sides[0]
    assert side.output is None
    assert "link" in side.fault


def test_a_grid_too_large_is_not_read(monkeypatch, staged, handed) -> None:
    task = load_task("kidney-seg-task")
    data = staged(task)
    monkeypatch.setattr("space.viewer.case.MAX_VOXELS", 1000)
    view = load_case(task, data.manifest.case_ids()[-1], handed(task), data)
    assert view.given is None
    assert "voxels, at most 1,000 are shown live" in view.note
    assert all(side.fault for side in view.sides)


def test_the_cache_keeps_what_fits_and_the_newest() -> None:
    cache, made = ByteCache(100), []

    def make(size: int):
        made.append(size)
        return size

    for size in (60, 50, 60):
        cache.get(size, lambda size=size: make(size), lambda value: value)
    assert made == [60, 50, 60]
    cache.get("huge", lambda: make(1000), lambda value: value)
    assert cache.bytes == 1000


# --- what may be shown ---


def record_of(drawn_results: Path, task_id: str):
    return load_record(drawn_results / task_id / "lite" / "cirrus" / "r00" / "record.json")


def test_staged_data_are_those_of_the_run_or_none(drawn_results, staged_phantom, tmp_path) -> None:
    task = load_task("iu-xray-report-task")
    root = staged_phantom(task.id).parents[1]
    record = record_of(drawn_results, task.id)
    assert staged_for(root, task, record)[0] is not None
    assert staged_for(None, task, record)[0] is None
    assert "No staged data" in staged_for(tmp_path, task, record)[1]
    others = record.model_copy(update={"manifest_sha256": "0" * 64})
    assert "others than those the run was made on" in staged_for(root, task, others)[1]


def test_real_data_under_terms_are_not_shown(drawn_results, staged_phantom, tmp_path) -> None:
    task = load_task("iu-xray-report-task")
    assert task.source.redistribution is Redistribution.NONE
    target = tmp_path / "lite" / task.id
    shutil.copytree(staged_phantom(task.id), target)
    manifest = load_manifest(target)
    (target / "manifest.json").chmod(0o644)
    (target / "manifest.json").write_text(
        manifest.model_copy(update={"release": Release.LITE}).model_dump_json()
    )
    record = record_of(drawn_results, task.id).model_copy(update={"release": Release.LITE})
    staged, why = staged_for(tmp_path, task, record)
    assert staged is None
    assert "redistribution: none" in why


def test_a_run_that_lies_elsewhere_shows_nothing_of_the_machine(drawn_results, tmp_path) -> None:
    """A submission folder that is a link is not opened."""
    from space.scene import set_scene

    source = drawn_results / "vqa-rad-task" / "lite" / "cirrus" / "r00"
    shutil.copytree(source, tmp_path / "run", ignore=shutil.ignore_patterns("submission"))
    (tmp_path / "run" / "submission").symlink_to(source / "submission")
    run = RunDetail(load_record(source / "record.json"), tmp_path / "run")
    scene = set_scene(Site(lambda: None), load_task("vqa-rad-task"), [run], None)  # type: ignore[arg-type]
    assert scene.view.sides[0].output is None
    assert "copy of what was handed in" in scene.view.sides[0].fault


def test_planes_lie_as_radiologists_see_them() -> None:
    volume = np.zeros((4, 5, 6), np.uint8)
    volume[0, 4, 5] = (
        1  # left-most x is the patient's left in RAS+? x grows to the right of the patient's body
    )
    axial = canvas.cut(volume, "axial", 5)
    assert axial.shape == (5, 4)
    assert axial[0, 3] == 1
    coronal = canvas.cut(volume, "coronal", 4)
    assert coronal.shape == (6, 4)
    assert coronal[0, 3] == 1
    assert canvas.panel_size((4, 5, 6), (1.0, 1.0, 2.0), "coronal", 120) == (40, 120)
    assert len(canvas.PALETTE.series) >= masks.MAX_TARGETS
