"""A head with its upper neck, in millimetres, in any contrast: one anatomy, seen by MR or by CT.

``x`` runs from the patient's right to the left, ``y`` from front to back and ``z`` from feet to head; the
origin is the middle of the brain. Every random choice is in the plan, so that two contrasts of one plan show
exactly the same anatomy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hf_datasets.phantoms.shapes import Array, Mask, Rng, blend, ellipse

Contrast = Mapping[str, float]

T1: Contrast = {
    "air": 0.0, "skin": 0.55, "fat": 0.95, "bone": 0.05, "marrow": 0.55, "csf": 0.13, "grey": 0.47, "white": 0.68,
    "muscle": 0.4, "vessel": 0.2, "necrosis": 0.22, "rim": 0.5, "oedema": 0.42, "tooth": 0.02, "eye": 0.15,
}  # fmt: skip
T1C: Contrast = {**T1, "rim": 0.97, "vessel": 0.9, "muscle": 0.45}
T2: Contrast = {
    "air": 0.0, "skin": 0.4, "fat": 0.62, "bone": 0.05, "marrow": 0.42, "csf": 0.95, "grey": 0.52, "white": 0.36,
    "muscle": 0.24, "vessel": 0.08, "necrosis": 0.88, "rim": 0.6, "oedema": 0.74, "tooth": 0.02, "eye": 0.9,
}  # fmt: skip
CT: Contrast = {
    "air": -1000.0, "skin": 20.0, "fat": -95.0, "bone": 1050.0, "marrow": 420.0, "csf": 8.0, "grey": 38.0,
    "white": 30.0, "muscle": 58.0, "vessel": 48.0, "necrosis": 16.0, "rim": 42.0, "oedema": 22.0, "tooth": 1900.0,
    "eye": 12.0,
}  # fmt: skip

FLOOR = -42.0
"""Height of the skull base; brain lies above it, face and neck below."""


@dataclass(frozen=True)
class Tumour:
    """An enhancing ring around necrosis, in oedema."""

    centre: tuple[float, float, float]
    radius: float


@dataclass(frozen=True)
class Head:
    """The plan: half-axes of the skin, the waves that fold the cortex, and what is ill."""

    radii: tuple[float, float, float]
    waves: Array
    tilt: float
    ventricle: float
    neck: float
    tumour: Tumour | None = None


def random_head(rng: Rng, *, tumour: bool = False) -> Head:
    """A head of ordinary size; a tumour lies in one hemisphere, away from the midline."""
    radii = (rng.uniform(72, 78), rng.uniform(90, 97), rng.uniform(88, 95))
    directions = rng.standard_normal((16, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths, phases = rng.uniform(15, 24, (16, 1)), rng.uniform(0, 2 * np.pi, (16, 1))
    waves = np.hstack([2 * np.pi * directions / lengths, phases]).astype(np.float32)
    mass = None
    if tumour:
        side = float(rng.choice([-1, 1]))
        centre = (side * rng.uniform(24, 36), rng.uniform(-35, 40), rng.uniform(5, 30))
        mass = Tumour(centre, float(rng.uniform(11, 18)))
    return Head(radii, waves, float(rng.uniform(-0.06, 0.06)), float(rng.uniform(0.85, 1.3)),
                float(rng.uniform(56, 64)), mass)  # fmt: skip


def paint(plan: Head, x: Array, y: Array, z: Array, contrast: Contrast, edge: float) -> Array:
    """The value of every point of the grid that the coordinates span; borders are ``edge`` millimetres wide."""
    x, y = _turned(plan, x, y)
    image = np.full(np.broadcast_shapes(x.shape, z.shape), contrast["air"], dtype=np.float32)
    canvas = _Canvas(plan, x, y, z, contrast, edge, image)
    skull = canvas.depth((0, 0, 0), plan.radii)
    _soft_parts(canvas, skull)
    if z.min() < FLOOR + edge:
        _face_and_neck(canvas)
    if z.max() > FLOOR - edge:
        _skull(canvas, skull)
        _brain(canvas, np.minimum(skull - 15, z - FLOOR))
    return image


def brain_mask(plan: Head, x: Array, y: Array, z: Array) -> Array:
    """1 inside the brain's surface, as a skull-stripping program would keep it."""
    skull = _Canvas(plan, *_turned(plan, x, y), z, {}, 1.0, np.zeros(1)).depth((0, 0, 0), plan.radii)
    return np.asarray(np.minimum(skull - 14.5, z - FLOOR) > 0, dtype=np.float32)


def body_mask(plan: Head, x: Array, y: Array, z: Array, margin: float) -> Array:
    """1 inside the skin, widened by ``margin`` millimetres."""
    canvas = _Canvas(plan, *_turned(plan, x, y), z, {}, 1.0, np.zeros(1))
    skull = canvas.depth((0, 0, 0), plan.radii)
    return (np.maximum(skull, _lower_body(canvas)) > -margin).astype(np.float32)


