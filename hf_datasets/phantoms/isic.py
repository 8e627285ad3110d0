"""ISIC 2018, task 3: ``ISIC2018_Task3_Test_Input/ISIC_<n>.jpg`` and the table of one column a class."""

from __future__ import annotations

import csv
from pathlib import Path

from PIL import Image

from hf_datasets.phantoms.dermoscopy import LESIONS, paint
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import rng_for

PICTURES, TRUTH = "ISIC2018_Task3_Test_Input", "ISIC2018_Task3_Test_GroundTruth"
COLUMNS = ("MEL", "NV", "BCC", "AKIEC", "BKL", "DF", "VASC")
COUNTS = {"MEL": 4, "NV": 8, "BCC": 3, "AKIEC": 3, "BKL": 4, "DF": 2, "VASC": 2}


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write lesions of all seven kinds, moles most often, in random order."""
    (out / PICTURES).mkdir()
    (out / TRUTH).mkdir()
    rng = rng_for(seed, "isic")
    kinds = [kind for kind in LESIONS for _ in range(COUNTS[kind])]
    numbers = sorted(rng.choice(range(34_524, 36_064), len(kinds), replace=False).tolist())
    rows = []
    for number, index in zip(numbers, rng.permutation(len(kinds)), strict=True):
        kind = kinds[index]
        pixels = paint(kind, rng_for(seed, "isic", number))
        Image.fromarray(pixels).save(out / PICTURES / f"ISIC_{number:07d}.jpg", quality=92)
        rows.append([f"ISIC_{number:07d}", *(float(column == kind) for column in COLUMNS)])
    with (out / TRUTH / f"{TRUTH}.csv").open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows([("image", *COLUMNS), *rows])
    return {}
