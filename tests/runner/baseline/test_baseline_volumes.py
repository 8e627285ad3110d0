"""Airways, fetal brains, the pancreas in MRI, whole bodies: plans, methods, between nothing and the references."""

from __future__ import annotations

import json
import re

import nibabel as nib
import numpy as np
import pytest
from scipy import ndimage as ndi

from evaluator.reference_submissions import write_perfect, write_trivial
from evaluator.score import score
from runner.agents.baseline import steps
from runner.agents.baseline.plan import METHOD, load_plan, plan_for, write_plan
from tasks.manifest import load_manifest
from tasks.registry import load_task
from tasks.schema import Release, Tier

TASKS = {
    "aeropath-seg-task": "airways",
    "feta-seg-task": "fetal",
    "panther-t1-seg-task": "pancreas_mr",
    "panther-t2-seg-task": "pancreas_mr",
    "tsg-multiorgan-seg-task": "whole_body",
}
OFFERED = ("load", "describe", "describe_result", "quality", "save", "inspect")


def facts(task_id):
    return json.loads(steps.facts(load_task(task_id)))


@pytest.mark.parametrize("task_id", TASKS)
def test_a_task_of_its_own_plan_gets_it_and_its_script(task_id, script):
    plan, module = plan_for(load_task(task_id)), script(TASKS[task_id])
    assert plan.script == TASKS[task_id]
    assert list(plan.candidates) == list(module.METHODS)
    assert len(plan.candidates) == 3
    assert {plan.default, plan.fallback} <= set(plan.candidates)
    assert plan.default != plan.fallback
    assert plan.pipeline.count(METHOD) == 1
    assert all(callable(getattr(module, name)) for name in OFFERED)


def test_a_task_without_a_plan_of_its_own_gets_that_of_its_track():
    task = load_task("ldct-denoising-task")
    assert plan_for(task) == load_plan(task.track)


@pytest.mark.parametrize("task_id", TASKS)
@pytest.mark.parametrize("tier", [Tier.LITE, Tier.STANDARD])
def test_plan_md_leaves_nothing_open(task_id, tier):
    task = load_task(task_id)
    plan = plan_for(task)
    text = write_plan(task, tier, plan, plan.default, 5, {}, "this one.")
    assert not re.search(r"\{\{|\{%|None|Undefined", text)
    assert all(name in text for name in task.output.filenames)
    assert "Tumour = attached" not in text


@pytest.mark.parametrize("task_id", TASKS)
def test_the_tools_hold_every_script_that_the_method_imports(task_id):
    task = load_task(task_id)
    code = steps.write_tools(task, plan_for(task), "say").code
    written = set(re.findall(r"cat > /workspace/(\w+)\.py", code))
    imported = set(re.findall(r"^from (\w+) import", code, re.MULTILINE))
    ours = {"airways", "common", "fetal", "organs", "pancreas_mr", "segmentation", "volumes", "whole_body"}
    assert imported & ours <= written


@pytest.mark.parametrize("task_id", TASKS)
def test_the_method_lies_between_nothing_and_the_references(task_id, script, tmp_path, staged_phantom):
    task, method = load_task(task_id), script(TASKS[task_id])
    data = staged_phantom(task_id)
    manifest, known, declared = load_manifest(data), facts(task_id), task.baselines[Release.PHANTOM]
    predict = method.METHODS[plan_for(task).default]
    for case_id in manifest.case_ids():
        folder = tmp_path / "baseline" / case_id
        folder.mkdir(parents=True)
        method.save(predict(method.load(data / "public" / case_id, known)), folder, known)
    write_trivial(task, manifest, data / "public", tmp_path / "trivial")
    write_perfect(task, manifest, data / "private", tmp_path / "perfect")
    trivial, baseline, perfect = (
        score(task, tmp_path / name, data / "private", data / "public", manifest, 1)
        for name in ("trivial", "baseline", "perfect")
    )
    assert baseline.all_valid
    assert trivial.task_score + 0.1 < baseline.task_score < perfect.task_score == 1.0
    assert trivial.task_score == pytest.approx(declared.trivial, abs=5e-4)
    assert baseline.task_score == pytest.approx(declared.strong, abs=0.02)