def _turned(plan: Head, x: Array, y: Array) -> tuple[Array, Array]:
    """The head is held a little aslant."""
    cos, sin = np.float32(np.cos(plan.tilt)), np.float32(np.sin(plan.tilt))
    return x * cos - y * sin, x * sin + y * cos


@dataclass(frozen=True)
class _Canvas:
    plan: Head
    x: Array
    y: Array
    z: Array
    contrast: Contrast
    edge: float
    image: Array

    def depth(self, centre: tuple[float, float, float], radii: tuple[float, float, float]) -> Array:
        """Millimetres (nearly) below the surface of an ellipsoid, negative outside."""
        level = np.sqrt(
            ((self.x - centre[0]) / radii[0]) ** 2
            + ((self.y - centre[1]) / radii[1]) ** 2
            + ((self.z - centre[2]) / radii[2]) ** 2
        )
        return np.asarray((1 - level) * (sum(radii) / 3), dtype=np.float32)

    def column(
        self, centre: tuple[float, float], radii: tuple[float, float], below: float, above: float = -1e3
    ) -> Array:
        """Depth below the surface of an upright elliptic column between two heights."""
        level = ellipse(self.x, self.y, centre, radii, power=2.3)
        side = (1 - level) * (sum(radii) / 2)
        return np.asarray(np.minimum(np.minimum(side, below - self.z), self.z - above), dtype=np.float32)

    def cover(self, depth: Array) -> Array:
        return np.asarray(np.clip(0.5 + depth / self.edge, 0, 1), dtype=np.float32)

    def fill(self, depth: Array, tissue: str, within: Array | float = 1.0) -> None:
        blend(self.image, np.asarray(self.cover(depth) * within), self.contrast[tissue])


def _lower_body(canvas: _Canvas) -> Array:
    """Depth below the skin of neck and face."""
    plan = canvas.plan
    a, b, _ = plan.radii
    neck = canvas.column((0, 22), (plan.neck, plan.neck * 0.98), FLOOR + 25)
    level = (
        (np.abs(canvas.x) / (a * 0.86)) ** 2.6
        + (np.abs(canvas.y + 28) / (b * 0.73)) ** 2.6
        + (np.abs(canvas.z + 58) / 64) ** 3.4
    ) ** (1 / 2.6)
    face = (1 - level) * 55
    shoulders = np.minimum(
        (1 - ellipse(canvas.x, canvas.y, (0, 32), (118, 66), power=2.6)) * 80, -128 - canvas.z
    )
    return np.asarray(np.maximum(np.maximum(neck, face), shoulders), dtype=np.float32)


def _soft_parts(canvas: _Canvas, skull: Array) -> None:
    skin = np.maximum(skull, _lower_body(canvas))
    canvas.fill(skin, "skin")
    canvas.fill(skin - 2.5, "fat")
    canvas.fill(_lower_body(canvas) - 8, "muscle")


def _skull(canvas: _Canvas, skull: Array) -> None:
    above = np.asarray(np.clip(canvas.z - FLOOR + 7, 0, 1), dtype=np.float32)
    canvas.fill(skull - 6.5, "bone", above)
    canvas.fill(1.5 - np.abs(skull - 10), "marrow", above * (canvas.z > FLOOR + 3))
    canvas.fill(np.minimum(skull - 13, canvas.z - FLOOR + 1), "csf")


def _folds(canvas: _Canvas, within: Mask) -> Array:
    """A smooth field of unit scatter whose zero lines run like sulci; 0 outside of ``within``."""
    field = np.zeros(canvas.image.shape, dtype=np.float32)
    x, y, z = (np.broadcast_to(axis, field.shape)[within] for axis in (canvas.x, canvas.y, canvas.z))
    waves = canvas.plan.waves
    field[within] = sum(np.sin(kx * x + ky * y + kz * z + phase) for kx, ky, kz, phase in waves)
    return np.asarray(field / np.sqrt(len(waves) / 2), dtype=np.float32)


def _brain(canvas: _Canvas, depth: Array) -> None:
    c, inside = canvas, canvas.cover(depth)
    folds = np.abs(_folds(c, inside > 0))
    canvas.fill(depth, "grey")
    white = np.minimum(depth - 3.2, 11 * (folds - 0.42 * np.clip(1.25 - depth / 24, 0.0, 1.3)))
    canvas.fill(white, "white")
    sulcus = 9 * (0.2 * np.clip(1 - depth / 15, 0, 1) - folds)
    canvas.fill(sulcus, "csf", inside * (depth < 15))
    fissure = np.minimum(1.3 - np.abs(c.x), np.maximum(c.z - 22, np.abs(c.y + 5) - 42))
    canvas.fill(fissure, "csf", inside)
    _deep_structures(canvas)
    _cerebellum(canvas, inside)
    if c.plan.tumour is not None:
        _tumour(canvas, c.plan.tumour, inside)


