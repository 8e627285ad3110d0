"""A prostate MR study: T2-weighted signal and ADC map of the small pelvis, with both zones of the gland."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.canvas import Canvas, Point
from hf_datasets.phantoms.shapes import Array, Rng, ellipse, smooth_noise

PERIPHERAL, TRANSITION = 1, 2
T2 = {"fat": 420.0, "muscle": 110.0, "bone": 300.0, "bladder": 760.0, "rectum": 60.0, "wall": 160.0,
      "capsule": 90.0, "peripheral": 560.0, "transition": 290.0, "lesion": 210.0, "node": 380.0}  # fmt: skip
ADC = {"fat": 150.0, "muscle": 950.0, "bone": 350.0, "bladder": 2700.0, "rectum": 300.0, "wall": 1000.0,
       "capsule": 900.0, "peripheral": 1750.0, "transition": 1250.0, "lesion": 750.0, "node": 1450.0}  # fmt: skip


def paint_prostate(
    shape: tuple[int, int, int], spacing: tuple[float, float, float], rng: Rng, *, lesion: bool
) -> tuple[Array, NDArray[np.uint8]]:
    """Signal (slices, rows, columns, 2) and the label map (1 peripheral, 2 transition zone).

    A lesion, where there is one, is dark in both channels and belongs to the peripheral zone.
    """
    canvas = Canvas(shape, spacing, -(shape[0] - 1) / 2 * spacing[0], 0.0)
    _, v, u = canvas.grid()
    tissue: dict[str, NDArray[np.bool_]] = {"fat": np.ones(shape, bool)}
    for side in (-1, 1):
        tissue[f"muscle{side}"] = ellipse(u, v, (side * 48, 0), (13, 30), side * 0.25) < 1
        tissue[f"bone{side}"] = ellipse(u, v, (side * 66, -6), (11, 26), side * 0.3) < 1
    tissue["muscle"] = ellipse(u, v, (0, 52), (60, 14)) < 1
    size = float(rng.uniform(0.88, 1.15))
    centre: Point = (float(rng.normal(2, 1.5)), float(rng.normal(0, 2)), float(rng.normal(0, 2)))
    canvas.ellipsoid("rectum", (centre[0], centre[1] + 30 * size, centre[2]), (90, 9, 12), 0.0)
    canvas.ellipsoid("wall", (centre[0], centre[1] + 30 * size, centre[2]), (95, 13, 16), 0.0)
    _gland(canvas, centre, size, rng, lesion=lesion)
    canvas.ellipsoid("bladder", (centre[0] - 42 * size, centre[1] - 10, centre[2]), (22, 24, 32), 0.0)
    names = ("bladder", "wall", "rectum", "capsule", "peripheral", "lesion", "transition", "node")
    painted = {**tissue, **{name: canvas.mask(name) for name in names}}
    signal = np.stack([_channel(painted, table, rng) for table in (T2, ADC)], axis=-1)
    labels = np.zeros(shape, dtype=np.uint8)
    labels[canvas.mask("peripheral", "lesion")] = PERIPHERAL
    labels[canvas.mask("transition", "node")] = TRANSITION
    return signal, labels


def _gland(canvas: Canvas, centre: Point, size: float, rng: Rng, *, lesion: bool) -> None:
    """The transition zone lies in front; the peripheral zone embraces it from behind."""
    w, v, u = centre
    inner: Point = (w - 3 * size, v - 5 * size, u)
    for _ in range(3):
        place = (
            inner[0] + rng.uniform(-8, 8),
            inner[1] + rng.uniform(-6, 4),
            inner[2] + rng.uniform(-11, 11),
        )
        canvas.ellipsoid("node", place, (6, 5, 5), 0.0)
    radii: Point = (18 * size, 13 * size, 19 * size)
    canvas.ellipsoid("transition", inner, radii, 0.0)
    canvas.ellipsoid("capsule", inner, (radii[0] + 1.5, radii[1] + 1.5, radii[2] + 1.5), 0.0)
    if lesion:
        side = float(rng.choice([-1, 1]))
        canvas.ellipsoid(
            "lesion", (w + rng.uniform(-6, 8), v + 13 * size, u + side * 12 * size), (6, 4.5, 6), 0.0
        )
    canvas.ellipsoid("peripheral", (w + 2, v + 2 * size, u), (22 * size, 18 * size, 26 * size), 0.0)
    canvas.ellipsoid("capsule", (w + 2, v + 2 * size, u), (24 * size, 20 * size, 28 * size), 0.0)


def _channel(painted: dict[str, NDArray[np.bool_]], table: dict[str, float], rng: Rng) -> Array:
    shape = painted["fat"].shape
    signal = np.zeros(shape, dtype=np.float32)
    for name, inside in painted.items():
        signal[inside] = table[name.rstrip("-1")]
    signal *= 1 + 0.06 * smooth_noise(shape, (0.5, 1.2, 1.2), rng)
    blurred = gaussian_filter(signal, (0.2, 0.6, 0.6))
    return np.asarray(np.abs(blurred + 16 * rng.standard_normal(shape, dtype=np.float32)), dtype=np.float32)
