"""Stained tissue under the microscope: glands, fat, muscle and inflammation, in H&E or as an immunostain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft

SIZE = 176
Tissue = Literal["glandular", "adipose", "muscle"]
HEMATOXYLIN, EOSIN, DAB = (92.0, 62.0, 142.0), (231.0, 172.0, 200.0), (122.0, 72.0, 36.0)
PALE, WHITE, RED = (232.0, 228.0, 234.0), (246.0, 243.0, 246.0), (198.0, 44.0, 52.0)


@dataclass(frozen=True)
class Tile:
    """What is drawn. ``glands`` counts only in glandular tissue."""

    tissue: Tissue
    glands: int = 0
    infiltrate: bool = False
    vessel: bool = False
    immunostain: bool = False
    corner: tuple[str, str] = ("upper", "right")
    """Where the vessel lies; an infiltrate lies in the opposite corner."""


def paint(tile: Tile, rng: Rng) -> np.ndarray:
    """An RGB tile, uint8 of shape (SIZE, SIZE, 3)."""
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    ground = PALE if tile.immunostain else EOSIN
    image = np.stack([np.full((SIZE, SIZE), value, np.float32) for value in ground], axis=-1)
    image += 7 * smooth_noise((SIZE, SIZE), (1.2, 5), rng)[..., None]
    up, left = tile.corner[0] == "upper", tile.corner[1] == "left"
    vessel = (SIZE * (0.2 if left else 0.8), SIZE * (0.2 if up else 0.8), 30.0)
    away = float(rng.uniform(0.26, 0.34))
    cloud = (SIZE * (1 - away if left else away), SIZE * (1 - away if up else away), 34.0)
    taken = [vessel] * tile.vessel + [cloud] * tile.infiltrate
    if tile.tissue == "glandular":
        _glands(image, x, y, tile, taken, rng)
    elif tile.tissue == "adipose":
        _fat(image, x, y, rng)
    else:
        _muscle(image, x, y, tile, rng)
    if tile.vessel:
        _vessel(image, x, y, vessel, rng)
    if tile.infiltrate:
        _infiltrate(image, x, y, cloud, rng)
    image = gaussian_filter(image, (0.6, 0.6, 0)) + 1.5 * rng.standard_normal(image.shape, dtype=np.float32)
    return np.asarray(np.clip(image, 0, 255), dtype=np.uint8)


def _stain(image: Array, coverage: Array, colour: tuple[float, float, float]) -> None:
    for channel, value in enumerate(colour):
        blend(image[..., channel], coverage, value)


def _nucleus(
    image: Array, x: Array, y: Array, at: tuple[float, float], radii: tuple[float, float], angle: float,
    colour: tuple[float, float, float],
) -> None:  # fmt: skip
    """Paint one nucleus; only its surroundings are touched."""
    reach = int(max(radii) + 3)
    rows = slice(max(0, int(at[1]) - reach), int(at[1]) + reach + 1)
    columns = slice(max(0, int(at[0]) - reach), int(at[0]) + reach + 1)
    part = (rows, columns)
    _stain(image[part], 0.92 * soft(ellipse(x[part], y[part], at, radii, angle), 0.35), colour)


def _glands(
    image: Array, x: Array, y: Array, tile: Tile, taken: list[tuple[float, float, float]], rng: Rng
) -> None:
    _scattered(image, x, y, 45, rng)
    for _ in range(tile.glands):
        radius, at = _free_place(taken, rng)
        angle, stretch = rng.uniform(0, np.pi), rng.uniform(1.0, 1.15)
        level = ellipse(x, y, at, (radius * stretch, radius / stretch), angle)
        _stain(
            image, soft(level, 0.1), (196.0, 158.0, 204.0) if not tile.immunostain else (214.0, 214.0, 230.0)
        )
        _stain(image, soft(level / 0.5, 0.1), WHITE)
        count = int(radius * 1.1)
        for turn in np.linspace(0, 2 * np.pi, count, endpoint=False):
            cos, sin = 0.8 * radius * stretch * np.cos(turn), 0.8 * radius / stretch * np.sin(turn)
            place = (
                at[0] + cos * np.cos(angle) - sin * np.sin(angle),
                at[1] + cos * np.sin(angle) + sin * np.cos(angle),
            )
            brown = tile.immunostain and rng.random() < 0.75
            _nucleus(image, x, y, place, (3.2, 2.3), turn + angle, DAB if brown else HEMATOXYLIN)


def _free_place(taken: list[tuple[float, float, float]], rng: Rng) -> tuple[float, tuple[float, float]]:
    """A circle inside the tile that touches none of the others; smaller where the tile is full."""
    for attempt in range(400):
        radius = float(rng.uniform(22, 27)) * (1 - attempt / 1200)
        cx, cy = (float(rng.uniform(radius * 1.25, SIZE - radius * 1.25)) for _ in range(2))
        if all(np.hypot(cx - ox, cy - oy) > 1.2 * (radius + other) for ox, oy, other in taken):
            break
    taken.append((cx, cy, radius))
    return radius, (cx, cy)


def _fat(image: Array, x: Array, y: Array, rng: Rng) -> None:
    """Empty round cells on a grid that is not quite one, thin walls between them."""
    step = 29.0
    nearest = np.full(x.shape, 1e9, np.float32)
    second = nearest.copy()
    for row in range(-1, 8):
        for column in range(-1, 8):
            cx = (column + 0.5 * (row % 2) + rng.uniform(-0.16, 0.16)) * step
            cy = (row * 0.88 + rng.uniform(-0.16, 0.16)) * step
            distance = np.hypot(x - cx, y - cy)
            second = np.minimum(second, np.maximum(nearest, distance))
            nearest = np.minimum(nearest, distance)
    _stain(image, np.clip((second - nearest - 2.2) / 2.0, 0, 1).astype(np.float32), WHITE)
    wall = np.argwhere(second - nearest < 1.5)
    for row, column in wall[rng.choice(len(wall), 16, replace=False)]:
        _nucleus(image, x, y, (float(column), float(row)), (3.4, 1.5), rng.uniform(0, np.pi), HEMATOXYLIN)


def _muscle(image: Array, x: Array, y: Array, tile: Tile, rng: Rng) -> None:
    """Parallel bundles, strongly pink, with long nuclei that lie along them."""
    angle = rng.uniform(0.1, 0.6)
    along, across = np.cos(angle) * x + np.sin(angle) * y, -np.sin(angle) * x + np.cos(angle) * y
    waves = across + 3 * np.sin(along / 26 + rng.uniform(0, 6))
    strands = 0.5 + 0.5 * np.sin(waves * 0.62 + 1.5 * smooth_noise(x.shape, 14, rng))
    tone = (222.0, 128.0, 158.0) if not tile.immunostain else (206.0, 196.0, 206.0)
    _stain(image, (0.35 + 0.5 * strands).astype(np.float32), tone)
    for _ in range(70):
        at = (float(rng.uniform(0, SIZE)), float(rng.uniform(0, SIZE)))
        colour = DAB if tile.immunostain and rng.random() < 0.5 else HEMATOXYLIN
        _nucleus(image, x, y, at, (6.5, 1.5), angle + rng.normal(0, 0.08), colour)


def _scattered(image: Array, x: Array, y: Array, count: int, rng: Rng) -> None:
    for _ in range(count):
        at = (float(rng.uniform(0, SIZE)), float(rng.uniform(0, SIZE)))
        _nucleus(image, x, y, at, (3.6, 1.5), rng.uniform(0, np.pi), HEMATOXYLIN)


def _infiltrate(image: Array, x: Array, y: Array, at: tuple[float, float, float], rng: Rng) -> None:
    """A dense cloud of small round dark nuclei."""
    for _ in range(230):
        turn, reach = rng.uniform(0, 2 * np.pi), at[2] * rng.random() ** 0.6
        place = (at[0] + 1.15 * reach * np.cos(turn), at[1] + 0.8 * reach * np.sin(turn))
        _nucleus(image, x, y, place, (2.2, 2.1), 0.0, (66.0, 42.0, 120.0))


def _vessel(image: Array, x: Array, y: Array, at: tuple[float, float, float], rng: Rng) -> None:
    """A round wall and the red cells inside it."""
    cx, cy, radius = at
    level = ellipse(x, y, (cx, cy), (radius * 0.85, radius * 0.75), 0.5)
    _stain(image, soft(level, 0.12), (214.0, 132.0, 168.0))
    _stain(image, soft(level / 0.74, 0.1), WHITE)
    for _ in range(34):
        turn, reach = rng.uniform(0, 2 * np.pi), radius * 0.5 * np.sqrt(rng.random())
        _nucleus(image, x, y, (cx + reach * np.cos(turn), cy + reach * np.sin(turn)), (3.3, 3.0), turn, RED)
