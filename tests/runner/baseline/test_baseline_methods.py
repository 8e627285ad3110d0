"""The methods on small pictures drawn here, where the right answer is known by construction."""

from __future__ import annotations

import json

import nibabel as nib
import numpy as np
import pytest
from PIL import Image, ImageDraw

MASKS = {"files": ["organ.nii.gz", "lesion.nii.gz"], "output": {"files": [{"grid_of": "ct.nii.gz"}]}}
IMAGE = {"files": ["enhanced.npy"], "output": {"shape_of": "input.npy"}}
BOXES = {
    "files": ["prediction.json"],
    "output": {"image": "image.png", "max_detections": 100, "classes": ["platelets", "rbc", "wbc"]},
}
ANSWER = {"files": ["answer.json"], "output": {"mode": "open"}}
REPORT = {
    "files": ["report.txt"],
    "output": {"min_chars": 40, "max_chars": 8000, "min_letters": 20, "sections": ["findings", "impression"]},
}


def dice(one, other):
    return 2 * (one & other).sum() / (one.sum() + other.sum())


# --- segmentation -----------------------------------------------------------------------------------------------------


def abdomen(spacing):
    """RAS array of HU with spine, two kidneys and a bulge on one of them; kidney and bulge masks."""
    size = [round(length / step) for length, step in zip((280, 200, 190), spacing, strict=True)]
    x, y, z = np.meshgrid(
        *(np.arange(n) * step for n, step in zip(size, spacing, strict=True)), indexing="ij"
    )

    def ball(centre, radii):
        return sum(((a - c) / r) ** 2 for a, c, r in zip((x, y, z), centre, radii, strict=True)) < 1

    hu = np.full(size, -1000.0)
    hu[((x - 140) / 130) ** 2 + ((y - 100) / 90) ** 2 < 1] = -90
    hu[((x - 140) / 22) ** 2 + ((y - 60) / 20) ** 2 < 1] = 400
    kidneys = ball((75, 70, 95), (27, 25, 55)) | ball((205, 70, 95), (27, 25, 55))
    bulge = ball((55, 90, 95), (20, 20, 20)) & ~kidneys
    hu[kidneys], hu[bulge] = 170, 75
    return hu + np.random.default_rng(5).normal(0, 12, size), kidneys, bulge


@pytest.mark.parametrize(
    ("codes", "spacing"), [("RAS", (2.5, 2.5, 4.0)), ("IPL", (2.5, 2.5, 4.0)), ("LPS", (1.2, 1.2, 2.4))]
)
def test_kidneys_and_bulge_are_found_in_any_orientation_and_spacing(script, tmp_path, codes, spacing):
    segmentation = script("segmentation")
    hu, kidneys, bulge = abdomen(spacing)
    image = nib.Nifti1Image(hu.astype(np.int16), np.diag([*spacing, 1.0]))
    turn = nib.orientations.ornt_transform(
        nib.io_orientation(image.affine), nib.orientations.axcodes2ornt(codes)
    )
    nib.save(image.as_reoriented(turn), tmp_path / "ct.nii.gz")
    item = segmentation.load(tmp_path, MASKS)
    segmentation.save(segmentation.with_priors(item), tmp_path, MASKS)
    found = {
        name: np.asarray(nib.as_closest_canonical(nib.load(tmp_path / f"{name}.nii.gz")).dataobj) > 0
        for name in ("organ", "lesion")
    }
    assert dice(found["organ"], kidneys | bulge) > 0.9
    assert dice(found["lesion"], bulge) > 0.7
    assert segmentation.inspect(item, tmp_path, MASKS, show=lambda *_: None) == []


def test_without_a_bulge_there_is_no_lesion_and_nothing_is_an_empty_scan(script, tmp_path):
    segmentation = script("segmentation")
    hu, _, bulge = abdomen((2.5, 2.5, 4.0))
    hu[bulge] = -90
    for name, values in (("healthy", hu), ("air", np.full_like(hu, -1000))):
        folder = tmp_path / name
        folder.mkdir()
        nib.save(
            nib.Nifti1Image(values.astype(np.int16), np.diag([2.5, 2.5, 4.0, 1.0])), folder / "ct.nii.gz"
        )
    assert segmentation.with_priors(segmentation.load(tmp_path / "healthy", MASKS))["lesion"].sum() == 0
    assert segmentation.with_threshold(segmentation.load(tmp_path / "air", MASKS))["organ"].sum() == 0


