"""GRAZPEDWRI-DX: children's wrists as 16-bit PNG in ``images_part*/``, ``dataset.csv``, YOLO boxes."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Array, Mask, Rng, blend, ellipse, rng_for, smooth_noise, soft

WIDTH, HEIGHT = 256, 368
CLASSES = (
    "boneanomaly", "bonelesion", "foreignbody", "fracture", "metal", "periostealreaction", "pronatorsign",
    "softtissue", "text",
)  # fmt: skip
FILMS: tuple[tuple[str, ...], ...] = (
    (),
    ("fracture",),
    ("fracture", "periostealreaction"),
    ("fracture", "softtissue"),
    ("metal",),
    ("fracture",),
    ("fracture", "metal"),
    ("softtissue",),
)
HEADER = (
    "filestem", "patient_id", "study_number", "timehash", "gender", "age", "laterality", "projection",
    "initial_exam", "ao_classification", "cast", "diagnosis_uncertain", "osteopenia", "fracture_visible", "metal",
    "pixel_spacing", "device_manufacturer",
)  # fmt: skip
STEP = 1028
"""Grey values are multiples of this (65535 / 255 times 4), which keeps the files small."""


@dataclass
class Wrist:
    """A film in the making: attenuation and the extents of what is marked on it."""

    film: Array
    x: Array
    y: Array
    marks: list[tuple[str, Mask]] = field(default_factory=list)

    def mark(self, name: str, extent: Mask) -> None:
        self.marks.append((name, extent))


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write the films of eight children, one of whom came twice."""
    rng = rng_for(seed, "grazpedwri")
    labels = out / "folder_structure" / "yolov5" / "labels"
    for folder in (labels, out / "images_part1", out / "images_part2"):
        folder.mkdir(parents=True)
    patients = sorted(rng.choice(np.arange(1, 6092), len(FILMS), replace=False).tolist())
    rows = []
    for index, place in enumerate(rng.permutation(len(FILMS)).tolist()):
        for study in (1, 2) if index == 1 else (1,):
            own = rng_for(seed, "grazpedwri", patients[index], study)
            side = str(own.choice(["L", "R"]))
            age, time = float(np.round(own.uniform(4, 17), 1)), int(own.integers(10**8, 10**9))
            stem = (
                f"{patients[index]:04d}_{time}_{study:02d}_WRI-{side}1_{own.choice(['F', 'M'])}{int(age):03d}"
            )
            pixels, marks = _film(FILMS[place], side, own)
            Image.fromarray(pixels).save(out / f"images_part{1 + index % 2}" / f"{stem}.png")
            (labels / f"{stem}.txt").write_text("".join(_line(*mark) for mark in marks), encoding="utf-8")
            rows.append(_row(stem, patients[index], study, time, age, side, FILMS[place]))
    with (out / "dataset.csv").open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, lineterminator="\n").writerows([HEADER, *rows])
    return {}


def _line(name: str, extent: Mask) -> str:
    rows, columns = np.nonzero(extent)
    x1, x2, y1, y2 = columns.min(), columns.max() + 1, rows.min(), rows.max() + 1
    values = ((x1 + x2) / 2 / WIDTH, (y1 + y2) / 2 / HEIGHT, (x2 - x1) / WIDTH, (y2 - y1) / HEIGHT)
    return f"{CLASSES.index(name)} " + " ".join(f"{value:.6f}" for value in values) + "\n"


def _row(
    stem: str, patient: int, study: int, time: int, age: float, side: str, shown: tuple[str, ...]
) -> list[object]:
    flags = [int("fracture" in shown) or "", int("metal" in shown) or ""]
    code = "23r-M/2.1" if "fracture" in shown else ""
    return [
        stem, patient, study, time, stem[-4], age, side, 1, int(study == 1), code, "", "", "", *flags, 0.144, "Siemens",
    ]  # fmt: skip


def _film(shown: tuple[str, ...], side: str, rng: Rng) -> tuple[np.ndarray, list[tuple[str, Mask]]]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    wrist = Wrist(np.zeros((HEIGHT, WIDTH), np.float32), x, y)
    swollen = "softtissue" in shown
    thumb = 1 if side == "L" else -1
    bone = _skeleton(wrist, thumb, swollen, rng)
    if "fracture" in shown:
        _fracture(wrist, bone, thumb, rng)
    if "periostealreaction" in shown:
        _periosteal(wrist, thumb, rng)
    if "metal" in shown:
        _metal(wrist, thumb, rng)
    wrist.film[:] = gaussian_filter(wrist.film, 0.8)
    _text(wrist, side, rng)
    grey = 1 - np.exp(-1.5 * np.maximum(wrist.film, 0))
    grey = grey + 0.011 * smooth_noise(grey.shape, 0.8, rng)
    stored = np.rint(np.clip(grey * 65535, 0, 65535) / STEP) * STEP
    return np.minimum(stored, 65535).astype(np.uint16), wrist.marks


RADIUS, ULNA = 24.0, -26.0
"""Distance of the bones' axes from the middle, towards the thumb."""


