"""Enlarging, denoising on [0, 1], thin slices, CT from MR: nearer to the truth, and the checks see faults."""

from __future__ import annotations

import nibabel as nib
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from hf_datasets.staging.degrade import bicubic_half, kspace_half, noisy, thick_slices
from runner.agents.baseline.plan import METHOD, plan_for
from tasks.registry import load_task

TASKS = (
    "mri-sr-task", "brats-t1c-sr-task", "ixi-t1-sr-task", "nih-cxr-sr-task", "lidc-idri-denoising-task",
    "deeplesion-denoising-task", "synthrad2025-mrct-task", "ctorg-ctsr-task", "msd-pancreas-ctsr-task",
    "totalsegmentator-ctsr-task",
)  # fmt: skip


def facts(task_id, name, scale=1):
    output = {"shape_of": name, "scale": scale}
    return {
        "id": task_id,
        "files": ["enhanced.npy" if name.endswith("npy") else "sct.nii.gz"],
        "output": output,
    }


def quiet(*_):
    return None


def rms(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.parametrize("task_id", TASKS)
def test_a_plan_and_its_script_name_the_same_three_methods(task_id, script):
    plan = plan_for(load_task(task_id))
    module = script(plan.script or "synthesis")
    assert list(plan.candidates) == list(module.METHODS)
    assert len(plan.candidates) == 3
    assert {plan.default, plan.fallback} <= set(plan.candidates)
    assert plan.default != plan.fallback
    assert plan.pipeline.count(METHOD) == 1


def scene():
    """Edges, a thin ring and a soft slope, on [0, 1]."""
    y, x = np.mgrid[:96, :96] - 47.5
    r = np.hypot(x, y)
    image = np.where(r < 40, 0.5 + 0.002 * x, 0.0)
    image[(r > 18) & (r < 21)] = 0.9
    image[(abs(x) < 5) & (abs(y - 25) < 8)] = 0.1
    return np.asarray(gaussian_filter(image, 0.4), np.float32)


@pytest.mark.parametrize("task_id", ["mri-sr-task", "ixi-t1-sr-task"])
def test_the_enlarged_image_is_nearer_than_a_spline_and_passes_its_own_check(task_id, script, tmp_path):
    enlarging = script("super_resolution")
    clean = scene()
    small = (
        np.abs(kspace_half(clean[None].astype(np.complex64)))[0]
        if task_id == "mri-sr-task"
        else bicubic_half(clean)
    )
    np.save(tmp_path / "input.npy", small.astype(np.float32))
    task = facts(task_id, "input.npy", 2)
    item = enlarging.load(tmp_path, task)
    results = {how: run(item) for how, run in enlarging.METHODS.items()}
    assert all(result.shape == clean.shape for result in results.values())
    assert rms(results["tv"], clean) < 0.95 * rms(results["spline"], clean)
    for how, result in results.items():
        enlarging.save(result, tmp_path, task)
        assert enlarging.inspect(item, tmp_path, task, quiet) == [], how
    assert enlarging.quality(item, None, enlarging.METHODS["tv"]) > enlarging.quality(
        item, None, enlarging.METHODS["spline"]
    )


def test_the_agents_reduction_is_the_one_that_staging_made(script):
    enlarging = script("super_resolution")
    clean = scene()
    damped = np.clip(enlarging.reduced(clean, "damped"), 0, 1)
    assert damped[4:-4, 4:-4] == pytest.approx(bicubic_half(clean)[4:-4, 4:-4], abs=2e-3)
    cut = np.real(kspace_half(clean[None].astype(np.complex64)))[0]
    assert rms(enlarging.reduced(clean, "cut")[8:-8, 8:-8], cut[8:-8, 8:-8]) < 0.01


def test_a_shifted_a_small_and_a_blurred_image_do_not_pass(script, tmp_path):
    enlarging = script("super_resolution")
    np.save(tmp_path / "input.npy", bicubic_half(scene()))
    task = facts("ixi-t1-sr-task", "input.npy", 2)
    item = enlarging.load(tmp_path, task)
    good = enlarging.METHODS["tv"](item)
    problems = []
    for result in (np.roll(good, 6, axis=0), good[::2, ::2], gaussian_filter(good, 6), good * np.nan):
        enlarging.save(result, tmp_path, task)
        problems.append("; ".join(enlarging.inspect(item, tmp_path, task, quiet)))
    assert "does not agree with the input" in problems[0]
    assert "shape" in problems[1]
    assert "blurred" in problems[2]
    assert "not finite" in problems[3]


@pytest.mark.parametrize("how", ["dct", "nlm", "tv"])
def test_white_noise_goes_and_the_mean_stays(how, script, tmp_path):
    denoising = script("unit_denoising")
    clean = scene()
    np.save(tmp_path / "input.npy", noisy(clean, 3))
    task = facts("lidc-idri-denoising-task", "input.npy")
    item = denoising.load(tmp_path, task)
    result = denoising.METHODS[how](item)
    assert denoising.noise_of(item["image"]) == pytest.approx(0.05, rel=0.25)
    assert rms(result, clean) < 0.6 * 0.05
    denoising.save(result, tmp_path, task)
    assert denoising.inspect(item, tmp_path, task, quiet) == []
    denoising.save(np.clip(item["image"], 0, 1), tmp_path, task)
    assert denoising.inspect(item, tmp_path, task, quiet) != []


def body(tmp_path):
    """A slanted rod and a ball in a body of water, thin and thick; returns the thin volume."""
    x, y, z = np.mgrid[:40, :44, :32].astype(np.float32)
    thin = np.where(np.hypot(x - 20, y - 22) < 17, 40.0, -1000.0)
    thin[np.hypot(x - 12 - 0.3 * z, y - 22) < 4] = 600
    thin[(x - 26) ** 2 + (y - 26) ** 2 + (z - 15) ** 2 < 36] = -800
    affine = np.diag([-2.0, -2.0, 3.0, 1.0])
    thick = np.rint(thick_slices(thin)).astype(np.int16)
    nib.save(nib.Nifti1Image(thick, affine), tmp_path / "ct.nii.gz")
    return thin


def test_thin_slices_come_nearer_than_the_input(script, tmp_path):
    slicing = script("synthesis")
    thin = body(tmp_path)
    task = facts("ctorg-ctsr-task", "ct.nii.gz")
    item = slicing.load(tmp_path, task)
    before = rms(item["image"], thin)
    errors = {}
    for how, run in slicing.METHODS.items():
        result = run(item)
        errors[how] = rms(result["image"], thin)
        slicing.save(result, tmp_path, task)
        assert slicing.inspect(item, tmp_path, task, quiet) == [], how
    assert max(errors.values()) < before
    assert errors["tv"] < 0.8 * before
    exact = slicing.slabs_of(item["image"])
    assert np.abs(slicing.means(slicing.total_variation(item)) - exact).max() < 0.5


def test_a_volume_of_other_grid_or_blurred_does_not_pass(script, tmp_path):
    slicing = script("synthesis")
    body(tmp_path)
    task = facts("ctorg-ctsr-task", "ct.nii.gz")
    item = slicing.load(tmp_path, task)
    volume = item["image"]
    for result, affine, words in (
        (volume[:, :, ::2], item["affine"], "shape or affine"),
        (volume, item["affine"] * 2, "shape or affine"),
        (np.repeat(volume.mean(axis=2, keepdims=True), 32, axis=2), item["affine"], "blurred along the axis"),
    ):
        slicing.save({"image": result, "affine": affine}, tmp_path, task)
        assert words in "; ".join(slicing.inspect(item, tmp_path, task, quiet))


def head(tmp_path):
    """A ball of tissue with skin fat, a dark shell of bone and a silent cavity; returns the CT."""
    rng = np.random.default_rng(5)
    x, y, z = np.mgrid[:56, :56, :24].astype(np.float32)
    r = np.sqrt((x - 28) ** 2 + (y - 28) ** 2 + (0.5 * (z - 12)) ** 2)
    cavity = np.hypot(x - 28, y - 20) < 5
    names = np.select(
        [r > 24, r > 21, (r > 14) & (r < 16.5), cavity & (r < 13)], ["air", "fat", "bone", "air"], "soft"
    )
    ct, mr = np.zeros(r.shape), np.zeros(r.shape)
    for name, hu, signal in (("air", -1000, 0), ("fat", -95, 900), ("bone", 900, 45), ("soft", 45, 420)):
        ct[names == name], mr[names == name] = hu, signal
    mr = np.hypot(mr + 14 * rng.standard_normal(r.shape), 14 * rng.standard_normal(r.shape))
    affine = np.diag([-2.5, -2.5, 5.0, 1.0])
    nib.save(nib.Nifti1Image(mr.astype(np.int16), affine), tmp_path / "mr.nii.gz")
    nib.save(nib.Nifti1Image((r < 26).astype(np.uint8), affine), tmp_path / "mask.nii.gz")
    return ct


def test_tissues_of_a_drawn_head_get_their_hounsfield_values(script, tmp_path):
    mapping = script("mr_to_ct")
    ct = head(tmp_path)
    task = facts("synthrad2025-mrct-task", "mr.nii.gz")
    item = mapping.load(tmp_path, task)
    results = {how: run(item)["image"] for how, run in mapping.METHODS.items()}
    inside = item["mask"]
    assert np.abs(results["classes"] - ct)[inside].mean() < 0.6 * np.abs(results["water"] - ct)[inside].mean()
    assert np.median(results["classes"][ct == 900]) > 400
    assert (
        np.median(
            results["classes"][(ct == -1000) & inside & (np.hypot(*np.mgrid[:56, :56] - 28)[..., None] < 10)]
        )
        < -800
    )
    assert np.mean(results["classes"][~inside] < -900) > 0.99
    for how, result in results.items():
        mapping.save({"image": result, "affine": item["affine"]}, tmp_path, task)
        assert mapping.inspect(item, tmp_path, task, quiet) == [], how
    mapping.save({"image": item["image"], "affine": item["affine"]}, tmp_path, task)
    assert mapping.inspect(item, tmp_path, task, quiet) != []
