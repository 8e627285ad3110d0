"""Classes and captions by rules, on pictures drawn here where the right answer is known by construction."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tasks.registry import load_task

BRAIN, FILMS, SKIN = "braintumor-cls-task", "chest-xray-pneumonia-cls-task", "skin-lesion-cls-task"
COLON, NODES = "crc-histology-cls-task", "patchcamelyon-cls-task"
CAPTION = {"files": ["report.txt"], "output": {"min_chars": 1, "max_chars": 8000, "min_letters": 1}}


def facts(task_id):
    output = load_task(task_id).output
    return {"files": [output.file], "output": {"classes": list(output.classes)}}


def answered(script, tmp_path, task_id, picture):
    """The label of a picture, after load, save and inspection."""
    classification, task = script("classification"), facts(task_id)
    picture.convert("RGB").save(tmp_path / "image.jpg", quality=95)
    item = classification.load(tmp_path, task)
    result = classification.rules(item)
    classification.save(result, tmp_path, task)
    assert classification.inspect(item, tmp_path, task, show=lambda *_: None) == []
    written = json.loads((tmp_path / "prediction.json").read_text())
    assert set(written["probabilities"]) == set(task["output"]["classes"])
    return written["label"]


def head(ball=None, hollow=False):
    """A slice with skull and even brain; ``ball`` is a bright lump (left, top, right, bottom)."""
    image = Image.new("L", (200, 220), 3)
    pen = ImageDraw.Draw(image)
    pen.ellipse((20, 15, 180, 205), fill=150)
    pen.ellipse((27, 22, 173, 198), fill=15)
    pen.ellipse((32, 28, 168, 192), fill=95)
    if ball:
        pen.ellipse(ball, fill=190)
        if hollow:
            left, top, right, bottom = ball
            pen.ellipse((left + 9, top + 9, right - 9, bottom - 9), fill=50)
    return image


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        (head(), "notumor"),
        (head((84, 82, 116, 114)), "pituitary"),
        (head((140, 90, 166, 118)), "meningioma"),
        (head((118, 60, 156, 98), hollow=True), "glioma"),
    ],
)
def test_lumps_are_told_apart_by_place_and_evenness(script, tmp_path, picture, label):
    assert answered(script, tmp_path, BRAIN, picture) == label


def dots(count, radius, seed=1):
    """Round purple nuclei on pink."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (128, 128), (214, 170, 206))
    pen = ImageDraw.Draw(image)
    for x, y in rng.uniform(0, 128, (count, 2)):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(70, 45, 120))
    return image


def stripes():
    image = Image.new("RGB", (128, 128), (222, 120, 165))
    pen = ImageDraw.Draw(image)
    for row in range(0, 128, 8):
        pen.line((0, row, 128, row + 12), fill=(200, 95, 145), width=3)
    return image


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        (Image.new("RGB", (128, 128), (238, 236, 240)), "back"),
        (dots(520, 2.4), "lym"),
        (dots(110, 6.5), "tum"),
        (stripes(), "mus"),
    ],
)
def test_tissues_are_told_apart_by_colour_crowd_and_direction(script, tmp_path, picture, label):
    assert answered(script, tmp_path, COLON, picture) == label


def test_only_wide_nuclei_in_the_middle_make_a_patch_positive(script, tmp_path):
    small = Image.new("RGB", (96, 96), (214, 170, 206))
    for x in range(4, 96, 8):
        for y in range(4, 96, 8):
            ImageDraw.Draw(small).ellipse((x - 2, y - 2, x + 2, y + 2), fill=(70, 45, 120))
    middle, border = small.copy(), small.copy()
    for x, y in ((40, 40), (56, 42), (48, 54)):
        ImageDraw.Draw(middle).ellipse((x - 6, y - 6, x + 6, y + 6), fill=(110, 75, 150))
    for x in (8, 24, 60, 84):
        ImageDraw.Draw(border).ellipse((x - 6, 2, x + 6, 14), fill=(110, 75, 150))
    assert answered(script, tmp_path, NODES, middle) == "positive"
    assert answered(script, tmp_path, NODES, border) == "negative"


