"""Chest, panoramic and wrist films with boxes: what is staged, what three readers agree on, what is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hf_datasets.phantoms import make_phantom
from hf_datasets.staging import StagingError, stage
from hf_datasets.staging.dicom_film import read_film
from hf_datasets.staging.readers_boxes import Mark, agreed, overlap

VINDR, DENTEX, WRIST = "vindr-cxr-det-task", "dentex-det-task", "grazpedwri-det-task"
Damage = tuple[Callable[[Path], object], str]


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("raw")
    for task_id in (VINDR, DENTEX, WRIST):
        make_phantom(task_id, root / task_id)
    return root


@pytest.fixture
def copied(phantoms: Path, tmp_path: Path) -> Callable[[str], Path]:
    import shutil

    return lambda task_id: Path(shutil.copytree(phantoms / task_id, tmp_path / "raw" / task_id))


def staged_boxes(task_id: str, raw: Path, out: Path) -> dict[str, list[dict]]:
    """Upstream id -> boxes."""
    manifest = stage(task_id, raw, out, release="phantom")
    private = out / "phantom" / task_id / "private"
    return {
        case.origin: json.loads((private / case.id / "boxes.json").read_text())["boxes"]
        for case in manifest.cases
    }


# --- three readers ---


def test_two_of_three_readers_are_enough_and_their_mean_is_taken() -> None:
    marks = [
        Mark("R1", "Nodule/Mass", (10, 10, 30, 30)),
        Mark("R2", "Nodule/Mass", (12, 10, 32, 30)),
        Mark("R3", "Nodule/Mass", (100, 100, 120, 120)),
        Mark("R3", "Consolidation", (11, 10, 31, 30)),
    ]
    assert agreed(marks) == [("Nodule/Mass", (11, 10, 31, 30))]


def test_one_reader_cannot_agree_with_himself() -> None:
    twice = [Mark("R1", "ILD", (0, 0, 10, 10)), Mark("R1", "ILD", (0, 0, 10, 11))]
    assert agreed(twice) == []
    assert len(agreed([*twice, Mark("R2", "ILD", (0, 0, 10, 10.4))])) == 1


def test_half_an_overlap_is_enough_and_less_is_not() -> None:
    box = (0.0, 0.0, 30.0, 10.0)
    half, less = (10.0, 0.0, 40.0, 10.0), (11.0, 0.0, 41.0, 10.0)
    assert overlap(box, half) == pytest.approx(0.5)
    assert agreed([Mark("R1", "ILD", box), Mark("R2", "ILD", half)])
    assert not agreed([Mark("R1", "ILD", box), Mark("R2", "ILD", less)])


corner = st.integers(0, 60)
marks = st.builds(
    lambda reader, name, x, y, w, h: Mark(reader, name, (x, y, x + w, y + h)),
    st.sampled_from(["R1", "R2", "R3"]),
    st.sampled_from(["ILD", "Atelectasis"]),
    corner, corner, st.integers(1, 40), st.integers(1, 40),
)  # fmt: skip


@given(st.lists(marks, max_size=9), st.randoms())
def test_order_does_not_matter_and_nothing_is_invented(some: list[Mark], random) -> None:
    found = agreed(some)
    shuffled = list(some)
    random.shuffle(shuffled)
    assert agreed(shuffled) == found
    named = Counter(mark.name for mark in some)
    for name, count in Counter(name for name, _ in found).items():
        assert 2 * count <= named[name]
    for name, box in found:
        corners = [mark.corners for mark in some if mark.name == name]
        assert all(min(c[i] for c in corners) <= box[i] <= max(c[i] for c in corners) for i in range(4))


# --- what is staged ---


def test_chest_films_have_the_boxes_that_readers_agree_on(phantoms, tmp_path) -> None:
    boxes = staged_boxes(VINDR, phantoms / VINDR, tmp_path)
    names = Counter(box["class"] for film in boxes.values() for box in film)
    assert names == {
        "Cardiomegaly": 2, "Aortic enlargement": 2, "Pleural effusion": 2, "Pneumothorax": 1, "Nodule/Mass": 2,
        "Consolidation": 1,
    }  # fmt: skip
    assert sum(not film for film in boxes.values()) == 2


def test_a_film_is_bright_where_the_body_is_dense_whatever_its_photometry(phantoms) -> None:
    turned = 0
    for path in (phantoms / VINDR / "train").iterdir():
        turned += pydicom.dcmread(path).PhotometricInterpretation == "MONOCHROME1"
        film = read_film(path)
        assert film.min() == 0
        assert film.max() == 255
        spine, corner = film[150:200, 145:160].mean(), film[2:10, 70:90].mean()
        assert spine > 170 > corner
    assert turned == 1


def test_rare_labels_count_as_other_lesion(copied, tmp_path) -> None:
    raw = copied(VINDR)
    table = raw / "annotations/annotations_train.csv"
    table.write_text(table.read_text().replace("Nodule/Mass", "Lung cyst"))
    names = {box["class"] for film in staged_boxes(VINDR, raw, tmp_path / "out").values() for box in film}
    assert "Other lesion" in names
    assert "Nodule/Mass" not in names


def test_teeth_keep_their_disease_and_their_frame(phantoms, tmp_path) -> None:
    table = next(path for path in (phantoms / DENTEX).rglob("train_quadrant*.json"))
    content = json.loads(table.read_text())
    diseases = {entry["id"]: entry["name"] for entry in content["categories_3"]}
    names = {image["id"]: Path(image["file_name"]).stem for image in content["images"]}
    expected: dict[str, list] = {name: [] for name in names.values()}
    for tooth in content["annotations"]:
        x, y, wide, high = tooth["bbox"]
        expected[names[tooth["image_id"]]].append(
            [diseases[tooth["category_id_3"]], x, y, x + wide, y + high]
        )
    found = staged_boxes(DENTEX, phantoms / DENTEX, tmp_path)
    assert {
        name: [[box["class"], box["x1"], box["y1"], box["x2"], box["y2"]] for box in boxes]
        for name, boxes in found.items()
    } == expected
    assert {box["class"] for boxes in found.values() for box in boxes} == set(diseases.values())
    assert any(not boxes for boxes in found.values())


def test_dark_is_where_the_disease_is(phantoms) -> None:
    """Periapical lesions are darker than bone, and the healthy film has no such spot beside a root."""
    table = next(path for path in (phantoms / DENTEX).rglob("train_quadrant*.json"))
    content = json.loads(table.read_text())
    for tooth in content["annotations"]:
        if tooth["category_id_3"] != 2:
            continue
        name = next(image["file_name"] for image in content["images"] if image["id"] == tooth["image_id"])
        film = np.asarray(Image.open(table.parent / "xrays" / name))
        x, y, wide, high = tooth["bbox"]
        upper = tooth["category_id_1"] < 2
        tip = film[y : y + 8, x : x + wide] if upper else film[y + high - 8 : y + high, x : x + wide]
        assert np.percentile(tip, 20) < 70


def test_wrists_come_once_a_patient_with_boxes_in_pixels(phantoms, tmp_path) -> None:
    raw = phantoms / WRIST
    boxes = staged_boxes(WRIST, raw, tmp_path)
    with (raw / "dataset.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert len(boxes) == len({row["patient_id"] for row in rows}) == len(rows) - 1
    shown = {row["filestem"]: row for row in rows}
    for stem, found in boxes.items():
        kinds = {box["class"] for box in found}
        assert ("fracture" in kinds) == (shown[stem]["fracture_visible"] == "1")
        assert ("metal" in kinds) == (shown[stem]["metal"] == "1")
        assert "text" in kinds
    pixels = [path for path in (tmp_path / "phantom" / WRIST / "public").rglob("*.png")]
    assert {np.asarray(Image.open(path)).dtype for path in pixels} == {np.dtype("uint8")}


def test_what_is_framed_stands_out(phantoms, tmp_path) -> None:
    manifest = stage(WRIST, phantoms / WRIST, tmp_path, release="phantom")
    folder = tmp_path / "phantom" / WRIST
    for case in manifest.cases:
        film = np.asarray(Image.open(folder / "public" / case.id / "image.png").convert("L")).astype(float)
        for box in json.loads((folder / "private" / case.id / "boxes.json").read_text())["boxes"]:
            inside = film[round(box["y1"]) : round(box["y2"]), round(box["x1"]) : round(box["x2"])]
            if box["class"] in ("text", "metal"):
                assert inside.max() > 230
            if box["class"] == "fracture" and inside.max() < 230:
                assert inside.min() < inside.mean() - 40


# --- damage ---


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def swap(first: Path, second: Path) -> None:
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def a_file(raw: Path, pattern: str, place: int = 0) -> Path:
    return sorted(raw.rglob(pattern))[place]


def replaced(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def vindr_table(raw: Path) -> Path:
    return raw / "annotations/annotations_train.csv"


def without_a_reader(raw: Path) -> None:
    rows = vindr_table(raw).read_text().splitlines()
    first, reader = rows[1].split(",")[:2]
    kept = [row for row in rows if not row.startswith(f"{first},{reader},")]
    vindr_table(raw).write_text("\n".join(kept) + "\n")


def one_frame_twice(raw: Path) -> None:
    path = a_file(raw, "*.dicom")
    image = pydicom.dcmread(path)
    image.Rows, image.NumberOfFrames = image.Rows // 2, 2
    image.save_as(path)


def small_film(raw: Path) -> None:
    """Another film under the name of one with marks at its border."""
    for path in raw.rglob("*.dicom"):
        image = pydicom.dcmread(path)
        pixels = image.pixel_array[::3, ::3]
        image.Rows, image.Columns = pixels.shape
        image.PixelData = pixels.tobytes()
        image.save_as(path)


def dentex_table(raw: Path) -> Path:
    return next(raw.rglob("train_quadrant_enumeration_disease.json"))


def with_table(raw: Path, change: Callable[[dict], object]) -> None:
    content = json.loads(dentex_table(raw).read_text())
    change(content)
    dentex_table(raw).write_text(json.dumps(content))


def halved(path: Path) -> None:
    with Image.open(path) as image:
        image.resize((image.width // 2, image.height // 2)).save(path)


def another_patient(raw: Path) -> None:
    rows = (raw / "dataset.csv").read_text().splitlines()
    stem, _, *rest = rows[1].split(",")
    rows[1] = ",".join([stem, "6099", *rest])
    (raw / "dataset.csv").write_text("\n".join(rows) + "\n")


def label_of_a_case(raw: Path) -> Path:
    return a_file(raw, "labels/*.txt")


DAMAGES: dict[str, dict[str, Damage]] = {
    VINDR: {
        "no table": (lambda raw: vindr_table(raw).unlink(), "expected the readers' marks"),
        "no films": (lambda raw: (raw / "train").rename(raw / "test"), "expected train/"),
        "missing reader": (without_a_reader, "expected 3 readers"),
        "film without rows": (
            lambda raw: a_file(raw, "*.dicom").rename(raw / "train" / f"{'0' * 32}.dicom"),
            "found none for 0000",
        ),
        "extra file": (lambda raw: (raw / "train/notes.txt").write_text("x"), "unexpected notes.txt"),
        "other columns": (lambda raw: replaced(vindr_table(raw), "rad_id", "reader"), "expected the columns rad_id"),
        "unknown class": (
            lambda raw: replaced(vindr_table(raw), "Pneumothorax", "Broken heart"),
            "found 'Broken heart'",
        ),
        "half a box": (
            lambda raw: replaced(vindr_table(raw), "Pneumothorax,", "Pneumothorax,x"),
            "expected four numbers",
        ),
        "truncated film": (lambda raw: cut(a_file(raw, "*.dicom")), "cannot be read"),
        "no DICOM": (lambda raw: a_file(raw, "*.dicom").write_bytes(b"PNG" * 100), "not a DICOM file"),
        "two frames": (one_frame_twice, "expected one grey film"),
        "films of another size": (small_film, "expected a box inside the picture"),
    },
    DENTEX: {
        "no table": (lambda raw: dentex_table(raw).unlink(), "expected one train_quadrant"),
        "table cut short": (lambda raw: cut(dentex_table(raw)), "not JSON"),
        "no diseases": (
            lambda raw: with_table(raw, lambda table: table.pop("categories_3")),
            "found no 'categories_3'",
        ),
        "other diseases": (lambda raw: replaced(dentex_table(raw), "Impacted", "Filling", 9), "found Caries"),
        "missing picture": (lambda raw: a_file(raw, "xrays/*.png").unlink(), "expected the pictures of"),
        "extra picture": (
            lambda raw: (a_file(raw, "xrays/*.png").parent / "x.png").write_bytes(b""),
            "does not list x.png",
        ),
        "resized picture": (lambda raw: halved(a_file(raw, "xrays/*.png")), "expected the size of"),
        "truncated picture": (lambda raw: cut(a_file(raw, "xrays/*.png")), "not a complete picture"),
        "strange tooth": (
            lambda raw: with_table(raw, lambda table: table["annotations"][0].update(image_id=999)),
            "expected the id of a picture",
        ),
        "box outside": (
            lambda raw: with_table(raw, lambda table: table["annotations"][0].update(bbox=[900, 5, 50, 50])),
            "expected a box inside",
        ),
        "unknown disease": (
            lambda raw: with_table(raw, lambda table: table["annotations"][0].update(category_id_3=7)),
            "expected a disease of",
        ),
        "a picture twice": (
            lambda raw: with_table(raw, lambda table: table["images"].append(table["images"][0])),
            "expected each picture once",
        ),
    },
    WRIST: {
        "no labels": (
            lambda raw: (raw / "folder_structure").rename(raw / "structure"),
            "expected folder_structure/yolov5/labels/",
        ),
        "missing label": (lambda raw: label_of_a_case(raw).unlink(), "expected "),
        "no table": (lambda raw: (raw / "dataset.csv").unlink(), "expected this table"),
        "unlisted film": (
            lambda raw: (raw / "images_part1/0001_1_01_WRI-L1_F004.png").write_bytes(
                a_file(raw, "*.png").read_bytes()
            ),
            "does not list 0001_1_01",
        ),
        "film twice": (
            lambda raw: (raw / "images_part2" / a_file(raw, "images_part1/*.png").name).write_bytes(b""),
            "is there twice",
        ),
        "unknown class": (lambda raw: label_of_a_case(raw).write_text("11 0.5 0.5 0.1 0.1\n"), "found '11'"),
        "short line": (lambda raw: label_of_a_case(raw).write_text("3 0.5 0.5 0.1\n"), "expected four numbers"),
        "box outside": (
            lambda raw: label_of_a_case(raw).write_text("3 0.9 0.5 0.5 0.1\n"),
            "expected a box inside",
        ),
        "truncated film": (lambda raw: [cut(path) for path in raw.rglob("*.png")], "not a complete picture"),
        "swapped patients": (
            another_patient,
            "expected a film named after its patient",
        ),
        "no parts": (
            lambda raw: [part.rename(raw / f"old{part.name[-1]}") for part in list(raw.glob("images_part*"))],
            "expected folders images_part1/",
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("task_id", "damage", "words"),
    [
        pytest.param(task_id, damage, words, id=f"{task_id}: {name}")
        for task_id, damages in DAMAGES.items()
        for name, (damage, words) in damages.items()
    ],
)
def test_a_damaged_source_is_refused_whole(task_id, damage, words, copied, tmp_path) -> None:
    raw = copied(task_id)
    damage(raw)
    with pytest.raises(StagingError) as caught:
        stage(task_id, raw, tmp_path / "data", release="phantom")
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert len(message) < 600
    assert [path for path in (tmp_path / "data").rglob("*") if path.suffix != ".lock"] in (
        [],
        [tmp_path / "data" / "phantom"],
    )
