"""Class folders, PatchCamelyon and ISIC: what is drawn, what is staged, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from hf_datasets.phantoms import brain_slice, dermoscopy
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.tissue import COLON, colon_tile, node_patch
from hf_datasets.staging import plan, stage
from tasks.registry import load_task

BRAIN, COLONS, FILMS = "braintumor-cls-task", "crc-histology-cls-task", "chest-xray-pneumonia-cls-task"
NODES, SKIN = "patchcamelyon-cls-task", "skin-lesion-cls-task"
ALL = (BRAIN, COLONS, FILMS, NODES, SKIN)
X, Y = (f"camelyonpatch_level_2_split_test_{part}.h5.gz" for part in "xy")
PICTURES, TRUTH = "ISIC2018_Task3_Test_Input", "ISIC2018_Task3_Test_GroundTruth"


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def first(folder: Path) -> Path:
    return min(path for path in folder.iterdir() if path.suffix != ".txt")


# --- phantoms ---


def test_colours_of_tissues_are_those_of_the_stain():
    tiles = {kind: colon_tile(kind, 128, rng_for(3, kind)).astype(float) for kind in COLON}
    light = {kind: tile.mean() for kind, tile in tiles.items()}
    chroma = {kind: np.ptp(tile, axis=2).mean() for kind, tile in tiles.items()}
    assert chroma["BACK"] < min(chroma[kind] for kind in COLON if kind != "BACK")
    assert light["BACK"] > light["ADI"] > light["STR"] > light["TUM"]
    dark = {kind: (tile[..., 1] < 112).mean() for kind, tile in tiles.items()}
    assert min(dark["LYM"], dark["TUM"]) > 2 * max(
        dark[kind] for kind in ("ADI", "BACK", "MUC", "MUS", "STR")
    )


@pytest.mark.parametrize("seed", range(6))
def test_only_tumour_in_the_middle_makes_a_patch_positive(seed):
    def wide_in_the_middle(**kind: bool) -> int:
        """Pixels of the central third that lie deep in a nucleus, dark or pale."""
        patch = ndimage.gaussian_filter(
            node_patch(size=96, rng=rng_for(seed, "node"), **kind).astype(float), (0.8, 0.8, 0)
        )
        depth = ndimage.distance_transform_edt(patch[..., 1] < 128)
        return int((depth[32:64, 32:64] > 3.4).sum())

    assert wide_in_the_middle(tumour=True, margin=False) > 0


def test_nuclei_of_tumour_are_wider_than_those_of_lymphocytes_at_the_border():
    wide = {kind: 0 for kind in (True, False)}
    for seed in range(8):
        for tumour in wide:
            patch = node_patch(size=96, rng=rng_for(seed, "wide"), tumour=tumour, margin=not tumour).astype(
                float
            )
            depth = ndimage.distance_transform_edt(ndimage.gaussian_filter(patch[..., 1], 0.8) < 128)
            wide[tumour] += int((depth[32:64, 32:64] > 3.4).sum())
    assert wide[True] > 3 * wide[False]


def test_tumours_of_the_brain_lie_where_their_kind_lies():
    places = {}
    for kind in brain_slice.KINDS:
        bright = [
            np.nonzero(
                ndimage.binary_opening(picture > 1.45 * np.median(picture[picture > 40]), iterations=3)
            )
            for picture in (brain_slice.paint(kind, rng_for(seed, kind)).astype(float) for seed in range(5))
        ]
        places[kind] = [(rows.mean(), columns.mean()) for rows, columns in bright if rows.size]
    half = brain_slice.SIZE / 2
    assert places["notumor"] == []
    assert all(abs(column - half) < 0.08 * half for _, column in places["pituitary"])
    away = [np.hypot(row - half, column - half) / half for row, column in places["meningioma"]]
    assert len(away) == 5
    assert min(away) > 0.45


def test_lesions_differ_in_the_colours_that_name_them():
    middles = {}
    for kind in dermoscopy.LESIONS:
        pictures = [dermoscopy.paint(kind, rng_for(seed, kind))[55:95, 75:125] for seed in range(4)]
        middles[kind] = np.mean(pictures, axis=(0, 1, 2))
    redness = {kind: colour[0] - colour[1] for kind, colour in middles.items()}
    assert max(redness, key=redness.get) == "VASC"
    assert min(middles, key=lambda kind: middles[kind].mean()) in ("MEL", "VASC")
    assert middles["DF"].mean() > middles["NV"].mean() + 40


# --- staging ---


@pytest.mark.parametrize("task_id", ALL)
def test_a_case_is_a_picture_and_the_name_of_a_class(task_id, staged_root, manifest_of):
    classes = load_task(task_id).output.classes
    found = Counter()
    for case in manifest_of(task_id).cases:
        with Image.open(staged_root / task_id / "public" / case.id / "image.jpg") as image:
            assert image.mode == "RGB"
        label = json.loads((staged_root / task_id / "private" / case.id / "label.json").read_text())
        assert set(label) == {"label"}
        found[label["label"]] += 1
    assert set(found) == set(classes)
    assert found.most_common(1)[0][0] == load_task(task_id).trivial.value


def test_only_the_test_part_of_folders_is_staged(raw_phantoms, manifest_of):
    for task_id, root in ((BRAIN, "Testing"), (COLONS, "CRC-VAL-HE-7K"), (FILMS, "chest_xray/test")):
        files = [path for path in (raw_phantoms / task_id / root).rglob("*") if path.is_file()]
        assert sorted(case.origin for case in manifest_of(task_id).cases) == sorted(
            f"{path.parent.name}/{path.stem}" for path in files
        )


def test_patches_keep_their_pixels_and_may_be_unpacked(raw_copy, staged_root, tmp_path):
    raw = raw_copy(NODES)
    for name in (X, Y):
        (raw / name).with_suffix("").write_bytes(gzip.decompress((raw / name).read_bytes()))
        (raw / name).unlink()
    with (
        h5py.File((raw / X).with_suffix(""), "r") as file,
        h5py.File((raw / Y).with_suffix(""), "r") as truth,
    ):
        patches, labels = file["x"][...], truth["y"][...].reshape(-1)
    for case in stage(NODES, raw, tmp_path, release="phantom").cases:
        index = int(case.origin.split("-")[1])
        folder = tmp_path / "phantom" / NODES
        label = json.loads((folder / "private" / case.id / "label.json").read_text())["label"]
        assert label == ("positive" if labels[index] else "negative")
        with Image.open(folder / "public" / case.id / "image.jpg") as image:
            assert np.abs(np.asarray(image).astype(int) - patches[index]).mean() < 6
        assert (staged_root / NODES / "private" / case.id / "label.json").read_text() == json.dumps(
            {"label": label}
        ) + "\n"


def test_a_limit_draws_some(raw_phantoms, tmp_path):
    chosen = plan(SKIN, raw_phantoms / SKIN, tmp_path, release="phantom", limit=5)
    assert (len(chosen.cases), chosen.available) == (5, 26)


def test_the_texts_that_upstream_packs_with_the_pictures_are_passed_over(raw_copy, tmp_path):
    raw = raw_copy(SKIN)
    for name in ("LICENSE.txt", "ATTRIBUTION.txt"):
        (raw / PICTURES / name).write_text("words")
    assert len(stage(SKIN, raw, tmp_path, release="phantom").cases) == 26


# --- damage ---


def swap_folders(first_folder: Path, second: Path) -> None:
    aside = first_folder.with_name("aside")
    first_folder.rename(aside)
    second.rename(first_folder)
    aside.rename(second)


FOLDER_DAMAGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "missing class": (
        BRAIN,
        lambda raw: shutil.rmtree(raw / "Testing/glioma"),
        "expected this folder of a class",
    ),
    "empty class": (
        BRAIN,
        lambda raw: [path.unlink() for path in (raw / "Testing/notumor").iterdir()],
        "expected pictures, found an empty folder",
    ),
    "extra class": (BRAIN, lambda raw: (raw / "Testing/other").mkdir(), "unexpected other"),
    "extra file": (
        BRAIN,
        lambda raw: (raw / "Testing/glioma/labels.csv").write_text("x"),
        "unexpected labels.csv",
    ),
    "swapped classes": (
        BRAIN,
        lambda raw: swap_folders(raw / "Testing/glioma", raw / "Testing/pituitary"),
        "belong in the folder of another class",
    ),
    "one tile misplaced": (
        COLONS,
        lambda raw: shutil.move(first(raw / "CRC-VAL-HE-7K/TUM"), raw / "CRC-VAL-HE-7K/NORM"),
        "belong in the folder of another class",
    ),
    "truncated tile": (COLONS, lambda raw: cut(first(raw / "CRC-VAL-HE-7K/MUC")), "not a complete picture"),
    "tiles of another kind": (
        COLONS,
        lambda raw: (raw / "CRC-VAL-HE-7K/ADI/ADI-TCGA-X.png").write_bytes(b"x"),
        "expected .tif or .tiff files only",
    ),
    "truncated film": (
        FILMS,
        lambda raw: cut(first(raw / "chest_xray/test/NORMAL")),
        "not a complete picture",
    ),
    "no test part": (
        FILMS,
        lambda raw: shutil.rmtree(raw / "chest_xray/test"),
        "expected chest_xray/test/ or test/",
    ),
}


def rewrite_h5(raw: Path, part: str, change: Callable[[np.ndarray], np.ndarray], name: str = "") -> None:
    path = raw / (X if part == "x" else Y)
    with h5py.File(io.BytesIO(gzip.decompress(path.read_bytes())), "r") as file:
        values = file[part][...]
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file[name or part] = change(values)
    path.write_bytes(gzip.compress(buffer.getvalue()))


def cut_inside(raw: Path) -> None:
    """A file that was cut before it was packed: the gzip stream is whole."""
    path = raw / X
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[: len(content) // 2]))


NODE_DAMAGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "missing labels": (
        NODES,
        lambda raw: (raw / Y).unlink(),
        "expected camelyonpatch_level_2_split_test_y.h5",
    ),
    "truncated archive": (NODES, lambda raw: cut(raw / X), "not a complete HDF5 file"),
    "truncated file": (NODES, cut_inside, "not a complete HDF5 file"),
    "no HDF5": (
        NODES,
        lambda raw: (raw / Y).write_bytes(gzip.compress(b"labels")),
        "not a complete HDF5 file",
    ),
    "swapped files": (NODES, lambda raw: swap_folders(raw / X, raw / Y), "expected the array x, found y"),
    "fewer labels": (NODES, lambda raw: rewrite_h5(raw, "y", lambda y: y[:-1]), "expected 22 labels"),
    "other labels": (
        NODES,
        lambda raw: rewrite_h5(raw, "y", lambda y: y + 1),
        "expected labels 0 and 1, found [1, 2]",
    ),
    "other size": (
        NODES,
        lambda raw: rewrite_h5(raw, "x", lambda x: x[:, :64, :64]),
        "expected uint8 patches of shape",
    ),
    "other type": (NODES, lambda raw: rewrite_h5(raw, "x", lambda x: x / 255), "found float64"),
    "other name": (
        NODES,
        lambda raw: rewrite_h5(raw, "x", lambda x: x, "images"),
        "expected the array x, found images",
    ),
}


def rewrite_truth(raw: Path, change: Callable[[list[dict[str, str]]], object]) -> None:
    path = raw / TRUTH / f"{TRUTH}.csv"
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    change(rows)
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, rows[0])
        writer.writeheader()
        writer.writerows(rows)


SKIN_DAMAGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "missing table": (SKIN, lambda raw: shutil.rmtree(raw / TRUTH), f"expected {TRUTH}/"),
    "missing picture": (SKIN, lambda raw: first(raw / PICTURES).unlink(), "found no ISIC_"),
    "extra picture": (
        SKIN,
        lambda raw: shutil.copy(first(raw / PICTURES), raw / PICTURES / "ISIC_0000001.jpg"),
        "unexpected ISIC_0000001.jpg",
    ),
    "truncated picture": (SKIN, lambda raw: cut(first(raw / PICTURES)), "not a complete picture"),
    "truncated table": (
        SKIN,
        lambda raw: cut(raw / TRUTH / f"{TRUTH}.csv", 0.62),
        "expected 8 fields in row",
    ),
    "two classes": (
        SKIN,
        lambda raw: rewrite_truth(raw, lambda rows: rows[0].update(MEL="1.0", NV="1.0")),
        "one class",
    ),
    "no class": (
        SKIN,
        lambda raw: rewrite_truth(raw, lambda rows: rows[0].update(dict.fromkeys(list(rows[0])[1:], "0.0"))),
        "expected one class with 1",
    ),
    "share of a class": (
        SKIN,
        lambda raw: rewrite_truth(raw, lambda rows: rows[0].update(MEL="0.4")),
        "one class",
    ),
    "text for a number": (
        SKIN,
        lambda raw: rewrite_truth(raw, lambda rows: rows[0].update(MEL="yes")),
        "expected numbers",
    ),
    "repeated id": (
        SKIN,
        lambda raw: rewrite_truth(raw, lambda rows: rows.append(rows[0])),
        "expected each image once",
    ),
}

DAMAGES = [
    pytest.param(task_id, damage, words, id=f"{task_id.split('-')[0]}: {name}")
    for damages in (FOLDER_DAMAGE, NODE_DAMAGE, SKIN_DAMAGE)
    for name, (task_id, damage, words) in damages.items()
]


@pytest.mark.parametrize(("task_id", "damage", "words"), DAMAGES)
def test_a_damaged_source_is_refused_in_one_line(task_id, damage, words, raw_copy, tmp_path, staging_refusal):
    raw = raw_copy(task_id)
    damage(raw)
    assert words in staging_refusal(task_id, raw, tmp_path / "data")
