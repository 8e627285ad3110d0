"""Previews show input and submission, small; and references where the data's terms allow it, nowhere else."""

from __future__ import annotations

import io
import json
import shutil

import nibabel
import numpy as np
import pytest
from PIL import Image

from evaluator.pictures import (
    BONE,
    FALSE,
    HIT,
    LINE,
    LUNG,
    MAX_BYTES,
    MISSED,
    PALETTE,
    PANEL,
    SOFT_TISSUE,
    Mark,
    Structure,
    _webp,
    box_picture,
    image_picture,
    mask_picture,
    window_for,
)
from evaluator.preview import MAX_CASES, may_show_references, write_previews
from tasks.manifest import Manifest
from tasks.schema import Redistribution, Release

DRAWN = ["segmentation", "labelmap", "enhancement", "synthesis", "detection"]
OTHERS = {
    "segmentation": lambda path: _save_like(path, np.zeros_like),
    "labelmap": lambda path: _save_like(path, np.zeros_like),
    "synthesis": lambda path: _save_like(path, lambda data: data[::-1]),
    "enhancement": lambda path: np.save(path, np.load(path)[::-1]),
    "detection": lambda path: path.write_text(
        json.dumps({"boxes": [{"class": "dot", "x1": 3, "y1": 20, "x2": 40, "y2": 44}]})
    ),
}
"""Ways to turn a reference into another valid one."""


def _save_like(path, change) -> None:
    image = nibabel.load(path)
    nibabel.save(nibabel.Nifti1Image(change(np.asanyarray(image.dataobj)), image.affine), path)


def previews(staged, out, redistribution=Redistribution.NONE, release=Release.PHANTOM) -> dict[str, bytes]:
    manifest = staged.manifest.model_copy(update={"redistribution": redistribution, "release": release})
    write_previews(staged.task, manifest, staged.submission, staged.private, staged.public, out, 2)
    return {path.stem: path.read_bytes() for path in out.iterdir()} if out.exists() else {}


def decoded(raw: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB")).astype(int)


def has(pixels: np.ndarray, colour: tuple[int, int, int], near: int = 70) -> bool:
    """WebP blurs thin lines, so a colour counts when some pixel comes near it."""
    return bool((np.abs(pixels - np.array(colour)).max(axis=2) < near).any())


@pytest.mark.parametrize("track", DRAWN)
def test_valid_cases_are_drawn_and_broken_ones_left_out(stage, track: str, tmp_path) -> None:
    staged = stage(track)
    staged.output("c2").write_bytes(b"broken")
    pictures = previews(staged, tmp_path / "out", Redistribution.ALLOWED)
    assert sorted(pictures) == ["c1", "c3"]
    for picture in pictures.values():
        assert Image.open(io.BytesIO(picture)).format == "WEBP"
        assert len(picture) <= MAX_BYTES


@pytest.mark.parametrize("track", ["vqa", "report", "classification"])
def test_texts_need_no_picture(stage, track: str, tmp_path) -> None:
    assert previews(stage(track), tmp_path / "out", Redistribution.ALLOWED) == {}


@pytest.mark.parametrize("redistribution", [Redistribution.NONE, Redistribution.DERIVED])
@pytest.mark.parametrize("track", DRAWN)
def test_another_reference_changes_no_pixel_unless_allowed(stage, track, redistribution, tmp_path) -> None:
    staged = stage(track)
    hidden = previews(staged, tmp_path / "hidden", redistribution)
    shown = previews(staged, tmp_path / "shown", Redistribution.ALLOWED)
    for case in staged.cases:
        for name in staged.task.references:
            OTHERS[track](staged.private / case / name)
    assert previews(staged, tmp_path / "hidden-2", redistribution) == hidden
    again = previews(staged, tmp_path / "shown-2", Redistribution.ALLOWED)
    assert sorted(hidden) == sorted(again) == staged.cases
    assert all(again[case] != shown[case] != hidden[case] for case in ("c1", "c2"))


@pytest.mark.parametrize("track", DRAWN)
def test_without_permission_the_references_are_not_even_opened(stage, track: str, tmp_path) -> None:
    staged = stage(track)
    shutil.rmtree(staged.private)
    assert sorted(previews(staged, tmp_path / "out")) == staged.cases


@pytest.mark.parametrize(
    ("staged_under", "of_the_task", "release", "shown"),
    [
        ("allowed", "allowed", "lite", True),
        ("allowed", "none", "lite", False),
        ("derived", "allowed", "full", False),
        ("none", "allowed", "lite", False),
        ("allowed", "none", "phantom", True),
        ("derived", "none", "phantom", False),
    ],
)
def test_both_the_manifest_and_the_task_must_allow(stage, staged_under, of_the_task, release, shown) -> None:
    staged = stage("detection")
    source = staged.task.source.model_copy(update={"redistribution": Redistribution(of_the_task)})
    manifest = staged.manifest.model_dump() | {"redistribution": staged_under, "release": release}
    task = staged.task.model_copy(update={"source": source})
    assert may_show_references(task, Manifest.model_validate(manifest)) is shown


def test_pictures_are_bounded_in_number(stage, tmp_path) -> None:
    staged = stage("detection")
    case = staged.manifest.cases[0]
    many = tuple(case.model_copy(update={"id": f"c{n}"}) for n in range(1, MAX_CASES + 4))
    for copy in many[3:]:
        for side in (staged.public, staged.private, staged.submission):
            shutil.copytree(side / "c1", side / copy.id)
    crowded = type(staged)(staged.task, staged.manifest.model_copy(update={"cases": many}), staged.root)
    assert len(previews(crowded, tmp_path / "out")) == MAX_CASES


def test_noise_fits_into_the_bytes_too() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), np.uint8)
    assert len(_webp(Image.fromarray(noise))) <= MAX_BYTES


