"""Drawing helpers that the painters share: soft shapes and smooth random textures."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Rng = np.random.Generator


def rng_for(seed: int, *path: str | int) -> Rng:
    """An independent random stream for a named part of a phantom."""
    return np.random.default_rng([seed, *(crc32(str(part).encode()) for part in path)])


def smooth_noise(shape: tuple[int, ...], sigma: float | tuple[float, ...], rng: Rng) -> Array:
    """Gaussian noise of unit standard deviation and a correlation length of ``sigma`` pixels."""
    field = gaussian_filter(rng.standard_normal(shape, dtype=np.float32), sigma, mode="wrap")
    return np.asarray(field / (field.std() + 1e-9), dtype=np.float32)


def ellipse(
    x: Array,
    y: Array,
    centre: tuple[float, float],
    radii: tuple[float, float],
    angle: float = 0.0,
    power: float = 2.0,
) -> Array:
    """Signed level of a (super)ellipse: below 1 inside, 1 on its border, growing outwards."""
    dx, dy = x - centre[0], y - centre[1]
    cos, sin = np.cos(angle), np.sin(angle)
    u = np.abs(cos * dx + sin * dy) / radii[0]
    v = np.abs(-sin * dx + cos * dy) / radii[1]
    return np.asarray((u**power + v**power) ** (1 / power), dtype=np.float32)


def soft(level: Array, edge: float = 0.06) -> Array:
    """A coverage from 0 to 1 for a level: 1 inside, falling to 0 over ``edge`` around the border."""
    return np.asarray(np.clip((1 + edge / 2 - level) / edge, 0, 1), dtype=np.float32)


def blend(image: Array, coverage: Array, value: float | Array) -> None:
    """Paint ``value`` over ``image`` in place, with the given coverage."""
    image += coverage * (value - image)
