"""Frames on grey films: each rule on a film drawn here, the plans beside their scripts, and the phantoms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from runner.agents.baseline import steps
from runner.agents.baseline.plan import plan_for
from tasks.registry import load_task

TASKS = {
    "vindr-cxr-det-task": "chest_boxes",
    "dentex-det-task": "teeth_boxes",
    "grazpedwri-det-task": "wrist_boxes",
}


def facts(task_id):
    return json.loads(steps.facts(load_task(task_id)))


def item_of(script, task_id, image, tmp_path):
    image.convert("RGB").save(tmp_path / "image.png")
    return script(TASKS[task_id]).load(tmp_path, facts(task_id))


def best(boxes, name, corners, films):
    """Highest overlap of a box of this class with the given corners."""
    wanted = dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
    return max((films.overlap(box, wanted) for box in boxes if box["class"] == name), default=0.0)


@pytest.mark.parametrize("task_id", TASKS)
def test_a_plan_and_its_script_name_the_same_methods(task_id, script):
    plan, module = plan_for(load_task(task_id)), script(TASKS[task_id])
    assert plan.script == TASKS[task_id]
    assert list(plan.candidates) == list(module.METHODS)
    assert {plan.default, plan.fallback} <= set(module.METHODS)
    assert all((steps.script(name), name)[1] for name in plan.helpers)


@pytest.mark.parametrize("task_id", TASKS)
@pytest.mark.parametrize("value", [0, 128, 255])
def test_a_blank_film_has_no_finding_and_that_is_no_problem(task_id, value, script, tmp_path):
    module, task = script(TASKS[task_id]), facts(task_id)
    item = item_of(script, task_id, Image.new("L", (200, 220), value), tmp_path)
    for method in module.METHODS.values():
        boxes = method(item)
        assert boxes == []
        module.save(boxes, tmp_path, task)
        assert module.inspect(item, tmp_path, task, show=lambda *_: None) == []
        assert module.quality(item, boxes, method) == 0


def chest_film(heart=45, spot=False):
    image = Image.new("L", (300, 330), 215)
    pen = ImageDraw.Draw(image)
    pen.polygon([(40, 270), (60, 60), (100, 40), (135, 80), (135, 240), (90, 245)], fill=85)
    pen.polygon([(260, 270), (240, 60), (200, 40), (165, 80), (165, 240), (210, 245)], fill=85)
    pen.ellipse((150 - heart, 150, 150 + heart, 150 + 1.6 * heart), fill=220)
    if spot:
        pen.ellipse((70, 130, 84, 144), fill=235)
    return image


def test_a_wide_heart_and_a_spot_are_framed_on_a_drawn_film(script, tmp_path):
    chest_boxes, films = script("chest_boxes"), script("films")
    film = chest_film(heart=75, spot=True)
    boxes = chest_boxes.outlines(item_of(script, "vindr-cxr-det-task", film, tmp_path))
    assert best(boxes, "Cardiomegaly", (75, 150, 225, 265), films) > 0.5
    assert best(boxes, "Nodule/Mass", (70, 130, 84, 144), films) > 0.5
    slim = chest_boxes.outlines(item_of(script, "vindr-cxr-det-task", chest_film(heart=40), tmp_path))
    assert not {"Cardiomegaly", "Nodule/Mass", "Pneumothorax"} & {box["class"] for box in slim}


def test_frames_are_in_pixels_of_the_original(script, tmp_path):
    chest_boxes, films = script("chest_boxes"), script("films")
    film = chest_film(heart=75).resize((900, 990))
    boxes = chest_boxes.heart_only(item_of(script, "vindr-cxr-det-task", film, tmp_path))
    assert best(boxes, "Cardiomegaly", (225, 450, 675, 795), films) > 0.5


def wrist_film(line=False, plate=False):
    noise = np.random.default_rng(3).normal(0, 2, (360, 240))
    image = Image.new("L", (240, 360), 4)
    pen = ImageDraw.Draw(image)
    pen.rectangle((60, 0, 180, 360), fill=80)
    for left, right in ((80, 106), (126, 160)):
        pen.rectangle((left, 170, right, 360), fill=170)
    pen.text((12, 12), "L", fill=250, font_size=24)
    if line:
        pen.rectangle((126, 226, 160, 231), fill=95)
    if plate:
        pen.rectangle((138, 220, 148, 300), fill=255)
    return Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))


def test_letter_line_and_plate_are_framed_on_a_drawn_wrist(script, tmp_path):
    wrist_boxes, films = script("wrist_boxes"), script("films")
    broken = wrist_boxes.parts(item_of(script, "grazpedwri-det-task", wrist_film(line=True), tmp_path))
    assert best(broken, "fracture", (126, 216, 160, 241), films) > 0.5
    assert sum(box["class"] == "text" for box in broken) == 1
    fixed = wrist_boxes.parts(item_of(script, "grazpedwri-det-task", wrist_film(plate=True), tmp_path))
    assert best(fixed, "metal", (138, 220, 149, 301), films) > 0.8
    whole = wrist_boxes.parts(item_of(script, "grazpedwri-det-task", wrist_film(), tmp_path))
    assert {box["class"] for box in whole} == {"text"}


def jaws(hole=False, halo=False):
    """Two rows of nine teeth with roots in grey bone."""
    image = Image.new("L", (560, 288), 95)
    pen = ImageDraw.Draw(image)
    for left in range(100, 460, 40):
        for top, neck, tip in ((110, 110, 62), (152, 178, 226)):
            pen.rectangle((left, top, left + 28, top + 26), fill=205)
            root = [(left + 4, neck), (left + 24, neck), (left + 18, tip), (left + 10, tip)]
            pen.polygon(root, fill=150)
    if hole:
        pen.ellipse((260, 153, 276, 167), fill=60)
    if halo:
        pen.ellipse((142, 222, 166, 242), fill=40)
    return image


def test_dark_crowns_and_dark_tips_are_framed_on_drawn_jaws(script, tmp_path):
    teeth_boxes, films = script("teeth_boxes"), script("films")
    boxes = teeth_boxes.crown_by_crown(item_of(script, "dentex-det-task", jaws(halo=True), tmp_path))
    assert best(boxes, "Periapical Lesion", (140, 152, 168, 242), films) > 0.5
    holed = teeth_boxes.crown_by_crown(item_of(script, "dentex-det-task", jaws(hole=True), tmp_path))
    assert {box["class"] for box in holed} & {"Caries", "Deep Caries"}
    whole = teeth_boxes.crown_by_crown(item_of(script, "dentex-det-task", jaws(), tmp_path))
    assert whole == []


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("task_id", TASKS)
def test_the_default_does_better_than_nothing_and_worse_than_perfect(task_id, seed, script, tmp_path):
    from evaluator.score import score
    from hf_datasets import ensure_phantom
    from tasks.manifest import load_manifest

    task, data = load_task(task_id), ensure_phantom(task_id, tmp_path / "data", seed)
    module, manifest = script(TASKS[task_id]), load_manifest(data)
    for case_id in manifest.case_ids():
        out = tmp_path / "out" / case_id
        out.mkdir(parents=True)
        item = module.load(data / "public" / case_id, facts(task_id))
        module.save(module.METHODS[plan_for(task).default](item), out, facts(task_id))
    report = score(task, tmp_path / "out", data / "private", data / "public", manifest, jobs=1)
    assert report.all_valid
    assert 0.15 < report.task_score < 0.95
    if seed == 0:
        assert report.task_score == pytest.approx(task.baselines["phantom"].strong, abs=5e-4)
