"""Flags of the report that error codes read: set where they are due, and only there."""

from __future__ import annotations

import json
import shutil

import nibabel
import numpy as np
import pytest


def flags(staged):
    return {case.case_id: set(case.flags) for case in staged.score().cases}


@pytest.mark.parametrize(
    "track", ["segmentation", "labelmap", "enhancement", "synthesis", "vqa", "report", "detection"]
)
def test_a_good_submission_has_no_suspicious_flag(stage, track):
    suspicious = {"copied_input", "empty_prediction", "out_of_bounds"}
    assert not any(found & suspicious for found in flags(stage(track)).values())


def test_a_copied_array(stage):
    staged = stage("enhancement")
    shutil.copy(staged.public / "c1" / "input.npy", staged.output("c1"))
    assert [case for case, found in flags(staged).items() if "copied_input" in found] == ["c1"]


def test_a_copied_volume(stage):
    staged = stage("synthesis")
    shutil.copy(staged.public / "c2" / "mr.nii.gz", staged.output("c2"))
    assert [case for case, found in flags(staged).items() if "copied_input" in found] == ["c2"]


def test_empty_masks(stage):
    staged = stage("segmentation")
    for name in staged.task.output.filenames:
        image = nibabel.load(staged.output("c1", name))
        empty = np.zeros(image.shape, np.uint8)
        nibabel.save(nibabel.Nifti1Image(empty, image.affine), staged.output("c1", name))
    assert [case for case, found in flags(staged).items() if "empty_prediction" in found] == ["c1"]


def test_no_boxes_where_there_are_some(stage):
    staged = stage("detection")
    for case in staged.cases:
        staged.output(case).write_text(json.dumps({"boxes": []}))
    assert [case for case, found in flags(staged).items() if "empty_prediction" in found] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("corners", "outside"),
    [((4, 4, 20, 20), False), ((0, 0, 64, 48), False), ((-0.5, 0, 64.5, 48), False), ((4, 4, 70, 20), True),
     ((-8, 4, 20, 20), True), ((4, 4, 20, 60), True)],
)  # fmt: skip
def test_boxes_outside_the_image(stage, corners, outside):
    staged = stage("detection")
    box = dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
    staged.output("c1").write_text(json.dumps({"boxes": [{"class": "cell", **box, "score": 0.9}]}))
    assert ("out_of_bounds" in flags(staged)["c1"]) is outside


def test_one_answer_to_every_question(stage):
    staged = stage("vqa")
    assert staged.score().aggregates["distinct_answers"] == 1
    for case in staged.cases:
        staged.output(case).write_text(json.dumps({"question_id": case, "predicted_answer": " Yes"}))
    assert staged.score().aggregates["distinct_answers"] == pytest.approx(1 / 3)
