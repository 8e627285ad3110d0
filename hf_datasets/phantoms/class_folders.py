"""Upstreams whose folders are classes: ``Testing/``, ``CRC-VAL-HE-7K/``, ``chest_xray/test/``, and training parts."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from hf_datasets.phantoms import brain_slice, chest_xray
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.tissue import COLON, colon_tile

TILE = 128


@dataclass(frozen=True)
class Folders:
    """One upstream's test part.

    ``counts``: folder of a class -> number of pictures. ``paint`` draws a picture of the class of a folder,
    ``name`` gives its file name from the running number, and ``other`` is a folder of another part, which gets one
    picture of each class.
    """

    root: str
    other: str
    counts: Mapping[str, int]
    paint: Callable[[str, Rng], np.ndarray]
    name: Callable[[str, int, Rng], str]

    def generate(self, out: Path, seed: int) -> dict[str, RealImage]:
        """Write the test part, and one picture of each class of the training part."""
        for folder, count in self.counts.items():
            for root, first, last in ((self.root, 0, count), (self.other, count, count + 1)):
                (out / root / folder).mkdir(parents=True)
                for number in range(first, last):
                    rng = rng_for(seed, "class_folders", self.root, folder, number)
                    pixels = self.paint(folder, rng)
                    _save(out / root / folder / self.name(folder, number, rng), pixels)
        return {}


def _save(path: Path, pixels: np.ndarray) -> None:
    options = {"compression": "tiff_lzw"} if path.suffix == ".tif" else {"quality": 92}
    Image.fromarray(pixels).save(path, **options)


def _tissue(folder: str, rng: Rng) -> np.ndarray:
    return colon_tile(folder, TILE, rng)


def _film(folder: str, rng: Rng) -> np.ndarray:
    """A frontal film in one of many sizes, with a catheter in some of either class."""
    found = chest_xray.Findings(catheter=bool(rng.random() < 0.2))
    if folder == "PNEUMONIA":
        side: chest_xray.Side = "right" if rng.random() < 0.5 else "left"
        zone: chest_xray.Zone = ("upper", "mid", "lower")[int(rng.integers(3))]
        found = replace(found, consolidation=(side, zone))
    picture = Image.fromarray(chest_xray.frontal(found, rng))
    size = (picture.width * rng.uniform(0.9, 1.1), picture.height * rng.uniform(0.85, 1.0))
    return np.asarray(picture.resize((int(size[0]), int(size[1])), Image.Resampling.BICUBIC))


def _brain_name(folder: str, number: int, rng: Rng) -> str:  # noqa: ARG001 - one signature for all three
    return f"Te-{folder[:2]}_{number + 10:04d}.jpg"


def _tissue_name(folder: str, number: int, rng: Rng) -> str:  # noqa: ARG001 - one signature for all three
    return f"{folder}-TCGA-{''.join(rng.choice(list(string.ascii_uppercase), 8))}.tif"


def _film_name(folder: str, number: int, rng: Rng) -> str:
    kind = "NORMAL" if folder == "NORMAL" else ("BACTERIA" if number % 2 else "VIRUS")
    return f"{kind}-{int(rng.integers(1_000_000, 9_999_999))}-{number + 1:04d}.jpeg"


TASKS = {
    "braintumor-cls-task": Folders(
        "Testing",
        "Training",
        {"glioma": 5, "meningioma": 5, "notumor": 7, "pituitary": 5},
        brain_slice.paint,
        _brain_name,
    ),
    "crc-histology-cls-task": Folders(
        "CRC-VAL-HE-7K",
        "NCT-CRC-HE-100K",
        {folder: 4 if folder == "ADI" else 3 for folder in COLON},
        _tissue,
        _tissue_name,
    ),
    "chest-xray-pneumonia-cls-task": Folders(
        "chest_xray/test", "chest_xray/train", {"NORMAL": 7, "PNEUMONIA": 11}, _film, _film_name
    ),
}


def for_task(task_id: str) -> Folders:
    """The generator of one of the tasks whose upstream sorts pictures into folders."""
    return TASKS[task_id]
