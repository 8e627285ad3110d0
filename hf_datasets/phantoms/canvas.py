"""A volume on which named structures are painted in millimetres; what was painted first stays.

Coordinates are (w, v, u): downwards, backwards and to the patient's left, as in `hf_datasets.phantoms.abdomen`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from hf_datasets.phantoms.shapes import Array, Mask

Point = tuple[float, float, float]
Window = tuple[slice, slice, slice]
FREE, RESERVED = 0, 1


class Canvas:
    """Image values and, for each voxel, the structure that owns it.

    Parameters
    ----------
    shape, spacing
        Slices, rows, columns, and their distances in mm.
    top
        Height (w) of the first slice; rows and columns are centred on 0.
    """

    def __init__(
        self, shape: tuple[int, int, int], spacing: tuple[float, float, float], top: float, value: float
    ) -> None:
        starts = (top, *(-(n - 1) / 2 * step for n, step in zip(shape[1:], spacing[1:], strict=True)))
        self.axes = tuple(
            (start + step * np.arange(n)).astype(np.float32)
            for start, step, n in zip(starts, spacing, shape, strict=True)
        )
        self.spacing = spacing
        self.values: Array = np.full(shape, value, dtype=np.float32)
        self.owner: NDArray[np.uint8] = np.full(shape, FREE, dtype=np.uint8)
        self.names: list[str] = ["", "(reserved)"]

    def grid(self) -> tuple[Array, Array, Array]:
        """The coordinates w, v, u of every voxel, as read-only views."""
        w, v, u = self._local((slice(None), slice(None), slice(None)))
        w, v, u = np.broadcast_arrays(w, v, u)
        return w, v, u

    def mask(self, *names: str) -> Mask:
        """Where one of the structures was painted; nowhere for a name that never was."""
        numbers = [self.names.index(name) for name in names if name in self.names]
        return np.isin(self.owner, numbers)

    def claim(self, name: str, inside: Mask) -> None:
        """Give free voxels of a mask of the whole volume to a structure without painting them."""
        self.owner[inside & (self.owner == FREE)] = self._number(name)

    def ellipsoid(
        self,
        name: str,
        centre: Point,
        radii: Point,
        value: float | Array,
        *,
        within: Sequence[str] = (),
        power: float = 2.0,
    ) -> None:
        """Paint a (super)ellipsoid over free voxels or, where given, over those of the structures ``within``."""
        window = self._window(centre, radii)
        level = sum(
            (np.abs(axis - place) / radius) ** power
            for axis, place, radius in zip(self._local(window), centre, radii, strict=True)
        )
        self._put(name, window, np.asarray(level) < 1, value, within)

    def tube(
        self,
        name: str,
        path: Sequence[Point],
        radius: float | Sequence[float],
        value: float,
        *,
        within: Sequence[str] = (),
        inner: float = 0.0,
        content: Callable[[float], float] | None = None,
    ) -> None:
        """Paint a tube along a smooth path; ``radius`` may differ from point to point.

        The lumen has ``inner`` times the radius and holds ``content`` of the place along the path (0 to 1).
        """
        points, radii, places = _along(path, radius, step=0.6 * min(self.spacing))
        for point, size in zip(points, radii, strict=True):
            self.ellipsoid(name, point, (size, size, size), value, within=within)
        if content is None:
            return
        for point, size, place in zip(points, radii, places, strict=True):
            core = inner * size
            self.ellipsoid(name, point, (core, core, core), content(float(place)), within=(name,))

    def halo(self, path: Sequence[Point], radius: float | Sequence[float], value: float) -> None:
        """Keep the surroundings of a path free for fat."""
        for point, size, _ in zip(*_along(path, radius, step=min(self.spacing)), strict=True):
            window = self._window(point, (size, size, size))
            inside = self._ball(window, point, size) & (self.owner[window] == FREE)
            self.values[window][inside] = value
            self.owner[window][inside] = RESERVED

    def _ball(self, window: Window, centre: Point, radius: float) -> Mask:
        squares = ((axis - place) ** 2 for axis, place in zip(self._local(window), centre, strict=True))
        return np.asarray(sum(squares) < radius**2)

    def _put(
        self, name: str, window: Window, inside: Mask, value: float | Array, within: Sequence[str]
    ) -> None:
        owner = self.owner[window]
        if within:
            inside = inside & np.isin(owner, [self._number(other) for other in within])
        else:
            inside = inside & (owner == FREE)
        self.values[window][inside] = value if isinstance(value, float | int) else value[window][inside]
        owner[inside] = self._number(name)

    def _number(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def _window(self, centre: Point, reach: Point) -> Window:
        first, second, third = (
            slice(*np.searchsorted(axis, (place - size, place + size)))
            for axis, place, size in zip(self.axes, centre, reach, strict=True)
        )
        return first, second, third

    def _local(self, window: Window) -> tuple[Array, Array, Array]:
        w, v, u = (axis[part] for axis, part in zip(self.axes, window, strict=True))
        return w[:, None, None], v[None, :, None], u[None, None, :]


def _along(
    path: Sequence[Point], radius: float | Sequence[float], step: float
) -> tuple[list[Point], list[float], Array]:
    """Points on a smooth curve through ``path``, not farther apart than ``step`` mm, with radius and place."""
    knots = np.asarray(path, dtype=float)
    length = np.r_[0, np.cumsum(np.linalg.norm(np.diff(knots, axis=0), axis=1))]
    count = int(np.ceil(length[-1] / step)) + 1
    places = np.linspace(0, 1, count)
    curve = make_interp_spline(length / length[-1], knots, k=min(3, len(knots) - 1))(places)
    sizes = np.broadcast_to(np.asarray(radius, dtype=float), (len(knots),))
    points = [(float(w), float(v), float(u)) for w, v, u in curve]
    return points, np.interp(places, length / length[-1], sizes).tolist(), places