def _deep_structures(canvas: _Canvas) -> None:
    size = canvas.plan.ventricle
    for side in (-1, 1):
        canvas.fill(canvas.depth((side * 24, -4, 2), (9, 22, 13)), "grey")
        canvas.fill(canvas.depth((side * 11, 14, 4), (8, 14, 10)), "grey")
        canvas.fill(canvas.depth((side * 9, -18, 16), (5.5 * size, 20, 8 * size)), "csf")
        canvas.fill(canvas.depth((side * 17, 26, 11), (6 * size, 17, 8 * size)), "csf")
        canvas.fill(canvas.depth((side * 9, 22, 12), (3, 4, 3)), "vessel")
    canvas.fill(canvas.depth((0, 8, -2), (2.2, 13, 12)), "csf")
    canvas.fill(canvas.depth((0, 88, 10), (5, 5, 40)), "vessel")


def _cerebellum(canvas: _Canvas, inside: Array) -> None:
    c = canvas
    body = c.depth((0, 52, -32), (46, 30, 24))
    canvas.fill(np.minimum(body + 2, 2.5 - np.abs(body)), "csf", inside)
    canvas.fill(body, "grey", inside)
    leaves = 1.5 * np.sin(0.95 * (c.z + 0.3 * c.y) + 0.04 * np.abs(c.x)) - 0.3
    canvas.fill(np.minimum(body - 3, leaves), "white", inside)
    canvas.fill(c.depth((0, 34, -32), (7, 5, 9)), "csf", inside)
    canvas.fill(c.depth((0, 20, -36), (13, 13, 26)), "white", inside)


def _tumour(canvas: _Canvas, tumour: Tumour, inside: Array) -> None:
    ripple = 1.6 * _folds(canvas, inside > 0)
    depth = canvas.depth(tumour.centre, (tumour.radius,) * 3) + ripple
    canvas.fill(np.minimum(depth + 11 + 2 * ripple, 30), "oedema", inside * 0.85)
    canvas.fill(depth, "rim", inside)
    canvas.fill(depth - 0.32 * tumour.radius, "necrosis", inside)


def _face_and_neck(canvas: _Canvas) -> None:
    c = canvas
    for side in (-1, 1):
        canvas.fill(c.depth((side * 32, -70, -38), (13, 13, 13)), "fat")
        canvas.fill(c.depth((side * 32, -72, -38), (12, 12, 12)), "eye")
        canvas.fill(c.column((side * 24, -58), (17, 15), -60, -88), "bone")
        canvas.fill(c.column((side * 24, -58), (14.5, 12.5), -62, -86), "air")
        canvas.fill(c.column((side * 54, 18), (12, 17), -40, -72), "bone")
        canvas.fill(c.column((side * 54, 20), (8, 10), -46, -66), "marrow")
        canvas.fill(c.column((side * 34, 2), (6.5, 6.5), -75), "vessel")
        canvas.fill(c.column((side * 40, 34), (9, 20), -85), "fat", 0.5)
    canvas.fill(c.column((0, -62), (8, 26), -46, -86), "bone", 0.9)
    canvas.fill(c.column((0, -62), (6, 24), -48, -84), "air")
    canvas.fill(np.minimum(c.depth((0, -6, -46), (46, 38, 16)), FLOOR + 1 - c.z), "bone")
    canvas.fill(np.minimum(c.depth((0, -6, -46), (38, 30, 9)), FLOOR - 4 - c.z), "marrow")
    _jaws(canvas)
    canvas.fill(c.column((0, -12), (9, 12), -62), "air")
    _spine(canvas)


def _jaws(canvas: _Canvas) -> None:
    """Two bony arches with a row of teeth between them, around the tongue."""
    c = canvas
    arch = np.asarray(
        6.0 - np.abs((1 - ellipse(c.x, c.y, (0, -28), (46, 50), power=2.2)) * 48 - 6), dtype=np.float32
    )
    arch = np.minimum(arch, -c.y + 6)
    for top, bottom in ((-84, -93), (-101, -112)):
        band = np.minimum(np.minimum(arch, top - c.z), c.z - bottom)
        canvas.fill(band, "bone")
        canvas.fill(band - 2.5, "marrow")
    crowns = np.minimum(arch - 1, 3.2 * np.sin(np.arctan2(c.x, -(c.y + 20)) * 7) + 2)
    canvas.fill(np.minimum(np.minimum(crowns, -92 - c.z), c.z + 102), "tooth", (c.y < -22).astype(np.float32))


def _spine(canvas: _Canvas) -> None:
    """Vertebral bodies with discs between them, the arch behind and the cord in its canal."""
    c = canvas
    beat = np.asarray(6.5 - np.abs((c.z + 60) % 17 - 8.5), dtype=np.float32)
    body = np.minimum(c.column((0, 18), (13, 11), -50), beat)
    canvas.fill(c.column((0, 18), (12, 10), -50), "csf", 0.4)
    canvas.fill(body, "bone")
    canvas.fill(body - 2.5, "marrow")
    ring = c.column((0, 38), (17, 14), -48)
    canvas.fill(np.minimum(ring, beat + 1), "bone")
    canvas.fill(c.column((0, 64), (4, 15), -50), "bone", np.clip(beat, 0, 1))
    canvas.fill(c.column((0, 38), (11, 9), 0), "csf")
    canvas.fill(c.column((0, 38), (6.5, 5), 0), "white")