# --- enhancement ------------------------------------------------------------------------------------------------------


def slices(seed=3):
    """A clean slice with organs and edges, and the same with coloured noise."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:128, :128]
    clean = np.where(np.hypot(x - 64, y - 64) < 55, 40.0, -1000.0)
    clean[np.hypot(x - 80, y - 50) < 12] = 160
    clean[(abs(x - 40) < 4) & (abs(y - 70) < 20)] = 700
    noise = gaussian_filter(rng.normal(size=clean.shape), 0.7)
    return clean, (clean + 50 * noise / noise.std()).astype(np.float32)


@pytest.mark.parametrize("how", ["dct", "nlm", "tv"])
def test_every_restoration_comes_nearer_to_the_truth_and_passes_its_own_check(script, tmp_path, how):
    enhancement = script("enhancement")
    clean, noisy = slices()
    np.save(tmp_path / "input.npy", noisy)
    item = enhancement.load(tmp_path, IMAGE)
    result = enhancement.METHODS[how](item)
    assert np.sqrt(np.mean((result - clean) ** 2)) < 0.7 * np.sqrt(np.mean((noisy - clean) ** 2))
    assert result.min() >= noisy.min()
    assert result.max() <= noisy.max()
    enhancement.save(result, tmp_path, IMAGE)
    assert enhancement.inspect(item, tmp_path, IMAGE, show=lambda *_: None) == []


@pytest.mark.parametrize("how", ["dct", "nlm", "tv"])
def test_a_slice_without_noise_or_body_stays_as_it_is(script, how):
    enhancement = script("enhancement")
    for value in (0.0, -1024.0):
        flat = np.full((40, 48), value, np.float32)
        assert np.allclose(enhancement.METHODS[how]({"image": flat}), flat, atol=1e-3)


def test_a_copy_a_blur_and_a_wrong_shape_do_not_pass_the_check(script, tmp_path):
    from scipy.ndimage import gaussian_filter

    enhancement = script("enhancement")
    _, noisy = slices()
    item = {"image": noisy}
    problems = []
    for result in (noisy, gaussian_filter(noisy, 8), noisy[:-1]):
        enhancement.save(result, tmp_path, IMAGE)
        problems.append(enhancement.inspect(item, tmp_path, IMAGE, show=lambda *_: None))
    assert problems[0] == ["no noise was removed"]
    assert "edges or mean were lost" in problems[1]
    assert "shape" in problems[2][0]


# --- detection --------------------------------------------------------------------------------------------------------


def smear(path):
    """A drawn smear; returns the boxes."""
    image = Image.new("RGB", (320, 240), (228, 216, 224))
    pen = ImageDraw.Draw(image)
    red = [(30, 30, 70, 70), (66, 40, 106, 80), (200, 30, 240, 72), (150, 170, 190, 210), (40, 160, 82, 200)]
    for box in red:
        pen.ellipse(box, fill=(215, 150, 155))
    pen.ellipse((240, 120, 310, 190), fill=(196, 180, 216))
    pen.ellipse((258, 135, 292, 172), fill=(90, 50, 130))
    pen.ellipse((130, 90, 144, 104), fill=(130, 85, 165))
    image.save(path)
    return {"rbc": red, "wbc": [(240, 120, 310, 190)], "platelets": [(130, 90, 144, 104)]}


def test_cells_of_a_drawn_smear_are_found_touching_ones_too(script, tmp_path):
    detection = script("detection")
    truth = smear(tmp_path / "image.png")
    item = detection.load(tmp_path, BOXES)
    boxes = detection.watershed_cells(item)
    for name, wanted in truth.items():
        found = [box for box in boxes if box["class"] == name]
        assert len(found) == len(wanted)
        for corners in wanted:
            cell = dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
            assert max(detection.overlap(box, cell) for box in found) > 0.6
    detection.save(boxes, tmp_path, BOXES)
    assert detection.inspect(item, tmp_path, BOXES, show=lambda *_: None) == []


def test_an_empty_field_has_no_boxes_and_that_is_said(script, tmp_path):
    detection = script("detection")
    Image.new("RGB", (64, 64), (228, 216, 224)).save(tmp_path / "image.png")
    item = detection.load(tmp_path, BOXES)
    for find in detection.METHODS.values():
        assert find(item) == []
    detection.save([], tmp_path, BOXES)
    assert detection.inspect(item, tmp_path, BOXES, show=lambda *_: None) == ["no box at all"]


# --- chest films: report and questions --------------------------------------------------------------------------------


def film(path, heart=60, effusion=False):
    """A drawn frontal film; ``effusion`` fills the angle on the picture's left, the patient's right."""
    image = Image.new("L", (300, 330), 215)
    pen = ImageDraw.Draw(image)
    pen.polygon([(40, 270), (60, 60), (100, 40), (135, 80), (135, 240), (90, 245)], fill=85)
    pen.polygon([(260, 270), (240, 60), (200, 40), (165, 80), (165, 240), (210, 245)], fill=85)
    pen.ellipse((150 - heart, 150, 150 + heart, 150 + 1.6 * heart), fill=220)
    if effusion:
        pen.polygon([(30, 190), (140, 246), (90, 280), (30, 280)], fill=215)
    image.save(path)
    return path


def test_heart_size_and_fluid_are_measured_on_drawn_films(script, tmp_path):
    chest = script("chest")
    normal = chest.measure(chest.film(film(tmp_path / "a.png", heart=45)))
    big = chest.measure(chest.film(film(tmp_path / "b.png", heart=70)))
    wet = chest.measure(chest.film(film(tmp_path / "c.png", heart=45, effusion=True)))
    assert normal["ratio"] < 0.5 < big["ratio"]
    assert (normal["effusion"], wet["effusion"]) == ([], ["right"])
    assert chest.measure(np.full((330, 300), 128, np.float32)) is None


def study(tmp_path, name, **drawn):
    (tmp_path / name).mkdir()
    film(tmp_path / name / "0.png", **drawn)
    (tmp_path / name / "manifest.json").write_text(json.dumps({"case_id": name, "image_files": ["0.png"]}))
    return tmp_path / name


def test_reports_differ_with_the_films_and_pass_their_check(script, tmp_path):
    report = script("report")
    texts = {}
    for name, drawn in {
        "normal": {"heart": 45},
        "big": {"heart": 70},
        "wet": {"heart": 45, "effusion": True},
    }.items():
        item = report.load(study(tmp_path, name, **drawn), REPORT)
        texts[name] = report.measured(item)
        report.save(texts[name], tmp_path, REPORT)
        assert report.inspect(item, tmp_path, REPORT, show=lambda *_: None) == []
    assert "heart size is normal" in texts["normal"]
    assert "No acute cardiopulmonary abnormality" in texts["normal"]
    assert "Cardiomegaly" in texts["big"]
    assert "right pleural effusion" in texts["wet"]
    assert "No pneumothorax" in texts["wet"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What imaging modality was used?", "X-ray"),
        ("Is this an MRI of the brain?", "no"),
        ("Is this a radiograph?", "yes"),
        ("Is the heart visible?", "yes"),
        ("Are the kidneys visible in this image?", "no"),
        ("Is there a pleural effusion?", "yes"),
        ("Is the pleural effusion on the left side?", "no"),
        ("Is the pleural effusion on the right side?", "yes"),
        ("Which lung shows the effusion?", "right lung"),
        ("Which side is the effusion on?", "right"),
        ("Is this chest x-ray normal?", "no"),
        ("Is the heart enlarged?", "no"),
        ("In what plane is this image?", "PA"),
        ("What organ is shown?", "lungs"),
        ("What part of the body is this?", "chest"),
        ("How many lungs are there?", "2"),
    ],
)
def test_questions_about_a_drawn_film(script, tmp_path, question, answer):
    vqa = script("vqa")
    film(tmp_path / "image.png", heart=45, effusion=True)
    asked = {"question_id": tmp_path.name, "question": question, "image_paths": ["image.png"]}
    (tmp_path / "question.json").write_text(json.dumps(asked))
    item = vqa.load(tmp_path, ANSWER)
    result = vqa.METHODS["rules"](item)
    assert result["answer"] == answer
    vqa.save(result, tmp_path, ANSWER)
    assert vqa.inspect(item, tmp_path, ANSWER, show=lambda *_: None) == []


def test_an_option_is_named_by_its_letter(script):
    vqa = script("vqa")
    options = {"A": "Ultrasound", "B": "CT", "C": "X-ray film"}
    assert vqa.letter_of({"options": options, "answer": "X-ray"}) == "C"
    assert vqa.letter_of({"options": options, "answer": "liver"}) == "A"
    assert vqa.letter_of({"options": None, "answer": "yes"}) == ""
