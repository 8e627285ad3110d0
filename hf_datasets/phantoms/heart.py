"""A cardiac MR volume with bright blood: chambers, great vessels and a left atrium with its pulmonary veins."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.canvas import Canvas, Point
from hf_datasets.phantoms.shapes import Array, Mask, Rng, ellipse, smooth_noise

BLOOD, MUSCLE, WALL, FAT, LUNG, LIVER, BONE = 620.0, 250.0, 210.0, 480.0, 25.0, 230.0, 150.0


def paint_heart(
    shape: tuple[int, int, int], spacing: tuple[float, float, float], rng: Rng
) -> tuple[Array, Mask]:
    """Signal (arbitrary units) and the mask of the left atrium.

    Axes as in `hf_datasets.phantoms.canvas`; the atrium lies in front of the spine, in the middle of the volume.
    """
    canvas = Canvas(shape, spacing, -(shape[0] - 1) / 2 * spacing[0], 5.0)
    w, v, u = canvas.grid()
    canvas.values[ellipse(u, v, (0, 0), (150, 105), power=2.3) < 1] = FAT
    canvas.values[ellipse(u, v, (0, 0), (138, 94), power=2.3) < 1] = WALL
    canvas.values[(ellipse(u, v, (0, -6), (122, 76), power=2.3) < 1) & (w < 62)] = LUNG
    canvas.values[ellipse(u, v, (0, 72), (20, 16)) < 1] = BONE
    canvas.values[ellipse(u, v, (0, -5), (34, 66)) < 1] = WALL + 40
    move: Point = (float(rng.normal(0, 4)), float(rng.normal(0, 3)), float(rng.normal(0, 4)))
    _atrium(canvas, move, float(rng.uniform(0.9, 1.12)))
    _other_chambers(canvas, move)
    liver = (ellipse(u, v, (-60, -10), (70, 70)) < 1) & (w > 48) & (canvas.owner == 0)
    canvas.values[liver] = LIVER
    return _finish(canvas.values, rng), canvas.mask("left_atrium")


def _atrium(canvas: Canvas, move: Point, size: float) -> None:
    """A flattened body in front of the spine, four veins that enter it from the lungs, and an appendage."""
    w, v, u = move
    canvas.ellipsoid("left_atrium", (w, v + 26, u + 6), (25 * size, 19 * size, 32 * size), BLOOD)
    for side in (-1, 1):
        for height, depth in ((-13.0, 30.0), (12.0, 36.0)):
            start: Point = (w + height * 0.7, v + 28, u + 6 + side * 24 * size)
            middle: Point = (w + height, v + depth, u + 6 + side * 36 * size)
            far: Point = (w + height * 1.7, v + depth + 4, u + 6 + side * 62 * size)
            canvas.tube("left_atrium", [start, middle], 6.5, BLOOD)
            canvas.tube("pulmonary_vein", [middle, far], 6.0, BLOOD - 40)
    canvas.tube("left_atrium", [(w - 8, v + 14, u + 30), (w - 12, v - 4, u + 42)], 7.0, BLOOD)


def _other_chambers(canvas: Canvas, move: Point) -> None:
    """Thin walls (dark) keep the other blood pools apart from the atrium."""
    w, v, u = move
    canvas.halo([(w, v + 26, u - 14), (w, v + 26, u + 26)], 25.0, MUSCLE)
    canvas.ellipsoid("left_ventricle", (w + 28, v - 14, u + 46), (28, 26, 24), BLOOD + 20)
    canvas.ellipsoid("myocardium", (w + 28, v - 14, u + 46), (40, 37, 35), MUSCLE)
    canvas.ellipsoid("right_atrium", (w + 14, v - 4, u - 38), (27, 24, 22), BLOOD - 30)
    canvas.ellipsoid("right_ventricle", (w + 30, v - 44, u + 4), (30, 20, 36), BLOOD - 20)
    canvas.tube("ascending_aorta", [(w - 60, v - 16, u - 12), (w - 4, v - 20, u - 4)], 14.0, BLOOD)
    canvas.tube("pulmonary_artery", [(w - 40, v - 26, u + 22), (w + 4, v - 46, u + 14)], 12.0, BLOOD - 10)
    canvas.tube("descending_aorta", [(w - 90, v + 58, u + 28), (w + 90, v + 58, u + 24)], 11.0, BLOOD - 10)
    canvas.tube("cava", [(w - 80, v - 2, u - 40), (w - 12, v - 2, u - 38)], 9.0, BLOOD - 60)


def _finish(signal: Array, rng: Rng) -> Array:
    """Blur, a smooth coil profile and Rician noise."""
    blurred = gaussian_filter(signal, 0.5)
    coil = 1 + 0.12 * smooth_noise(signal.shape, tuple(n / 3 for n in signal.shape), rng)
    real, imaginary = (18 * rng.standard_normal(signal.shape, dtype=np.float32) for _ in range(2))
    return np.asarray(np.hypot(blurred * coil + real, imaginary), dtype=np.float32)