def _skeleton(wrist: Wrist, thumb: int, swollen: bool, rng: Rng) -> Mask:
    """Forearm with growth plates, eight carpal bones, five metacarpals; returns the forearm's bones."""
    film, y = wrist.film, wrist.y
    u = thumb * (wrist.x - WIDTH / 2)
    half = 58 + 14 * np.exp(-(((y - 120) / 60) ** 2)) + 6 * rng.uniform(-1, 1)
    bulge = 20 * np.exp(-(((y - 228) / 34) ** 2)) if swollen else 0 * y
    arm = soft((u + 2) / (half + bulge) * np.sign(u + 2), 0.12)
    film += 0.3 * arm * (1 + 0.04 * smooth_noise(y.shape, 6, rng))
    if swollen:
        film += 0.1 * arm * np.exp(-(((y - 228) / 30) ** 2)) * (u > 38)
        wrist.mark("softtissue", (u > 38) & (np.abs(y - 228) < 42) & (arm > 0.5))
    bone = np.zeros(y.shape, dtype=bool)
    for axis, shaft, flare, end in ((RADIUS, 15, 9, 172), (ULNA, 10, 6, 178)):
        width = shaft + flare * np.clip(1 - (y - end) / 60, 0, 1)
        inside = np.maximum(np.abs(u - axis) / width, (end - y) / 1000 + 1 - (y > end))
        _paint_bone(wrist, inside, 0.42)
        bone |= inside <= 1
        plate = ellipse(u, y, (axis, end - 11), (shaft + flare - 2, 7.5), power=3)
        _paint_bone(wrist, plate, 0.4)
    for place in ((-24, 142), (-7, 146), (12, 140), (26, 146), (-27, 118), (-12, 116), (6, 114), (24, 118)):
        radii = rng.uniform(8.0, 9.6, 2)
        _paint_bone(wrist, ellipse(u, y, place, (float(radii[0]), float(radii[1])), power=2.4), 0.36)
    for finger, start in enumerate((-40, -20, 0, 20)):
        lean = u - start - 0.16 * start / 20 * (104 - y) * 0.5
        _paint_bone(wrist, np.maximum(np.abs(lean) / (6.5 + finger * 0.2), np.abs(y - 50) / 52), 0.36)
    lean = u - 42 - 0.55 * (118 - y)
    _paint_bone(wrist, np.maximum(np.abs(lean) / 8, np.abs(y - 86) / 30), 0.36)
    return bone


def _paint_bone(wrist: Wrist, level: Array, value: float) -> None:
    """Spongy inside, dense rim."""
    wrist.film += value * 0.75 * soft(level, 0.14)
    wrist.film += value * 0.6 * soft(np.abs(level - 0.88) / 0.13, 0.6)


def _fracture(wrist: Wrist, bone: Mask, thumb: int, rng: Rng) -> None:
    """A dark, slightly jagged line across the radius, with a step of the cortex."""
    u = thumb * (wrist.x - WIDTH / 2)
    height, slope = rng.uniform(205, 245), rng.uniform(-0.35, 0.35)
    jag = 1.6 * np.sin(u / 3.1 + rng.uniform(0, 6))
    distance = np.abs(wrist.y - height - slope * (u - RADIUS) - jag)
    own = bone & (np.abs(u - RADIUS) < 27)
    wrist.film -= 0.34 * soft(distance / 2.4, 0.8) * own
    wrist.film += 0.16 * soft(np.abs(distance - 5.5) / 2.2, 0.9) * own
    step = ellipse(u, wrist.y, (RADIUS + 17, height + slope * 17), (5, 6))
    wrist.film += 0.3 * soft(step, 0.4)
    wrist.mark("fracture", (own & (distance < 9)) | (step <= 1))


def _periosteal(wrist: Wrist, thumb: int, rng: Rng) -> None:
    """A thin shell beside the shaft of the ulna."""
    u = thumb * (wrist.x - WIDTH / 2)
    height, side = rng.uniform(255, 285), float(rng.choice([-1, 1]))
    bow = 5.5 * np.clip(1 - ((wrist.y - height) / 34) ** 2, 0, 1)
    shell = np.abs(u - ULNA - side * (11 + bow)) / 1.5
    near = np.abs(wrist.y - height) < 34
    wrist.film += 0.34 * soft(shell, 0.8) * near
    wrist.mark("periostealreaction", near & (np.abs(u - ULNA - side * 13) < 6))


def _metal(wrist: Wrist, thumb: int, rng: Rng) -> None:
    """A plate with screws on the radius, or a wire across it."""
    u = thumb * (wrist.x - WIDTH / 2)
    height = rng.uniform(240, 270)
    if rng.random() < 0.5:
        tilt = rng.uniform(-0.5, -0.3)
        axis = np.abs(u - RADIUS - tilt * (wrist.y - height)) / 2.6
        extent = np.maximum(axis, np.abs(wrist.y - height) / 52)
    else:
        plate = np.maximum(np.abs(u - RADIUS - 9) / 5, np.abs(wrist.y - height) / 42)
        screws = [
            np.maximum(np.abs(u - RADIUS) / 15, np.abs(wrist.y - height - step) / 2.2)
            for step in (-30, -10, 10, 30)
        ]
        extent = np.minimum.reduce([plate, *screws])
    blend(wrist.film, soft(extent, 0.15), 2.6)
    wrist.mark("metal", extent <= 1)


def _text(wrist: Wrist, side: str, rng: Rng) -> None:
    """The side's letter and sometimes the operator's initials, in a corner."""
    left = bool(rng.random() < 0.5)
    texts = [side] + (["".join(rng.choice(list("ABEHKMNST"), 2).tolist())] if rng.random() < 0.4 else [])
    for row, text in enumerate(texts):
        canvas = Image.new("L", (WIDTH, HEIGHT))
        place = (12 if left else WIDTH - 12, HEIGHT - 40 if row else 16)
        font = ImageFont.load_default(size=22 if row == 0 else 15)
        ImageDraw.Draw(canvas).text(place, text, fill=255, font=font, anchor="lt" if left else "rt")
        ink = np.asarray(canvas, dtype=np.float32) / 255
        blend(wrist.film, ink, 2.4)
        wrist.mark("text", ink > 0.4)