def lesion(colour, *, ragged=False, middle=None):
    image = Image.new("RGB", (200, 150), (222, 172, 152))
    pen = ImageDraw.Draw(image)
    pen.ellipse((60, 40, 140, 112), fill=colour)
    if ragged:
        pen.polygon(
            [(70, 50), (100, 30), (150, 60), (120, 80), (145, 120), (95, 95), (60, 118)], fill=(60, 40, 38)
        )
        pen.ellipse((92, 60, 112, 82), fill=(110, 114, 142))
    if middle:
        pen.ellipse((85, 62, 115, 90), fill=middle)
    return image


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        (lesion((150, 100, 78)), "melanocytic_nevi"),
        (lesion((118, 76, 60), ragged=True), "melanoma"),
        (lesion((160, 40, 55)), "vascular_lesions"),
        (lesion((190, 140, 118), middle=(238, 220, 210)), "dermatofibroma"),
    ],
)
def test_lesions_are_told_apart_by_colour_and_unevenness(script, tmp_path, picture, label):
    assert answered(script, tmp_path, SKIN, picture) == label


def test_a_film_without_lungs_gets_an_answer_all_the_same(script, tmp_path):
    assert answered(script, tmp_path, FILMS, Image.new("L", (300, 330), 128)) in ("normal", "pneumonia")


@pytest.mark.parametrize("task_id", [BRAIN, FILMS, SKIN, COLON, NODES])
def test_a_blank_picture_breaks_no_method_and_shares_add_up(script, task_id):
    classification = script("classification")
    classes = load_task(task_id).output.classes
    for value in (0.0, 128.0, 255.0):
        item = {"name": "c", "rgb": np.full((96, 96, 3), value, np.float32), "classes": classes}
        for predict in classification.METHODS.values():
            result = predict(item)
            assert sum(result["probabilities"].values()) == pytest.approx(1)
            assert result["label"] == max(result["probabilities"], key=result["probabilities"].get)
            assert classification.quality(item, result, predict) == 0


def tile(*, brown=False, holes=0):
    image = Image.new("RGB", (176, 176), (231, 172, 200))
    pen = ImageDraw.Draw(image)
    for number in range(holes):
        x, y = 45 + 85 * (number % 2), 45 + 85 * (number // 2)
        pen.ellipse((x - 22, y - 22, x + 22, y + 22), fill=(196, 158, 204))
        pen.ellipse((x - 12, y - 12, x + 12, y + 12), fill=(246, 243, 246))
        for turn in np.linspace(0, 2 * np.pi, 22):
            u, v = x + 17 * np.cos(turn), y + 17 * np.sin(turn)
            pen.ellipse((u - 3, v - 3, u + 3, v + 3), fill=(122, 72, 36) if brown else (92, 62, 142))
    return image


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        (tile(holes=3), ("Hematoxylin", "three glands")),
        (tile(holes=1), ("one gland ",)),
        (tile(holes=2, brown=True), ("DAB", "two glands")),
    ],
)
def test_captions_name_stain_and_glands(script, tmp_path, picture, said):
    captions = script("captions")
    (tmp_path / "images").mkdir()
    picture.save(tmp_path / "images/0.jpg", quality=95)
    (tmp_path / "manifest.json").write_text(json.dumps({"case_id": "c", "image_files": ["images/0.jpg"]}))
    item = captions.load(tmp_path, CAPTION)
    text = captions.measured(item)
    assert all(words in text for words in said)
    captions.save(text, tmp_path, CAPTION)
    assert captions.inspect(item, tmp_path, CAPTION, show=lambda *_: None) == []
    assert captions.quality(item, captions.template(item), captions.template) == 0


def test_a_report_has_the_sections_that_are_asked_for(script, tmp_path):
    report = script("report")
    limits = {"min_chars": 40, "max_chars": 8000, "min_letters": 20}
    for sections in (["findings"], ["findings", "impression"]):
        task = {"files": ["report.txt"], "output": limits | {"sections": sections}}
        report.save(report.template({}), tmp_path, task)
        text = (tmp_path / "report.txt").read_text()
        assert text.startswith("Findings: ")
        assert ("Impression: " in text) == ("impression" in sections)