@pytest.mark.parametrize("codes", ["RAS", "LPS", "ILA"])
def test_label_maps_come_back_on_the_grid_they_came_from(codes, script, tmp_path):
    volumes = script("volumes")
    turn = nib.orientations.ornt_transform(
        nib.orientations.axcodes2ornt("RAS"), nib.orientations.axcodes2ornt(codes)
    )
    data = np.random.default_rng(1).integers(0, 3, (5, 6, 7)).astype(np.int16)
    affine = np.diag([2.0, 3, 4, 1]) @ nib.orientations.inv_ornt_aff(turn, data.shape)
    nib.save(nib.Nifti1Image(nib.orientations.apply_orientation(data, turn), affine), tmp_path / "ct.nii.gz")
    known = facts("aeropath-seg-task")
    item = volumes.load(tmp_path, known)
    assert np.array_equal(item["data"], data)
    assert item["spacing"].tolist() == [2, 3, 4]
    volumes.save(volumes.as_result(item, dseg=data), tmp_path, known)
    assert np.array_equal(
        nib.load(tmp_path / "dseg.nii.gz").get_fdata(), nib.load(tmp_path / "ct.nii.gz").get_fdata()
    )
    assert volumes.inspect(item, tmp_path, known, show=lambda text: None) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda labels, affine: (labels[:-1], affine), "not on the grid"),
        (lambda labels, affine: (labels, affine * 2), "not on the grid"),
        (lambda labels, affine: (labels + 5, affine), "has labels"),
        (lambda labels, affine: (labels * 0, affine), "nothing is labelled"),
    ],
)
def test_a_bad_label_map_is_found_on_inspection(spoil, words, script, tmp_path):
    volumes, known = script("volumes"), facts("aeropath-seg-task")
    affine, labels = np.eye(4), np.ones((4, 4, 4), np.uint8)
    nib.save(nib.Nifti1Image(np.zeros((4, 4, 4), np.int16), affine), tmp_path / "ct.nii.gz")
    nib.save(nib.Nifti1Image(*spoil(labels, affine)), tmp_path / "dseg.nii.gz")
    problems = volumes.inspect(volumes.load(tmp_path, known), tmp_path, known, show=lambda text: None)
    assert words in "; ".join(problems)


def chest(leaky):
    """Two lungs, a trachea that forks into them, and walls that are thin on one side where ``leaky``."""
    x, y, z = np.meshgrid(*(np.arange(n, dtype=float) for n in (90, 60, 70)), indexing="ij")
    body = ((x - 45) / 42) ** 2 + ((y - 30) / 27) ** 2 < 1
    lungs = np.zeros(body.shape, bool)
    for middle in (24, 66):
        lungs |= ((x - middle) / 14) ** 2 + ((y - 30) / 18) ** 2 + ((z - 28) / 26) ** 2 < 1
    tube = ((x - 45) ** 2 + (y - 30) ** 2 < 9) & (z > 40)
    arms = (np.abs(z - 41) < 2) & (np.abs(y - 30) < 2) & (np.abs(x - 45) < 21)
    wall = ndi.binary_dilation(tube | arms, iterations=1 if leaky else 2)
    hu = np.where(body, 40.0, -1000.0)
    hu[lungs] = -850
    hu[wall & body] = 40
    hu[tube | arms] = -985
    return hu, lungs & ~wall, tube | arms


def test_growth_from_the_trachea_stops_at_the_lung(script):
    airways = script("airways")
    hu, lungs, tree = chest(leaky=False)
    item = {"task": facts("aeropath-seg-task"), "data": hu, "spacing": np.array([3.0, 3, 3])}
    labels = airways.METHODS["careful"](item)["files"]["dseg.nii.gz"]
    assert 2 * ((labels == 2) & tree).sum() / ((labels == 2).sum() + tree.sum()) > 0.95
    assert (labels[lungs] == 1).mean() > 0.95


def test_a_leak_is_noticed_by_its_size(script):
    airways = script("airways")
    hu, lungs, tree = chest(leaky=True)
    opening = ndi.binary_dilation(tree, iterations=3) & ndi.binary_dilation(lungs, iterations=3)
    hu[opening & (hu > -100)] = -870
    item = {"task": facts("aeropath-seg-task"), "data": hu, "spacing": np.array([3.0, 3, 3])}
    labels = airways.METHODS["careful"](item)["files"]["dseg.nii.gz"]
    assert (labels[lungs] == 2).mean() < 0.05
    assert (labels[tree] == 2).mean() > 0.8


def test_without_a_trachea_there_are_lungs_and_no_tree(script):
    airways = script("airways")
    hu, lungs, tree = chest(leaky=False)
    hu[tree] = 40
    item = {"task": facts("aeropath-seg-task"), "data": hu, "spacing": np.array([3.0, 3, 3])}
    labels = airways.METHODS["careful"](item)["files"]["dseg.nii.gz"]
    assert not (labels == 2).any()
    assert (labels[lungs] == 1).mean() > 0.95
