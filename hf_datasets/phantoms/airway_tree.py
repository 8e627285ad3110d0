"""A bronchial tree: branches that fork inside the lungs, each a tapering tube with a wall."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms.body import Canvas
from hf_datasets.phantoms.shapes import Mask, Rng

Point = NDArray[np.float64]
Inside = Callable[[Point], bool]

_GENERATIONS = 7
_THINNEST_MM = 2.0


@dataclass(frozen=True)
class Branch:
    """A tube from ``start`` to ``end`` (x, y, z in mm), ``radius`` mm wide inside."""

    start: Point
    end: Point
    radius: float


def grow(inside: Inside, rng: Rng) -> list[Branch]:
    """Trachea, main bronchi and what forks off them as long as it stays ``inside`` the lungs."""
    top, carina = np.array([0.0, -8, 440]), np.array([0.0, 14, 282])
    branches = [Branch(top, carina, float(rng.uniform(8.5, 10)))]
    for side, reach in ((-1, 44), (1, 56)):
        end = carina + np.array([side * reach, 4, -0.62 * reach])
        branches.append(Branch(carina, end, float(rng.uniform(6.0, 7.0))))
        heading = (end - carina) / np.linalg.norm(end - carina)
        branches += _fork(end, heading, 0.8 * branches[-1].radius, inside, rng, 2)
    return branches


def _fork(
    start: Point, heading: Point, radius: float, inside: Inside, rng: Rng, generation: int
) -> Iterator[Branch]:
    """Two or three daughters, turned away from each other; each forks on."""
    if generation > _GENERATIONS or radius < _THINNEST_MM:
        return
    across = np.cross(heading, rng.normal(size=3))
    across /= np.linalg.norm(across)
    daughters = 3 if generation == 2 else 2
    for number in range(daughters):
        turn = 2 * np.pi * number / daughters + rng.normal(0, 0.3)
        sideways = np.cos(turn) * across + np.sin(turn) * np.cross(heading, across)
        angle = rng.uniform(0.45, 0.85)
        ahead = np.cos(angle) * heading + np.sin(angle) * sideways
        length = rng.uniform(3.6, 5.2) * radius + 5
        end = start + length * ahead
        if inside(end):
            yield Branch(start, end, radius)
            yield from _fork(end, ahead, radius * rng.uniform(0.72, 0.82), inside, rng, generation + 1)


def covered(canvas: Canvas, branches: list[Branch], wall: float) -> Mask:
    """The voxels within the tubes, ``wall`` mm added to each radius."""
    mask = np.zeros(canvas.grid.shape, dtype=bool)
    axes = [canvas.grid.axis(index) for index in range(3)]
    for branch in branches:
        a, b, reach = branch.start[::-1], branch.end[::-1], branch.radius + wall
        window = tuple(
            slice(*np.searchsorted(axis, (min(p, q) - reach, max(p, q) + reach)))
            for axis, p, q in zip(axes, a, b, strict=True)
        )
        grid = np.stack(
            np.meshgrid(*(axis[part] for axis, part in zip(axes, window, strict=True)), indexing="ij"), -1
        )
        along = np.clip((grid - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
        mask[window] |= ((grid - a - along[..., None] * (b - a)) ** 2).sum(-1) < reach**2
    return mask
