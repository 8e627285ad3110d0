"""An axial chest CT in Hounsfield units, painted in mm (rows front to back, columns right to left)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft


@dataclass(frozen=True)
class Chest:
    """One slice's plan; sides are -1 for the patient's right and 1 for the left."""

    body: tuple[float, float]
    nodule: tuple[int, float] | None = None
    effusion: int | None = None
    noise: float = 12.0


def paint(plan: Chest, shape: tuple[int, int, int], spacing: tuple[float, float, float], rng: Rng) -> Array:
    """Paint a short stack of slices (slices, rows, columns); ``spacing`` in mm in the same order."""
    _, rows, columns = shape
    v = ((np.arange(rows, dtype=np.float32) - (rows - 1) / 2) * spacing[1])[:, None]
    u = ((np.arange(columns, dtype=np.float32) - (columns - 1) / 2) * spacing[2])[None, :]
    v, u = np.broadcast_arrays(v, u)
    flat = np.full((rows, columns), -1000.0, dtype=np.float32)
    _wall(flat, u, v, plan)
    _lungs(flat, u, v, plan, rng)
    _mediastinum(flat, u, v, plan)
    _bones(flat, u, v, plan, rng)
    _findings(flat, u, v, plan, rng)
    stack = np.stack([flat] * shape[0])
    stack = gaussian_filter(stack, (0.0, 0.5, 0.5))
    stack += plan.noise * smooth_noise(shape, (0.01, 0.55, 0.55), rng)
    return np.asarray(np.clip(stack, -1024, 3071), dtype=np.float32)


def _wall(hu: Array, u: Array, v: Array, plan: Chest) -> None:
    a, b = plan.body
    blend(hu, soft(ellipse(u, v, (0, 0), (a, b), power=2.4), 0.02), -100.0)
    blend(hu, soft(ellipse(u, v, (0, 1), (a * 0.93, b * 0.9), power=2.4), 0.03), 48.0)


def _lungs(hu: Array, u: Array, v: Array, plan: Chest, rng: Rng) -> None:
    a, b = plan.body
    vessels = smooth_noise(hu.shape, 1.5, rng)
    tissue = np.where(vessels > 1.9, -120.0, -860 + 18 * vessels - 40 * v / b)
    for side in (-1, 1):
        level = ellipse(u, v, (side * a * 0.46, 0), (a * 0.37, b * 0.76), side * 0.06, power=2.5)
        blend(hu, soft(level, 0.05), tissue.astype(np.float32))


def _mediastinum(hu: Array, u: Array, v: Array, plan: Chest) -> None:
    a, b = plan.body
    blend(hu, soft(ellipse(u, v, (a * 0.1, -b * 0.12), (a * 0.33, b * 0.38), 0.5), 0.06), 45.0)
    blend(hu, soft(ellipse(u, v, (a * 0.13, -b * 0.14), (a * 0.2, b * 0.24), 0.5), 0.08), 130.0)
    blend(hu, soft(ellipse(u, v, (0, b * 0.2), (a * 0.15, b * 0.32)), 0.06), 40.0)
    blend(hu, soft(ellipse(u, v, (a * 0.12, b * 0.34), (12, 12)), 0.15), 150.0)
    for side in (-1, 1):
        blend(hu, soft(ellipse(u, v, (side * 16 + 2, b * 0.1), (7, 6)), 0.2), -980.0)


def _bones(hu: Array, u: Array, v: Array, plan: Chest, rng: Rng) -> None:
    a, b = plan.body
    blend(hu, soft(ellipse(u, v, (0, b * 0.56), (20, 16), power=2.4), 0.1), 420.0)
    inner = (200 + 35 * smooth_noise(hu.shape, 1.2, rng)).astype(np.float32)
    blend(hu, soft(ellipse(u, v, (0, b * 0.56), (17, 13), power=2.4), 0.1), inner)
    blend(hu, soft(ellipse(u, v, (0, b * 0.56 + 25), (13, 11)), 0.1), 460.0)
    blend(hu, soft(ellipse(u, v, (0, b * 0.56 + 24), (8, 8)), 0.1), 25.0)
    blend(hu, soft(ellipse(u, v, (0, -b * 0.83), (17, 6)), 0.1), 330.0)
    shell = ellipse(u, v, (0, 1), (a * 0.87, b * 0.835), power=2.4)
    angle = np.arctan2(v / b, np.abs(u) / a)
    rib = (np.abs(shell - 1) < 0.035) & (np.sin(angle * 9 + 0.7) > 0.25)
    blend(hu, rib.astype(np.float32), 560.0)


def _findings(hu: Array, u: Array, v: Array, plan: Chest, rng: Rng) -> None:
    a, b = plan.body
    if plan.nodule:
        side, radius = plan.nodule
        centre = (side * a * rng.uniform(0.48, 0.58), b * rng.uniform(-0.3, 0.1))
        blend(hu, soft(ellipse(u, v, centre, (radius, radius)), 0.25), 55.0)
    if plan.effusion:
        lung = ellipse(
            u, v, (plan.effusion * a * 0.46, 0), (a * 0.37, b * 0.76), plan.effusion * 0.06, power=2.5
        )
        crescent = (lung < 1) & (v > b * 0.32 + 6 * np.cos(u / 30))
        blend(hu, crescent.astype(np.float32), 12.0)


def random_chest(
    rng: Rng, width: float, *, nodule: tuple[int, float] | None = None, effusion: int | None = None
) -> Chest:
    """A chest that fits a field of view of ``width`` mm."""
    body = (width * rng.uniform(0.44, 0.47), width * rng.uniform(0.31, 0.34))
    return Chest(body, nodule, effusion, noise=float(rng.uniform(9, 14)))
