"""On the phantoms: references score 1, doing nothing scores what the task declares, an empty folder scores 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.reference_submissions import write_perfect, write_trivial
from evaluator.report import TaskReport, dump_report
from evaluator.score import score
from tasks.manifest import Manifest, load_manifest
from tasks.registry import load_task
from tasks.schema import Release, Task

TASKS = [
    "bccd-det-task",
    "vindr-cxr-det-task",
    "dentex-det-task",
    "grazpedwri-det-task",
    "iu-xray-report-task",
    "mimic-cxr-report-task",
    "chexpert-plus-cxr-task",
    "pathology-caption-100-task",
    "pathology-caption-500-task",
    "braintumor-cls-task",
    "crc-histology-cls-task",
    "chest-xray-pneumonia-cls-task",
    "patchcamelyon-cls-task",
    "skin-lesion-cls-task",
    "kidney-seg-task",
    "pancreas-seg-task",
    "pancreas-oar-seg-task",
    "liver-seg-task",
    "colon-seg-task",
    "hepaticvessel-seg-task",
    "spleen-seg-task",
    "heart-seg-task",
    "prostate-seg-task",
    "ldct-denoising-task",
    "mri-sr-task",
    "brats-t1c-sr-task",
    "ixi-t1-sr-task",
    "nih-cxr-sr-task",
    "lidc-idri-denoising-task",
    "deeplesion-denoising-task",
    "synthrad2025-mrct-task",
    "ctorg-ctsr-task",
    "msd-pancreas-ctsr-task",
    "totalsegmentator-ctsr-task",
    "vqa-rad-task",
    "pathvqa-task",
    "slake-task",
    "medframeqa-task",
    "medxpertqa-mm-task",
    "vqa-kvasir-task",
    "vqa-omnimedvqa-task",
    "vqa-pmc-vqa-task",
    "vqa-mmmu-medical-task",
]


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


def test_doing_nothing_scores_what_the_task_declares(phantom, tmp_path) -> None:
    task, data, manifest = phantom
    write_trivial(task, manifest, data / "public", tmp_path)
    report = scored(phantom, tmp_path)
    assert report.all_valid
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
