"""DeepLesion: 16-bit PNG slices ``Images_png/<series folder>/<slice>.png`` (HU + 32768) and ``DL_info.csv``."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.slices import ct_slices

PATIENTS = 6
SIZE = 192
NEIGHBOURS = 1
"""Slices on either side of a key slice that are there too."""
HEADER = (
    "File_name", "Patient_index", "Study_index", "Series_ID", "Key_slice_index", "Measurement_coordinates",
    "Bounding_boxes", "Lesion_diameters_Pixel_", "Normalized_lesion_location", "Coarse_lesion_type", "Possibly_noisy",
    "Slice_range", "Spacing_mm_px_", "Image_size", "DICOM_windows", "Patient_gender", "Patient_age", "Train_Val_Test",
)  # fmt: skip


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six patients of the test split; the table also names a patient whose slices are elsewhere."""
    rng = rng_for(seed, "deeplesion")
    numbers = sorted(int(number) for number in rng.choice(np.arange(1, 4428), PATIENTS + 1, replace=False))
    rows = []
    for index, patient in enumerate(numbers):
        folder, key = f"{patient:06d}_01_01", int(rng.integers(20, 180))
        pixel = float(np.round(rng.uniform(1.6, 1.9), 3))
        if index:
            _write_series(
                out / "Images_png" / folder, key, (5.0, pixel, pixel), seed, patient, chest=index % 2 == 1
            )
        rows.append(
            [f"{folder}_{key:03d}.png", patient, 1, 1, key, "80, 90, 96, 90", "75, 85, 101, 101", "16.1, 9.4",
             "0.4, 0.5, 0.5", 5 if index % 2 else 4, 0, f"{key - 1}, {key + 1}", f"{pixel}, {pixel}, 5",
             f"{SIZE}, {SIZE}", "-1350, 150" if index % 2 else "-175, 275", "F", int(rng.integers(20, 85)), 3]
        )  # fmt: skip
    with (out / "DL_info.csv").open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(HEADER)
        table.writerows(rows)
    return {}


def _write_series(
    folder: Path, key: int, spacing: tuple[float, float, float], seed: int, patient: int, *, chest: bool
) -> None:
    folder.mkdir(parents=True)
    rng = rng_for(seed, "deeplesion", patient)
    stack = ct_slices(rng, 1 + 2 * NEIGHBOURS, SIZE, spacing, chest=chest, finding=True)
    for offset, plane in enumerate(stack):
        stored = (plane.astype(np.int32) + 32768).astype(np.uint16)
        Image.fromarray(stored).save(folder / f"{key - NEIGHBOURS + offset:03d}.png")
