"""NIH ChestX-ray14: ``images_001/images/<patient>_<follow-up>.png`` and ``Data_Entry_2017.csv``."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from hf_datasets.phantoms.chest_xray import Findings, frontal
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for, smooth_noise

FILMS = (
    ("Effusion", Findings(effusion="right")),
    ("No Finding", Findings()),
    ("Nodule", Findings(nodule=("left", "upper"))),
    ("Cardiomegaly", Findings(cardiomegaly=True)),
    ("Consolidation", Findings(consolidation=("right", "lower"))),
    ("Pneumothorax", Findings(pneumothorax="left")),
    ("No Finding", Findings(catheter=True)),
)
SIZE = 512
HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write the films of seven patients, one of whom came twice."""
    folder = out / "images_001" / "images"
    folder.mkdir(parents=True)
    rng = rng_for(seed, "nih_cxr")
    patients = sorted(int(number) for number in rng.choice(np.arange(1, 30806), len(FILMS), replace=False))
    rows = []
    for patient, (label, findings) in zip(patients, FILMS, strict=True):
        for follow_up in range(2 if patient == patients[0] else 1):
            name = f"{patient:08d}_{follow_up:03d}.png"
            film = _film(findings, rng_for(seed, "nih_cxr", patient, follow_up))
            Image.fromarray(film).save(folder / name)
            age, gender = int(rng.integers(20, 85)), str(rng.choice(["F", "M"]))
            rows.append([name, label, follow_up, patient, age, gender, "PA", 2500, 2500, 0.168, 0.168])
    with (out / "Data_Entry_2017.csv").open("w", newline="", encoding="utf-8") as handle:
        handle.write(HEADER + "\n")
        csv.writer(handle, lineterminator="\n").writerows(rows)
    return {}


def _film(findings: Findings, rng: Rng) -> np.ndarray:
    """A square film; lung markings and grain are coarse enough to survive the mean of neighbouring pixels."""
    drawn = frontal(findings, rng)
    top = (drawn.shape[0] - drawn.shape[1]) // 2
    square = Image.fromarray(drawn[top : top + drawn.shape[1]].astype(np.float32))
    film = np.asarray(square.resize((SIZE, SIZE), Image.Resampling.BICUBIC))
    markings = 24 * np.clip(1 - film / 230, 0, 1) * smooth_noise(film.shape, 3.0, rng)
    grain = 1.5 * smooth_noise(film.shape, 2.5, rng)
    return np.asarray(np.clip(np.rint((film + markings + grain) / 2) * 2, 0, 255), dtype=np.uint8)
