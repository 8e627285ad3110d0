"""Distances between sets of voxels: most are looked up a few voxels around, a tree answers for the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

_REACH = 3
"""Voxels along each axis that are looked at around a voxel: surfaces of one organ mostly lie that close."""


def distances_to_nearest(
    start: NDArray[np.int64], end: NDArray[np.int64], shape: tuple[int, ...], spacing: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distance in mm from each voxel of ``start`` to the nearest one of ``end``.

    Parameters
    ----------
    start, end : arrays (n,), (m,)
        Flat indices in C order, sorted, ``end`` not empty.
    shape : tuple of int
        Of the volume.
    spacing : array (axes,)
        mm along each axis.

    Returns
    -------
    array (n,)
        >= 0, exact.
    """
    result = np.zeros(start.size)
    rest = np.flatnonzero(~np.isin(start, end, assume_unique=True))
    if rest.size:
        here, there = (np.stack(np.unravel_index(side, shape)) for side in (start[rest], end))
        near = _nearby(here, there, spacing)
        result[rest] = near
        far = np.isinf(near)
        if far.any():
            tree = cKDTree(there.T * spacing, balanced_tree=False, leafsize=32)
            result[rest[far]] = tree.query(here[:, far].T * spacing)[0]
    return result


def _nearby(
    here: NDArray[np.int64], there: NDArray[np.int64], spacing: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distance from each point of ``here`` (axes, n) to the nearest of ``there``; infinite unless it is close.

    Every step that is shorter than any step out of the cube around a point is tried, the shortest first, so that
    what is found is the nearest.
    """
    low = there.min(axis=1, keepdims=True) - _REACH
    size = there.max(axis=1, keepdims=True) + _REACH + 1 - low
    taken = np.zeros(int(size.prod()), dtype=bool)
    taken[np.ravel_multi_index(tuple(there - low), tuple(size[:, 0]))] = True
    # A point needs the whole cube around it inside of the box, or the cube would wrap around the box's sides.
    inside = np.all((here - low >= _REACH) & (here - low < size - _REACH), axis=0)
    result = np.full(here.shape[1], np.inf)
    place = np.flatnonzero(inside)
    left = np.ravel_multi_index(tuple((here - low)[:, inside]), tuple(size[:, 0]))
    for step, distance in _short_steps(tuple(spacing), tuple(size[:, 0])):
        if not left.size:
            break
        hit = taken[left + step]
        result[place[hit]] = distance
        place, left = place[~hit], left[~hit]
    return result


def _short_steps(spacing: tuple[float, ...], shape: tuple[int, ...]) -> list[tuple[int, float]]:
    """Steps in flat index and mm, the shortest first."""
    steps = np.indices((2 * _REACH + 1,) * len(spacing)).reshape(len(spacing), -1) - _REACH
    lengths = np.linalg.norm(steps * np.array(spacing)[:, None], axis=0)
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    order = np.argsort(lengths, kind="stable")[1:]
    kept = order[lengths[order] < (_REACH + 1) * min(spacing)]
    return list(zip((strides @ steps)[kept].tolist(), lengths[kept].tolist(), strict=True))