# --- masks ---

SHAPE = (60, 50, 40)


def cube(low: int, high: int) -> np.ndarray:
    labels = np.zeros(SHAPE, np.uint8)
    labels[low:high, low:high, low:high] = 1
    return labels


def drawn_masks(prediction: np.ndarray, reference: np.ndarray | None, **options) -> np.ndarray:
    sides = [
        None if side is None else [Structure("lesion", side, (1,), **options)]
        for side in (prediction, reference)
    ]
    return decoded(mask_picture(np.full(SHAPE, -1000.0), (1.0, 1.0, 1.0), SOFT_TISSUE, sides[0], sides[1]))


def test_prediction_alone_is_one_row_with_its_outline() -> None:
    pixels = drawn_masks(cube(10, 30), None)
    assert pixels.shape[0] < 1.2 * PANEL
    assert has(pixels, PALETTE[0])
    assert not has(pixels, HIT)


def test_hits_false_and_missed_voxels_have_their_colours() -> None:
    blends = [tuple(int(0.6 * part) for part in colour) for colour in (HIT, FALSE, MISSED)]

    def third_row(prediction: np.ndarray, reference: np.ndarray) -> list[bool]:
        pixels = drawn_masks(prediction, reference)
        row = pixels[int(pixels.shape[0] * 0.68) : -LINE]
        return [has(row, blend, near=25) for blend in blends]

    assert third_row(cube(5, 20), cube(12, 32)) == [True, True, True]
    assert third_row(cube(12, 32), cube(12, 32)) == [True, False, False]
    assert third_row(cube(0, 0), cube(12, 32)) == [False, False, True]


def test_the_slices_go_through_the_largest_lesion() -> None:
    labels = np.zeros(SHAPE, np.uint8)
    labels[50:52, 1:3, 1:3] = 1
    labels[2:4, 40:45, 30:38] = 1  # the larger one
    labels[20:55, 10:40, 5:20] = 2  # an organ, larger than both
    both = [Structure("organ", labels, (2,)), Structure("lesion", labels, (1,), lesion=True)]
    pixels = decoded(mask_picture(np.zeros(SHAPE), (1.0, 1.0, 1.0), (0.0, 1.0), both, None))
    assert has(pixels[:-16], PALETTE[1])
    sagittal = pixels[:-16, -int(50 / 60 * PANEL) :]
    row, column = np.argwhere(np.abs(sagittal - PALETTE[1]).max(axis=2) < 70).mean(axis=0)
    # head up: z 34 of 40 lies high; front at the left: y 42 of 50 lies left
    assert row < 0.3 * 40 / 60 * PANEL
    assert column < 0.3 * 50 / 60 * PANEL


