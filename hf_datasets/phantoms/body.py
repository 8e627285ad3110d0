"""Bodies drawn slice by slice: smooth parts in millimetres, each with a structure and a tissue.

Millimetres run to the patient's left (x), to the back (y) and to the head (z); arrays are (z, y, x). A canvas
holds one byte a voxel, so that a whole-body CT of 512 x 512 x 128 is drawn and rendered within seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from hf_datasets.phantoms.shapes import Array, Rng

Bytes = NDArray[np.uint8]
Knot = tuple[float, float, float, float, float]
"""Height z, then centre x, centre y and the two radii of the cross-section there."""

_TEXTURE_VOXELS = 3


@dataclass(frozen=True)
class Part:
    """A stack of superelliptic cross-sections, linear between its knots, turned by ``angle`` in the axial plane."""

    structure: str
    tissue: str
    knots: tuple[Knot, ...]
    power: float = 2.0
    angle: float = 0.0

    def section(self, z: float) -> Knot | None:
        """The cross-section at a height; None outside of the part."""
        heights = [knot[0] for knot in self.knots]
        if not heights[0] <= z <= heights[-1]:
            return None
        x, y, rx, ry = (float(np.interp(z, heights, [knot[i] for knot in self.knots])) for i in range(1, 5))
        return (z, x, y, rx, ry) if min(rx, ry) > 0 else None


def tube(structure: str, tissue: str, *knots: Knot, power: float = 2.0, angle: float = 0.0) -> Part:
    """A part from its knots, in any order."""
    return Part(structure, tissue, tuple(sorted(knots)), power, angle)


def egg(
    structure: str,
    tissue: str,
    centre: tuple[float, float, float],
    radii: tuple[float, float, float],
    *,
    power: float = 2.0,
    angle: float = 0.0,
) -> Part:
    """A superellipsoid as a stack of sections; centre and radii in (x, y, z)."""
    x, y, z = centre
    rx, ry, rz = radii
    steps = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 15))
    shares = (1 - np.abs(steps) ** power) ** (1 / power)
    knots = ((z + rz * s, x, y, rx * share, ry * share) for s, share in zip(steps, shares, strict=True))
    return Part(
        structure,
        tissue,
        tuple((float(a), b, c, float(d), float(e)) for a, b, c, d, e in knots),
        power,
        angle,
    )


@dataclass(frozen=True)
class Grid:
    """Shape (z, y, x), spacing in mm in the same order, and the millimetres of the volume's centre (x, y, z)."""

    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]
    centre: tuple[float, float, float]

    def axis(self, index: int) -> Array:
        """Millimetres along one array axis."""
        size, step, middle = self.shape[index], self.spacing[index], self.centre[2 - index]
        return (np.arange(size, dtype=np.float32) - (size - 1) / 2) * np.float32(step) + np.float32(middle)


@dataclass
class Canvas:
    """What was drawn: ``paint`` holds an index into ``colours``, which are pairs of structure and tissue."""

    grid: Grid
    paint: Bytes
    colours: list[tuple[str, str]] = field(default_factory=lambda: [("", "air")])

    def colour(self, structure: str, tissue: str) -> int:
        """The byte for a structure ('' for none) made of a tissue."""
        pair = (structure, tissue)
        if pair not in self.colours:
            self.colours.append(pair)
        return self.colours.index(pair)

    def labels(self, ids: Mapping[str, int]) -> Bytes:
        """The label map; structures without an id are background."""
        return np.array([ids.get(structure, 0) for structure, _ in self.colours], dtype=np.uint8)[self.paint]

    def of(self, *structures: str) -> NDArray[np.bool_]:
        """Where any of the structures was drawn."""
        return np.array([structure in structures for structure, _ in self.colours])[self.paint]


def blank(grid: Grid) -> Canvas:
    """A canvas of air."""
    return Canvas(grid, np.zeros(grid.shape, dtype=np.uint8))


def draw(canvas: Canvas, parts: Iterable[Part]) -> None:
    """Draw the parts in order, each over what is there."""
    xs, ys = canvas.grid.axis(2), canvas.grid.axis(1)
    heights = canvas.grid.axis(0)
    for part in parts:
        colour = canvas.colour(part.structure, part.tissue)
        low, high = np.searchsorted(heights, (part.knots[0][0], part.knots[-1][0]))
        for k in range(int(low), int(high)):
            section = part.section(float(heights[k]))
            if section is not None:
                _draw_section(canvas.paint[k], xs, ys, section, part, colour)


def _draw_section(slice_: Bytes, xs: Array, ys: Array, section: Knot, part: Part, colour: int) -> None:
    _, x, y, rx, ry = section
    reach_x, reach_y = (rx, ry) if part.angle == 0 else (max(rx, ry), max(rx, ry))
    left, right = np.searchsorted(xs, (x - reach_x, x + reach_x))
    front, back = np.searchsorted(ys, (y - reach_y, y + reach_y))
    dx, dy = (xs[left:right] - x)[None, :], (ys[front:back] - y)[:, None]
    if part.angle:
        cos, sin = np.float32(np.cos(part.angle)), np.float32(np.sin(part.angle))
        dx, dy = cos * dx + sin * dy, cos * dy - sin * dx
    inside = np.abs(dx / rx) ** part.power + np.abs(dy / ry) ** part.power <= 1
    slice_[front:back, left:right][inside] = colour


def render(
    canvas: Canvas, values: Mapping[str, float], texture: Mapping[str, float], noise: float, rng: Rng
) -> Array:
    """Intensities: each tissue's value, a blotchy texture, partial volume and noise of that deviation, float32."""
    table = np.array([values[tissue] for _, tissue in canvas.colours], dtype=np.float32)
    rough = np.array([texture.get(tissue, 0.0) for _, tissue in canvas.colours], dtype=np.float32)
    image = table[canvas.paint]
    image += rough[canvas.paint] * _blotches(canvas.grid.shape, rng)
    image += (1.9 * noise) * rng.standard_normal(canvas.grid.shape, dtype=np.float32)
    for axis in (1, 2):
        gaussian_filter1d(image, 0.55, axis=axis, output=image, truncate=2.0)
    return image


def _blotches(shape: tuple[int, int, int], rng: Rng) -> Array:
    """Unit noise that is constant over small blocks; the rendering's blur rounds their corners."""
    coarse = rng.standard_normal([-(-size // _TEXTURE_VOXELS) for size in shape], dtype=np.float32)
    for axis, size in enumerate(shape):
        coarse = np.repeat(coarse, _TEXTURE_VOXELS, axis=axis).take(range(size), axis=axis)
    return coarse
