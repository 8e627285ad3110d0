"""A fetal brain as shells: fluid, folded cortex, white matter, ventricles and what lies deep inside.

Axes are (x, y, z): to the left, to the back, to the head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter

from hf_datasets.phantoms.shapes import Array, Mask, Rng, smooth_noise

ECSF, GREY, WHITE, VENTRICLE, CEREBELLUM, DEEP_GREY, STEM = range(1, 8)
_SIGNAL = {
    ECSF: 880.0,
    GREY: 400.0,
    WHITE: 610.0,
    VENTRICLE: 960.0,
    CEREBELLUM: 385.0,
    DEEP_GREY: 440.0,
    STEM: 470.0,
}
_SKULL, _SCALP = 120.0, 260.0


@dataclass(frozen=True)
class Fetus:
    """``weeks`` of gestation; ``widening`` is the size of the ventricles, 1 for normal ones."""

    weeks: float
    widening: float = 1.0

    @property
    def half_width(self) -> float:
        """Half the biparietal diameter in mm."""
        return 24 + 1.35 * (self.weeks - 20)


def draw_brain(fetus: Fetus, shape: tuple[int, int, int], spacing: float, rng: Rng) -> NDArray[np.uint8]:
    """The label map: 0 background and the seven tissues."""
    x, y, z = _axes(shape, spacing)
    r = fetus.half_width
    skull = _level(x, y, z, (0, 0, 0), (r, 1.27 * r, 1.02 * r))
    labels = np.zeros(shape, dtype=np.uint8)
    labels[skull < 1] = ECSF
    labels[_cerebrum(fetus, x, y, z, skull, spacing, rng)] = WHITE
    cortex = distance_transform_edt(labels == WHITE, sampling=spacing)
    labels[(labels == WHITE) & (cortex <= 2.1 + 0.04 * (fetus.weeks - 20))] = GREY
    _below(labels, x, y, z, r, skull)
    _inside(labels, x, y, z, r, fetus.widening)
    return labels


def _axes(shape: tuple[int, int, int], spacing: float) -> tuple[Array, Array, Array]:
    x, y, z = ((np.arange(n, dtype=np.float32) - (n - 1) / 2) * spacing for n in shape)
    return x[:, None, None], y[None, :, None], z[None, None, :]


def _level(
    x: Array, y: Array, z: Array, centre: tuple[float, float, float], radii: tuple[float, float, float]
) -> Array:
    parts = (((axis - c) / radius) ** 2 for axis, c, radius in zip((x, y, z), centre, radii, strict=True))
    return np.asarray(np.sqrt(sum(parts)), dtype=np.float32)


def _cerebrum(fetus: Fetus, x: Array, y: Array, z: Array, skull: Array, spacing: float, rng: Rng) -> Mask:
    """Two hemispheres, folded the more the older the fetus is; flat below, apart at the midline."""
    r = fetus.half_width
    depth = 0.3 + 0.11 * max(0.0, fetus.weeks - 22)
    folds = depth * smooth_noise(skull.shape, 3.2 / spacing, rng)
    gap = 5.2 - 0.13 * (fetus.weeks - 20)
    lobes = (skull - 1) * r + gap + folds < 0
    floor = z > -0.5 * r + 0.16 * np.maximum(0, y) + 0.25 * folds
    fissure = (np.abs(x) < 1.3 + 0.2 * folds) & ((z > 0.25 * r) | (np.abs(y) > 0.75 * r))
    return np.asarray(lobes & floor & ~fissure, dtype=bool)


def _below(labels: NDArray[np.uint8], x: Array, y: Array, z: Array, r: float, skull: Array) -> None:
    halves = np.minimum(
        _level(x, y, z, (-0.24 * r, 0.52 * r, -0.58 * r), (0.34 * r, 0.33 * r, 0.27 * r)),
        _level(x, y, z, (0.24 * r, 0.52 * r, -0.58 * r), (0.34 * r, 0.33 * r, 0.27 * r)),
    )
    free = (labels == ECSF) | (labels == 0)
    labels[(halves < 1) & free & (skull < 0.98)] = CEREBELLUM
    bend = 0.1 * r + 0.1 * np.maximum(0, -0.2 * r - z)
    width = 0.17 * r + 0.05 * r * np.exp(-(((z + 0.45 * r) / (0.14 * r)) ** 2))
    stem = (x**2 + (y - bend) ** 2 < width**2) & (z < -0.16 * r) & (z > -1.05 * r)
    labels[stem & (skull < 1.06)] = STEM


def _inside(labels: NDArray[np.uint8], x: Array, y: Array, z: Array, r: float, widening: float) -> None:
    w = widening**0.5
    inner = (labels == WHITE) | (labels == GREY)
    for side in (-1, 1):
        grey = _level(x, y, z, (side * 0.27 * r, -0.08 * r, -0.12 * r), (0.23 * r, 0.36 * r, 0.24 * r))
        labels[(grey < 1) & inner] = DEEP_GREY
        body = _level(x, y, z, (side * 0.2 * r, 0.1 * r, 0.17 * r), (0.1 * r * w, 0.55 * r, 0.12 * r * w))
        horn = _level(x, y, z, (side * 0.36 * r, 0.52 * r, 0.02 * r), (0.14 * r * w, 0.27 * r, 0.19 * r * w))
        labels[(np.minimum(body, horn) < 1) & inner] = VENTRICLE


def t2_weighted(labels: NDArray[np.uint8], rng: Rng) -> Array:
    """The image that goes with a label map: int16, zero outside of the head."""
    signal = np.zeros(labels.shape, dtype=np.float32)
    outside = distance_transform_edt(labels == 0)
    signal[(outside > 0) & (outside <= 1.5)] = _SKULL
    signal[(outside > 1.5) & (outside <= 3.2)] = _SCALP
    for tissue, value in _SIGNAL.items():
        signal[labels == tissue] = value
    signal *= 1 + 0.05 * smooth_noise(labels.shape, tuple(n / 4 for n in labels.shape), rng)
    signal += 14 * smooth_noise(labels.shape, 1.2, rng) * (labels > 0)
    signal = gaussian_filter(signal, 0.5)
    noisy = np.hypot(signal + 16 * rng.standard_normal(labels.shape, dtype=np.float32), 8.0)
    return np.asarray(np.rint(np.where(outside <= 4.2, noisy, 0) * rng.uniform(0.7, 1.4)), dtype=np.int16)
