"""Organs, atrium and prostate zones: the plans fit the scripts, and the methods do better than nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from evaluator.score import score
from runner.agents.baseline import steps
from runner.agents.baseline.plan import METHOD, plan_for
from tasks.manifest import load_manifest
from tasks.registry import load_task
from tasks.schema import Release

SCRIPT_OF = {
    "pancreas-seg-task": "organs",
    "pancreas-oar-seg-task": "organs",
    "liver-seg-task": "organs",
    "colon-seg-task": "organs",
    "hepaticvessel-seg-task": "organs",
    "spleen-seg-task": "organs",
    "heart-seg-task": "atrium",
    "prostate-seg-task": "prostate_zones",
}
QUICK = ("pancreas-seg-task", "heart-seg-task", "prostate-seg-task")
OFFERED = ("load", "describe", "describe_result", "quality", "save", "inspect")


@pytest.fixture(scope="module")
def staged(staged_phantom):
    return staged_phantom


def known(task_id: str) -> dict:
    return json.loads(steps.facts(load_task(task_id)))


def every_task(*quick: str):
    return [
        pytest.param(task_id, marks=() if task_id in quick else pytest.mark.slow) for task_id in SCRIPT_OF
    ]


@pytest.mark.parametrize("task_id", SCRIPT_OF)
def test_the_plan_names_the_scripts_methods(task_id, script) -> None:
    plan = plan_for(load_task(task_id))
    module = script(plan.script)
    assert plan.script == SCRIPT_OF[task_id]
    assert list(plan.candidates) == list(module.METHODS)
    assert plan.default != plan.fallback
    assert plan.pipeline.count(METHOD) == 1
    assert all(callable(getattr(module, name)) for name in OFFERED)


@pytest.mark.parametrize("task_id", every_task(*QUICK))
def test_the_method_lies_between_the_trivial_and_the_perfect(task_id, script, staged, tmp_path) -> None:
    task, data, method = load_task(task_id), staged(task_id), script(SCRIPT_OF[task_id])
    plan = plan_for(task)
    for case in (data / "public").iterdir():
        item = method.load(case, known(task_id))
        (tmp_path / case.name).mkdir()
        method.save(method.METHODS[plan.default](item), tmp_path / case.name, known(task_id))
    report = score(task, tmp_path, data / "private", data / "public", load_manifest(data), 1)
    declared = task.baselines[Release.PHANTOM]
    assert report.all_valid
    assert declared.trivial < report.task_score < 1
    assert report.task_score == pytest.approx(declared.strong, abs=0.02)


@pytest.mark.parametrize("task_id", QUICK)
def test_the_chosen_candidate_is_the_most_plausible(task_id, script, staged) -> None:
    method, plan = script(SCRIPT_OF[task_id]), plan_for(load_task(task_id))
    cases = sorted((staged(task_id) / "public").iterdir())[: plan.measure.cases]
    items = [method.load(case, known(task_id)) for case in cases]
    means = {
        name: np.mean([method.quality(item, predict(item), predict) for item in items])
        for name, predict in method.METHODS.items()
    }
    assert max(means, key=means.get) == plan.default


@pytest.mark.parametrize("task_id", SCRIPT_OF)
@pytest.mark.parametrize("content", ["noise", "nothing"])
def test_no_candidate_fails_on_a_scan_without_anatomy(task_id, content, script, tmp_path) -> None:
    task, method = load_task(task_id), script(SCRIPT_OF[task_id])
    shape = (24, 20, 12, 2) if task_id == "prostate-seg-task" else (24, 20, 12)
    rng = np.random.default_rng(1)
    values = rng.normal(60, 80, shape) if content == "noise" else np.zeros(shape)
    folder = tmp_path / "case"
    folder.mkdir()
    scan = nib.Nifti1Image(values.astype(np.int16), np.diag([-4.0, 4.0, 6.0, 1.0]))
    nib.save(scan, folder / task.inputs[0].name)
    for predict in method.METHODS.values():
        item = method.load(folder, known(task_id))
        out = Path(tempfile.mkdtemp(dir=tmp_path))
        method.save(predict(item), out, known(task_id))
        method.quality(item, predict(item), predict)
        for file in task.output.files:
            written = nib.load(out / file.name)
            assert written.shape == scan.shape[:3]
            assert np.allclose(written.affine, scan.affine)


def test_a_map_on_another_grid_or_with_another_label_is_seen(script, staged, tmp_path) -> None:
    task_id = "heart-seg-task"
    method = script("atrium")
    case = next((staged(task_id) / "public").iterdir())
    item, said = method.load(case, known(task_id)), []
    labels = np.zeros(item["image"].shape, np.uint8)

    def problems(data: np.ndarray, affine: np.ndarray) -> list[str]:
        nib.save(nib.Nifti1Image(data, affine), tmp_path / "dseg.nii.gz")
        return method.inspect(item, tmp_path, known(task_id), said.append)

    assert problems(labels[:-1], item["image"].affine) == ["dseg.nii.gz is not on the grid of the scan"]
    assert problems(labels, np.eye(4)) == ["dseg.nii.gz is not on the grid of the scan"]
    assert problems(labels + 7, item["image"].affine)[0] == "dseg.nii.gz has labels [7]"
    assert problems(labels, item["image"].affine) == ["left_atrium of 0 ml"]
    assert said
