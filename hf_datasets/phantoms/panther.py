"""PANTHER: ``ImagesTr/*_0000.mha`` and ``LabelsTr/*.mha`` with 0 background, 1 tumour, 2 pancreas.

One task has arterial-phase T1-weighted scans (``NNNNN_0001_0000.mha``), the other T2-weighted scans of an
MR-Linac (``NNNNN_0000.mha``). One phantom a task has no tumour, which upstream's scans all have.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.phantoms.anatomy import Person
from hf_datasets.phantoms.body import Canvas, Grid, draw, egg, render
from hf_datasets.phantoms.ct_body import draw_body
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.metaimage import write_mha
from hf_datasets.phantoms.shapes import Array, Rng, rng_for, smooth_noise

CASES = 6
WITH_TUMOUR = 5

_SIGNAL: dict[str, tuple[float, float]] = {
    "air": (0, 0),
    "gas": (4, 4),
    "lung": (15, 20),
    "fat": (55, 480),
    "fluid": (70, 880),
    "cord": (150, 300),
    "gut": (210, 190),
    "brain": (160, 300),
    "muscle": (175, 85),
    "gland": (190, 170),
    "cartilage": (90, 120),
    "marrow": (100, 250),
    "bone": (45, 45),
    "liver": (265, 140),
    "pancreas": (430, 245),
    "heart": (300, 110),
    "spleen": (370, 310),
    "thyroid": (300, 200),
    "vein": (290, 60),
    "kidney": (470, 350),
    "blood": (420, 70),
    "artery": (620, 35),
    "tumour": (235, 345),
}
"""T1-weighted, arterial phase, fat suppressed; T2-weighted."""

_ROUGH = dict.fromkeys(("liver", "spleen", "kidney", "muscle"), 8.0) | {
    "pancreas": 16.0,
    "fat": 12.0,
    "gut": 14.0,
}


@dataclass(frozen=True)
class Sequence:
    """One of the challenge's two parts: what comes after the patient's number, and the tissues' signal."""

    suffix: str
    signal: dict[str, float]
    slice_mm: float
    noise: float

    def generate(self, out: Path, seed: int) -> dict[str, RealImage]:
        """Write six cases, five of them with a tumour."""
        rng = rng_for(seed, "panther", self.suffix)
        (out / "ImagesTr").mkdir()
        (out / "LabelsTr").mkdir()
        numbers = sorted(int(number) for number in 10000 + rng.choice(500, CASES, replace=False))
        healthy = int(rng.integers(CASES - WITH_TUMOUR + 4))
        for index, number in enumerate(numbers):
            self._write_case(
                out, f"{number}{self.suffix}", rng_for(seed, "panther", number), index != healthy
            )
        return {}

    def _write_case(self, out: Path, name: str, rng: Rng, tumour: bool) -> None:
        pixel = float(np.round(rng.uniform(3.4, 3.7), 4))
        size = float(rng.uniform(0.93, 1.07))
        spacing = (self.slice_mm, pixel, pixel)
        centre = (float(rng.normal(0, 5)), float(rng.normal(2, 4)), float(rng.normal(112, 6)))
        shape = (round(165 / self.slice_mm), round(250 / pixel), round(370 / pixel))
        grid = Grid(shape, (spacing[0] / size, spacing[1] / size, spacing[2] / size), centre)
        canvas = draw_body(
            grid, Person(girth=float(rng.uniform(0.7, 1.5)), gallbladder=bool(rng.random() < 0.8)), rng
        )
        if tumour:
            _draw_tumour(canvas, rng)
        signal = _mr_signal(canvas, self.signal, self.noise, rng)
        labels = 2 * canvas.of("pancreas").astype(np.uint8) + canvas.of("tumour").astype(np.uint8)
        origin = np.round(rng.uniform(-250, 0, 3), 3)
        write_mha(out / "ImagesTr" / f"{name}_0000.mha", signal.T, spacing[::-1], origin)
        write_mha(out / "LabelsTr" / f"{name}.mha", labels.T, spacing[::-1], origin)


def for_task(task_id: str) -> Sequence:
    """The generator of one of the two tasks."""
    return {
        "panther-t1-seg-task": Sequence("_0001", _column(0), 4.0, 13.0),
        "panther-t2-seg-task": Sequence("", _column(1), 4.5, 15.0),
    }[task_id]


def _column(index: int) -> dict[str, float]:
    return {tissue: values[index] for tissue, values in _SIGNAL.items()}


def _draw_tumour(canvas: Canvas, rng: Rng) -> None:
    """A round mass in the head, more seldom in body or tail."""
    where = ((-27, -14, 90), (10, -10, 103), (56, -5, 106))[int(rng.choice(3, p=(0.6, 0.25, 0.15)))]
    x, y, z = (float(place + rng.normal(0, 3)) for place in where)
    radius = float(rng.uniform(11, 18))
    rx, ry, rz = (float(radius * share) for share in rng.uniform(0.85, 1.15, 3))
    draw(canvas, [egg("tumour", "tumour", (x, y, z), (rx, ry, rz))])


def _mr_signal(canvas: Canvas, signal: dict[str, float], noise: float, rng: Rng) -> Array:
    """Magnitude image with a coil's uneven sensitivity and Rician noise, as int16."""
    clean = render(canvas, signal, _ROUGH, 0.0, rng)
    shape = canvas.grid.shape
    sensitivity = 1 + 0.09 * smooth_noise(shape, (shape[0] / 4, shape[1] / 4, shape[2] / 4), rng)
    real, imaginary = (noise * rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
    gain = float(rng.uniform(0.8, 1.5))
    return np.asarray(np.rint(gain * np.hypot(clean * sensitivity + real, imaginary)), dtype=np.int16)
