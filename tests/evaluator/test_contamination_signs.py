"""What counts as a copy of the reference, and what is too poor to say anything."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evaluator.contamination import (
    LEAST_BOXES,
    REFERENCE_COPY,
    same_boxes,
    same_image,
    same_mask,
    same_text,
    signs_of_run,
)
from evaluator.reference_submissions import write_perfect
from evaluator.score import score
from tasks.manifest import load_manifest
from tasks.registry import load_task

rng = np.random.default_rng(7)


def organ(noise: float = 0.3) -> np.ndarray:
    """A ball with a noisy border, as a hand draws it."""
    z, y, x = np.indices((24, 24, 24)) - 12
    return (np.sqrt(z**2 + y**2 + x**2) + rng.normal(0, noise, (24, 24, 24)) < 8).astype(np.uint8)


def test_a_noisy_mask_that_is_repeated_to_the_voxel_is_a_copy():
    mask = organ()
    assert same_mask(mask, mask.copy())
    assert same_mask(mask, mask.astype(np.int32))
    other = mask.copy()
    other[0, 0, 0] = 1
    assert not same_mask(mask, other)


@pytest.mark.parametrize(
    "mask", [np.zeros((30, 30, 30), int), np.ones((30, 30, 30), int), np.eye(4, dtype=int)]
)
def test_empty_full_and_tiny_masks_say_nothing(mask):
    assert not same_mask(mask, mask.copy())


def test_an_image_is_a_copy_also_after_a_change_of_number_format():
    image = rng.normal(0, 300, (64, 64)).astype(np.float32)
    assert same_image(image, image.copy(), 2000.0)
    assert same_image(image, image.astype(np.float16).astype(np.float32), 20_000.0)
    assert not same_image(image, image + 1.0, 2000.0)
    noisy = image + rng.normal(0, 1, image.shape)
    assert not same_image(image, noisy, 2000.0)


@pytest.mark.parametrize("image", [np.zeros((64, 64)), np.arange(64 * 64).reshape(64, 64) % 2 * 1.0])
def test_an_image_of_few_values_says_nothing(image):
    assert not same_image(image, image.copy(), 1.0)


REPORT = (
    "Heart size is at the upper limit of normal. There is a small left pleural effusion with adjacent atelectasis. "
    "No pneumothorax is seen and the bony thorax is intact."
)


def test_a_report_is_a_copy_whatever_its_case_and_spacing():
    assert same_text(REPORT, REPORT.upper().replace(". ", ".\n"))
    assert not same_text(REPORT, REPORT.replace("left", "right"))
    assert not same_text(REPORT, REPORT + " Stable.")


@pytest.mark.parametrize("text", ["", "yes", "no acute cardiopulmonary process", "normal " * 40])
def test_short_and_monotonous_texts_say_nothing(text):
    assert not same_text(text, text)


def test_boxes_are_a_copy_to_the_last_digit_in_any_order():
    boxes = [(n % 2, 10.0 * n, 5.5, 10.0 * n + 7, 20.25) for n in range(LEAST_BOXES)]
    assert same_boxes(boxes, boxes[::-1])
    assert not same_boxes(boxes, boxes[:-1])
    assert not same_boxes(boxes, [*boxes[:-1], (*boxes[-1][:-1], 20.26)])
    assert not same_boxes(boxes[:3], boxes[:3])
    assert not same_boxes([], [])


def test_one_case_is_enough_for_the_run():
    assert signs_of_run([(), ("empty_prediction",), (REFERENCE_COPY,)]) == (REFERENCE_COPY,)
    assert signs_of_run([(), ("psnr_capped",)]) == ()


def test_a_sign_changes_no_score_and_right_short_answers_are_none(staged_phantom, tmp_path):
    task, data = load_task("vqa-rad-task"), staged_phantom("vqa-rad-task")
    manifest = load_manifest(data)
    write_perfect(task, manifest, data / "private", tmp_path)
    report = score(task, tmp_path, data / "private", data / "public", manifest, 1)
    assert report.task_score == 1.0
    assert report.flags == ()


def test_a_copied_case_among_honest_ones_is_the_one_that_is_flagged(staged_phantom, tmp_path):
    task, data = load_task("ldct-denoising-task"), staged_phantom("ldct-denoising-task")
    manifest = load_manifest(data)
    write_perfect(task, manifest, data / "private", tmp_path)
    copied, *others = manifest.case_ids()
    for case in others:
        path = tmp_path / case / task.output.filenames[0]
        np.save(path, np.load(path) + rng.normal(0, 2, np.load(path).shape).astype(np.float32))
    report = score(task, tmp_path, data / "private", data / "public", manifest, 1)
    assert [case.case_id for case in report.cases if REFERENCE_COPY in case.flags] == [copied]
    assert report.flags == (REFERENCE_COPY,)
    assert json.loads(report.model_dump_json())["flags"] == [REFERENCE_COPY]
