"""``python -m evaluator`` as its users and its sandbox run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.report import TaskReport
from tasks.manifest import Manifest, dump_manifest

TASK_OF = {
    "segmentation": "kidney-seg-task",
    "enhancement": "ldct-denoising-task",
    "vqa": "vqa-rad-task",
    "report": "iu-xray-report-task",
    "detection": "bccd-det-task",
}


def evaluator(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evaluator", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | env, check=False)


@pytest.fixture
def kidney(stage):
    """The tiny segmentation data, under the name of a task that exists."""
    staged = stage("segmentation")
    manifest = staged.manifest.model_copy(update={"task": TASK_OF["segmentation"]})
    (staged.root / "manifest.json").write_text(dump_manifest(manifest))
    return staged


def score_command(staged, out: Path) -> list[object]:
    places = ["--submission", staged.submission, "--references", staged.private, "--public", staged.public]
    return ["score", "--task", TASK_OF["segmentation"], *places, "--out", out]


def test_help_starts_quickly() -> None:
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        assert evaluator("--help").returncode == 0
        seconds.append(time.monotonic() - started)
    assert min(seconds) <= 0.3


def test_score_writes_a_valid_report_and_pictures(kidney, tmp_path) -> None:
    done = evaluator(*score_command(kidney, tmp_path / "report.json"), "--previews", tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    report = TaskReport.model_validate_json((tmp_path / "report.json").read_bytes())
    assert report.task_score == 1.0
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == [
        "c1.webp",
        "c2.webp",
        "c3.webp",
    ]


def test_the_same_bytes_whatever_the_surroundings(kidney, tmp_path) -> None:
    kidney.output("c2").write_bytes(b"\x1f\x8bgarbage")
    reports = set()
    for number, (jobs, env) in enumerate(
        [
            (1, {"PYTHONHASHSEED": "0", "TZ": "UTC"}),
            (2, {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}),
            (5, {"PYTHONHASHSEED": "99", "LANG": "tr_TR.UTF-8", "OMP_NUM_THREADS": "3"}),
        ]
    ):
        out = tmp_path / f"{number}.json"
        assert evaluator(*score_command(kidney, out), "--jobs", jobs, **env).returncode == 0
        reports.add(out.read_bytes())
    assert len(reports) == 1


def test_a_missing_reference_is_exit_3_and_writes_nothing(kidney, tmp_path) -> None:
    (kidney.private / "c2" / "lesion.nii.gz").unlink()
    done = evaluator(*score_command(kidney, tmp_path / "report.json"))
    assert done.returncode == 3
    assert "c2" in done.stderr
    assert "lesion.nii.gz" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "report.json").exists()


def test_an_unreadable_reference_is_exit_3(kidney, tmp_path) -> None:
    (kidney.private / "c2" / "organ.nii.gz").write_bytes(b"\x1f\x8bgarbage")
    assert evaluator(*score_command(kidney, tmp_path / "report.json")).returncode == 3


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        ({"--task": "kidny-seg-task"}, 2, "did you mean"),
        ({"--task": "bccd-det-task"}, 2, "belongs to kidney-seg-task"),
        ({"--submission": "/nowhere"}, 2, "/nowhere"),
        ({"--references": "/nowhere"}, 3, "/nowhere"),
        ({"--manifest": "/nowhere/manifest.json"}, 3, "manifest"),
        ({"--out": "/nowhere/report.json"}, 3, "/nowhere"),
        ({"--jobs": "0"}, 2, "at least 1"),
    ],
)
def test_problems_are_one_line_with_their_exit_code(kidney, tmp_path, change, code: int, word: str) -> None:
    command = [*score_command(kidney, tmp_path / "report.json")]
    for option, value in change.items():
        command += [option, value]
    done = evaluator(*command)
    assert done.returncode == code
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fifo_in_place_of_the_report_is_replaced(kidney, tmp_path) -> None:
    os.mkfifo(tmp_path / "report.json")
    assert evaluator(*score_command(kidney, tmp_path / "report.json")).returncode == 0
    assert (tmp_path / "report.json").is_file()


def test_check_needs_no_references_and_names_each_fault(kidney) -> None:
    kidney.output("c2").unlink()
    kidney.output("c3").write_bytes(b"\x1f\x8bgarbage")
    command = [
        "check",
        "--task",
        TASK_OF["segmentation"],
        "--submission",
        kidney.submission,
        "--public",
        kidney.public,
    ]
    done = evaluator(*command, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert (answer["cases"], answer["valid"]) == (3, 1)
    assert {case: fault["code"] for case, fault in answer["faults"].items()} == {
        "c2": "missing",
        "c3": "corrupt",
    }
    assert "c2: missing" in evaluator(*command).stdout


def test_check_is_content_with_a_valid_submission(kidney) -> None:
    command = [
        "check",
        "--task",
        TASK_OF["segmentation"],
        "--submission",
        kidney.submission,
        "--public",
        kidney.public,
    ]
    done = evaluator(*command)
    assert done.returncode == 0
    assert "3 of 3" in done.stdout


def test_metrics_lists_definitions_and_sources() -> None:
    listed = {metric["name"]: metric for metric in json.loads(evaluator("metrics", "--json").stdout)}
    assert "Dice" in listed["macro_dice"]["definition"]
    assert listed["map50_coco101"]["source"]
    assert "macro_dice" in evaluator("metrics").stdout


def test_the_report_carries_the_digest_of_the_manifest_file(kidney, tmp_path) -> None:
    import hashlib

    path = kidney.root / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert Manifest.model_validate_json(path.read_bytes())
    evaluator(*score_command(kidney, tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["manifest_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
