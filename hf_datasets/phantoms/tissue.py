"""Tiles of stained colon in nine classes, and lymph-node patches with or without tumour cells in their middle.

A pixel is about one micrometre: a lymphocyte is six to seven pixels wide, the nucleus of a tumour cell ten to fifteen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft

Colour = tuple[float, float, float]
Point = tuple[float, float]

HEMATOXYLIN, DARK, EOSIN, GLASS = (
    (98.0, 66.0, 148.0),
    (62.0, 40.0, 112.0),
    (226.0, 160.0, 196.0),
    (240.0, 237.0, 241.0),
)


class Tile:
    """An RGB tile on which cells are painted; coordinates are pixels."""

    def __init__(self, size: int, ground: Colour, grain: float, rng: Rng) -> None:
        y, x = np.mgrid[0:size, 0:size].astype(np.float32)
        self.size, self.x, self.y, self.rng = size, x, y, rng
        self.image: Array = np.empty((size, size, 3), np.float32)
        self.image[:] = ground
        self.image += grain * self.noise((1.5, 3.0))[..., None]

    def noise(self, sigma: float | tuple[float, float]) -> Array:
        return smooth_noise((self.size, self.size), sigma, self.rng)

    def stain(self, coverage: Array, colour: Colour) -> None:
        for channel, value in enumerate(colour):
            blend(self.image[..., channel], coverage, value)

    def nucleus(self, at: Point, radii: Point, angle: float, colour: Colour, opacity: float = 0.9) -> None:
        """Paint one nucleus; only its surroundings are touched."""
        reach = int(max(radii) + 3)
        rows = slice(max(0, int(at[1]) - reach), int(at[1]) + reach + 1)
        columns = slice(max(0, int(at[0]) - reach), int(at[0]) + reach + 1)
        part = self.image[rows, columns]
        level = ellipse(self.x[rows, columns], self.y[rows, columns], at, radii, angle)
        for channel, value in enumerate(colour):
            blend(part[..., channel], opacity * soft(level, 0.35), value)

    def anywhere(self, count: int) -> Iterable[Point]:
        for _ in range(count):
            yield float(self.rng.uniform(0, self.size)), float(self.rng.uniform(0, self.size))

    def packed(self, step: float, jitter: float) -> Iterable[Point]:
        """Points on a grid that is not quite one."""
        for row in np.arange(-step, self.size + step, step * 0.87):
            for column in np.arange(-step, self.size + step, step):
                yield (
                    float(column + 0.5 * step * (round(row / step) % 2) + self.rng.normal(0, jitter)),
                    float(row + self.rng.normal(0, jitter)),
                )

    def finished(self) -> np.ndarray:
        """uint8 of shape (size, size, 3), in the tone of one laboratory and with the noise of a camera."""
        self.image *= self.rng.uniform(0.97, 1.02, 3).astype(np.float32)
        blurred = gaussian_filter(self.image, (0.6, 0.6, 0))
        blurred += 1.6 * self.rng.standard_normal(blurred.shape, dtype=np.float32)
        return np.asarray(np.clip(blurred, 0, 255), dtype=np.uint8)


def colon_tile(kind: str, size: int, rng: Rng) -> np.ndarray:
    """A tile of one of the classes of `COLON`, uint8 of shape (size, size, 3)."""
    return COLON[kind](size, rng)


def node_patch(*, tumour: bool, margin: bool, size: int, rng: Rng) -> np.ndarray:
    """A lymph-node patch, uint8 of shape (size, size, 3).

    Parameters
    ----------
    tumour
        A nest of large pale cells reaches into the central third.
    margin
        Such cells lie at the border of the patch and nowhere in the central third.

    Notes
    -----
    Some patches without tumour in the middle show a germinal centre, whose cells are larger than lymphocytes too.
    """
    tile = Tile(size, (214.0, 168.0, 206.0), 6, rng)
    reach = float(rng.uniform(18, 28))
    turn, away = rng.uniform(0, 2 * np.pi), float(rng.uniform(0, size / 6 + 0.5 * reach))
    nest = (size / 2 + away * np.cos(turn), size / 2 + away * np.sin(turn))
    rim = int(rng.integers(4))

    def in_nest(at: Point) -> bool:
        if tumour:
            return bool(np.hypot(at[0] - nest[0], at[1] - nest[1]) < reach)
        far = (at[0], size - at[0], at[1], size - at[1])[rim] < 0.18 * size
        return margin and bool(far)

    follicle = not tumour and rng.random() < 0.25
    for at in tile.packed(10.5 if follicle or rng.random() < 0.3 else 8.0, 1.2):
        if not in_nest(at):
            _blast(tile, at) if follicle and rng.random() < 0.5 else _lymphocyte(tile, at)
    cells = [at for at in tile.packed(15.5, 1.8) if in_nest(at)]
    if tumour:
        towards = min(1.0, 10.0 / max(away, 1e-6))
        cells.append((size / 2 + towards * (nest[0] - size / 2), size / 2 + towards * (nest[1] - size / 2)))
    for at in cells:
        tile.stain(soft(ellipse(tile.x, tile.y, at, (10.0, 9.4)), 0.4) * 0.8, (206.0, 156.0, 204.0))
        _tumour_cell(tile, at)
    return tile.finished()


def _blast(tile: Tile, at: Point) -> None:
    """A cell of a germinal centre: larger and paler than a lymphocyte, and no tumour."""
    radius = float(tile.rng.uniform(4.0, 5.2))
    tile.nucleus(at, (radius, radius * 0.9), tile.rng.uniform(0, 3), (104.0, 74.0, 146.0))


def _lymphocyte(tile: Tile, at: Point) -> None:
    radius = float(tile.rng.uniform(2.8, 3.4))
    tile.nucleus(at, (radius, radius * 0.93), tile.rng.uniform(0, 3), DARK)


def _tumour_cell(tile: Tile, at: Point) -> None:
    radius = float(tile.rng.uniform(5.2, 7.4))
    angle = tile.rng.uniform(0, np.pi)
    tone = float(tile.rng.uniform(-14, 14))
    tile.nucleus(
        at, (radius * tile.rng.uniform(1.0, 1.35), radius), angle, (128 + tone, 88 + tone, 166 + tone)
    )
    tile.nucleus(at, (radius * 0.3, radius * 0.3), angle, DARK)


def _adipose(size: int, rng: Rng) -> np.ndarray:
    tile = Tile(size, (222.0, 158.0, 190.0), 6, rng)
    step = float(rng.uniform(34, 44))
    nearest = np.full(tile.x.shape, 1e9, np.float32)
    second = nearest.copy()
    for at in tile.packed(step, 0.14 * step):
        distance = np.hypot(tile.x - at[0], tile.y - at[1])
        second = np.minimum(second, np.maximum(nearest, distance))
        nearest = np.minimum(nearest, distance)
    tile.stain(np.clip((second - nearest - 2.0) / 2.5, 0, 1).astype(np.float32), GLASS)
    walls = np.argwhere(second - nearest < 1.5)
    for row, column in walls[rng.choice(len(walls), 6, replace=False)]:
        tile.nucleus((float(column), float(row)), (3.6, 1.5), rng.uniform(0, np.pi), HEMATOXYLIN)
    return tile.finished()


def _background(size: int, rng: Rng) -> np.ndarray:
    tile = Tile(size, (237.0, 234.0, 239.0), 1.5, rng)
    tile.image += (4 * tile.noise(size / 4))[..., None]
    for at in tile.anywhere(int(rng.integers(0, 4))):
        tile.nucleus(at, (2.5, 1.5), rng.uniform(0, 3), (196.0, 180.0, 190.0), 0.5)
    return tile.finished()


def _debris(size: int, rng: Rng) -> np.ndarray:
    """Dead tissue: smudges of pink and grey-purple with clefts and splinters, no whole cell."""
    tile = Tile(size, (205.0, 150.0, 184.0), 10, rng)
    tile.image += (np.array([14.0, 18.0, 10.0], np.float32) * tile.noise(5.0)[..., None]).astype(np.float32)
    smudge = np.clip(tile.noise(4.0) - 0.4, 0, 1)
    tile.stain((0.65 * smudge).astype(np.float32), (128.0, 92.0, 148.0))
    tile.stain(np.clip(2 * (tile.noise(3.5) - 1.5), 0, 1).astype(np.float32), (236.0, 226.0, 234.0))
    for at in tile.anywhere(int(size * size / 130)):
        radius = float(rng.uniform(0.6, 1.5))
        tile.nucleus(at, (radius, radius), 0.0, DARK, float(rng.uniform(0.3, 0.8)))
    return tile.finished()


def _lymphocytes(size: int, rng: Rng) -> np.ndarray:
    """A crowd of small dark nuclei, in some tiles thinner or with the larger cells of a germinal centre."""
    tile = Tile(size, (210.0, 170.0, 208.0), 6, rng)
    blasts = float(rng.choice([0.0, 0.0, 0.35]))
    for at in tile.packed(float(rng.uniform(8.2, 10.4)), 1.4):
        if rng.random() < 0.94:
            _blast(tile, at) if rng.random() < blasts else _lymphocyte(tile, at)
    return tile.finished()


def _mucus(size: int, rng: Rng) -> np.ndarray:
    """Pale lilac streams, now and then a cell adrift."""
    tile = Tile(size, (212.0, 204.0, 228.0), 2, rng)
    drift = np.stack([tile.y + 14 * tile.noise(16.0), tile.x + 14 * tile.noise(16.0)])
    streaks = map_coordinates(smooth_noise((size, size), (2.0, 12.0), rng), drift, order=1, mode="wrap")
    tile.image += (np.array([15.0, 12.0, 8.0], np.float32) * streaks[..., None]).astype(np.float32)
    for at in tile.anywhere(int(rng.integers(3, 9))):
        tile.nucleus(at, (3.0, 2.4), rng.uniform(0, 3), HEMATOXYLIN, 0.8)
    return tile.finished()


def _fibres(tile: Tile, angle: float, bend: float, pitch: float) -> Array:
    """The relief of bent fibres, from 0 to 1."""
    across = -np.sin(angle) * tile.x + np.cos(angle) * tile.y
    waves = across + bend * tile.noise(tile.size / 5)
    relief = 0.5 + 0.5 * np.sin(waves * 2 * np.pi / pitch + 1.4 * tile.noise(9.0))
    return np.asarray(relief, dtype=np.float32)


def _muscle(size: int, rng: Rng) -> np.ndarray:
    """Dense parallel bundles, cut along in most tiles and aslant in some, where they wave and pale."""
    tile = Tile(size, (232.0, 172.0, 200.0), 5, rng)
    angle, slant = float(rng.uniform(0, np.pi)), float(rng.uniform(0, 1)) ** 2
    relief = _fibres(tile, angle, 3.0 + 16 * slant, 10.0)
    tile.stain((0.3 - 0.15 * slant) + (0.6 - 0.2 * slant) * relief, (206.0, 108.0, 152.0))
    for at in tile.anywhere(int(size * size / 420)):
        tile.nucleus(at, (6.0, 1.7), angle + rng.normal(0, 0.1), HEMATOXYLIN)
    return tile.finished()


def _normal_mucosa(size: int, rng: Rng) -> np.ndarray:
    """Round crypts of one size in rows, each a wall of goblet cells with their nuclei at its foot."""
    tile = Tile(size, (222.0, 172.0, 204.0), 6, rng)
    step = float(rng.uniform(46, 54))
    crypts = list(tile.packed(step, 2.0))
    for at in tile.anywhere(int(size * size / 260)):
        if all(np.hypot(at[0] - cx, at[1] - cy) > 0.42 * step for cx, cy in crypts):
            tile.nucleus(at, (2.4, 2.1), rng.uniform(0, 3), HEMATOXYLIN)
    for cx, cy in crypts:
        radius = 0.4 * step
        level = ellipse(
            tile.x, tile.y, (cx, cy), (radius, radius * rng.uniform(0.92, 1.0)), rng.uniform(0, 3)
        )
        tile.stain(soft(level, 0.1), (214.0, 176.0, 214.0))
        tile.stain(soft(level / 0.22, 0.2), GLASS)
        for turn in np.linspace(0, 2 * np.pi, 11, endpoint=False):
            goblet = (cx + 0.52 * radius * np.cos(turn), cy + 0.52 * radius * np.sin(turn))
            tile.nucleus(goblet, (4.2, 2.6), turn, (228.0, 220.0, 238.0))
        for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
            foot = (cx + 0.88 * radius * np.cos(turn), cy + 0.88 * radius * np.sin(turn))
            tile.nucleus(foot, (2.9, 1.7), turn, HEMATOXYLIN)
    return tile.finished()


def _stroma(size: int, rng: Rng) -> np.ndarray:
    """Loose wavy fibres in changing directions with gaps and slender nuclei."""
    tile = Tile(size, (232.0, 194.0, 214.0), 6, rng)
    angle = float(rng.uniform(0, np.pi))
    relief = _fibres(tile, angle, 26.0, 13.0)
    tile.stain(0.65 * relief, (218.0, 146.0, 184.0))
    tile.stain(np.clip(tile.noise((3.0, 7.0)) - 1.2, 0, 1).astype(np.float32) * 0.9, GLASS)
    for at in tile.anywhere(int(size * size / 560)):
        tile.nucleus(at, (4.6, 1.8), angle + rng.normal(0, 0.7), HEMATOXYLIN)
    for at in tile.anywhere(int(rng.uniform(0, size * size / 340))):
        _lymphocyte(tile, at)
    return tile.finished()


def _tumour(size: int, rng: Rng) -> np.ndarray:
    """Crowded large nuclei of many shapes, in sheets around ragged gaps, with more or less stroma between them."""
    tile = Tile(size, (204.0, 150.0, 196.0), 7, rng)
    between = tile.noise(14.0) > float(rng.uniform(0.5, 2.0))
    tile.stain(gaussian_filter(between.astype(np.float32), 1.5), (224.0, 172.0, 202.0))
    gaps = (tile.noise(9.0) > 1.7) | between
    for at in tile.packed(float(rng.uniform(13.5, 15.5)), 2.6):
        row, column = (int(np.clip(value, 0, size - 1)) for value in (at[1], at[0]))
        if not gaps[row, column]:
            _tumour_cell(tile, at)
    tile.stain(gaussian_filter((gaps & ~between).astype(np.float32), 1.2) * 0.9, (236.0, 222.0, 234.0))
    return tile.finished()


COLON: dict[str, Callable[[int, Rng], np.ndarray]] = {
    "ADI": _adipose,
    "BACK": _background,
    "DEB": _debris,
    "LYM": _lymphocytes,
    "MUC": _mucus,
    "MUS": _muscle,
    "NORM": _normal_mucosa,
    "STR": _stroma,
    "TUM": _tumour,
}
"""Upstream's name of a class -> its painter."""
