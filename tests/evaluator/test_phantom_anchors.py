"""On the phantoms: references score 1, doing nothing scores what the task declares, an empty folder scores 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.contamination import LEAST_BOXES, REFERENCE_COPY
from evaluator.reference_submissions import write_perfect, write_trivial
from evaluator.report import TaskReport, dump_report
from evaluator.score import score
from tasks.manifest import Manifest, load_manifest
from tasks.registry import all_tasks, load_task
from tasks.schema import Release, Task, Track

TASKS = [task.id for task in all_tasks()]


@pytest.fixture(scope="module", params=TASKS)
def phantom(request, staged_phantom) -> tuple[Task, Path, Manifest]:
    data = staged_phantom(request.param)
    return load_task(request.param), data, load_manifest(data)


def scored(phantom, submission: Path, jobs: int = 2) -> TaskReport:
    task, data, manifest = phantom
    return score(task, submission, data / "private", data / "public", manifest, jobs)


def test_references_score_one(phantom, tmp_path) -> None:
    task, data, manifest = phantom
    write_perfect(task, manifest, data / "private", tmp_path)
    report = scored(phantom, tmp_path)
    assert report.task_score == pytest.approx(1.0, abs=1e-12)
    assert report.all_valid
    assert report.flags == ((REFERENCE_COPY,) if shows_copies(phantom) else ())


def shows_copies(phantom) -> bool:
    """Whether references are rich enough to tell a copy: an answer, a class or a few boxes are not."""
    task, data, manifest = phantom
    if task.track is Track.DETECTION:
        boxes = [
            json.loads((data / "private" / case / task.references[0]).read_bytes())["boxes"]
            for case in manifest.case_ids()
        ]
        return max(map(len, boxes)) >= LEAST_BOXES
    return task.track not in (Track.VQA, Track.CLASSIFICATION)


def test_doing_nothing_scores_what_the_task_declares(phantom, tmp_path) -> None:
    task, data, manifest = phantom
    write_trivial(task, manifest, data / "public", tmp_path)
    report = scored(phantom, tmp_path)
    assert report.all_valid
    assert report.flags == ()
    measured = task.baselines[Release.PHANTOM]
    assert report.task_score < (0.9 if measured.strong is None else measured.strong)
    declared = measured.trivial
    if declared is not None:
        assert report.task_score_ungated == pytest.approx(declared, abs=5e-4)
        assert report.skill == pytest.approx(0.0, abs=5e-3)
    assert dump_report(scored(phantom, tmp_path, jobs=1)) == dump_report(report)


def test_an_empty_folder_scores_zero(phantom, tmp_path) -> None:
    report = scored(phantom, tmp_path)
    assert report.task_score_ungated == 0.0
    assert {case.status for case in report.cases} == {"missing"}