def test_many_labels_are_burnt_into_one_picture() -> None:
    labels = np.zeros(SHAPE, np.uint8)
    labels[5:55, 5:45, 5:35] = np.arange(1, 51)[:, None, None]
    structures = [Structure(f"s{n}", labels, (n,)) for n in range(1, 51)]
    pixels = decoded(mask_picture(np.zeros(SHAPE), (1.0, 1.0, 1.0), (0.0, 1.0), structures, None))
    assert all(has(pixels, colour) for colour in PALETTE)


def test_nothing_to_see_and_a_volume_of_one_slice_are_drawn_too() -> None:
    empty = np.zeros((30, 20, 1), np.uint8)
    raw = mask_picture(
        np.zeros(empty.shape), (1.0, 1.0, 5.0), (0.0, 1.0), [Structure("a", empty, (1,))], None
    )
    assert decoded(raw).max() < 256


def test_windows() -> None:
    ct = np.linspace(-1000, 1500, 100)
    assert window_for(ct, "KiTS abdominal CT") == SOFT_TISSUE
    assert window_for(ct, "Airways, thoracic CT") == LUNG
    assert window_for(ct, "Vertebrae, CT") == BONE
    low, high = window_for(np.append(np.linspace(0, 400, 10_000), 60_000), "lung MRI")
    assert 0 <= low < 10
    assert 390 < high < 410
    assert window_for(np.zeros(5), "MRI")[1] > 0


# --- images and boxes ---


def test_the_difference_is_red_where_brighter_and_blue_where_darker() -> None:
    given, output = np.full((40, 40), 0.5), np.full((40, 40), 0.5)
    output[:20], output[20:] = 1.0, 0.0
    windows = ((0.0, 1.0), (0.0, 1.0))
    pixels = decoded(image_picture(given, output, None, windows))
    assert pixels.shape[1] == 3 * PANEL
    difference = pixels[30:, 2 * PANEL + 5 :]
    assert has(difference[:40], (255, 0, 0))
    assert has(difference[-40:], (0, 0, 255))
    allowed = decoded(image_picture(given, output, output, windows))
    assert allowed.shape[1] == 4 * PANEL
    assert allowed[30:, 3 * PANEL + 5 :].min() > 240


def test_a_smaller_input_is_shown_at_the_size_of_the_output() -> None:
    small, large = np.random.default_rng(0).random((16, 12)), np.full((64, 48), 0.5)
    pixels = decoded(image_picture(small, large, None, ((0.0, 1.0), (0.0, 1.0))))
    assert pixels.shape[:2] == (PANEL, 3 * round(PANEL * 48 / 64))


def test_boxes_carry_their_scores_and_references_stay_below() -> None:
    pixels = np.zeros((100, 200, 3), np.uint8)
    box = Mark(1, (20.0, 20.0, 90.0, 90.0), 0.87)
    plain = decoded(box_picture(pixels, [box], None))
    assert has(plain, PALETTE[1])
    assert not has(plain, (255, 255, 255))
    unscored = decoded(box_picture(pixels, [Mark(1, box.corners)], None))
    assert (plain != unscored).any()
    assert has(decoded(box_picture(pixels, [box], [Mark(0, (120.0, 20.0, 150.0, 60.0))])), (255, 255, 255))


def test_boxes_far_away_and_thousands_of_them() -> None:
    far = Mark(0, (-1e9, -1e9, 1e9, 1e9), 1.0)
    assert len(box_picture(np.zeros((30, 30), np.uint16), [far] * 1000, [far] * 1000)) <= MAX_BYTES
