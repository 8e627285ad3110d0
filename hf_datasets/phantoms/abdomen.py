"""A contrast-enhanced abdominal CT in Hounsfield units, painted in millimetres.

Arrays run from top to bottom of the patient, from front to back, and from the patient's right to the left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Mask, Rng, blend, ellipse, smooth_noise, soft

AIR, FAT, MUSCLE, LIVER, SPLEEN, BONE = -1000.0, -100.0, 50.0, 62.0, 75.0, 420.0
CORTEX, MEDULLA, PELVIS = 180.0, 145.0, 15.0


@dataclass(frozen=True)
class Mass:
    """A round lesion of a kidney, in millimetres from the kidney's centre."""

    offset: tuple[float, float, float]
    radius: float
    hu: float
    necrotic: bool = False


@dataclass(frozen=True)
class Kidney:
    """An ellipsoid with a hilum. ``side`` is -1 for the patient's right, 1 for the left."""

    side: int
    centre: tuple[float, float, float]
    radii: tuple[float, float, float]
    tilt: float
    tumours: tuple[Mass, ...] = ()
    cysts: tuple[Mass, ...] = ()


@dataclass(frozen=True)
class Abdomen:
    """The plan of one patient: half-axes of the body in mm and the kidneys."""

    body: tuple[float, float]
    fat: float
    kidneys: tuple[Kidney, ...]
    noise: float = 12.0
    sharpness: float = 0.5


@dataclass(frozen=True)
class Painting:
    """HU volume with the masks of what was drawn."""

    hu: Array
    kidney: Mask
    tumour: Mask


def paint(
    plan: Abdomen, shape: tuple[int, int, int], spacing: tuple[float, float, float], rng: Rng
) -> Painting:
    """Paint a volume of ``shape`` (slices, rows, columns) with ``spacing`` in mm in the same order."""
    w, v, u = (
        ((np.arange(n, dtype=np.float32) - (n - 1) / 2) * s).reshape(
            [-1 if i == axis else 1 for i in range(3)]
        )
        for axis, (n, s) in enumerate(zip(shape, spacing, strict=True))
    )
    w, v, u = np.broadcast_arrays(w, v, u)
    hu = np.full(shape, AIR, dtype=np.float32)
    draw_table(hu, u, v, plan)
    draw_body_wall(hu, u, v, w, plan)
    draw_skeleton(hu, u, v, w, plan, rng)
    _solid_organs(hu, u, v, w, plan, rng)
    _vessels(hu, u, v, w, plan, rng)
    _bowel(hu, u, v, w, plan, rng)
    kidney = np.zeros(shape, dtype=bool)
    tumour = np.zeros(shape, dtype=bool)
    for each in plan.kidneys:
        draw_kidney(hu, kidney, tumour, (w, v, u), each, rng)
    finish(hu, plan, rng)
    return Painting(hu, kidney & ~tumour, tumour)


def draw_table(hu: Array, u: Array, v: Array, plan: Abdomen) -> None:
    surface = plan.body[1] + 6 - (u / plan.body[0]) ** 2 * 14
    blend(
        hu, ((np.abs(v - surface - 4) < 2.2) & (np.abs(u) < plan.body[0] * 0.95)).astype(np.float32), -250.0
    )


def draw_body_wall(hu: Array, u: Array, v: Array, w: Array, plan: Abdomen) -> None:
    a, b = plan.body
    waist = 1 - 0.04 * np.cos(w / 60)
    blend(hu, soft(ellipse(u, v, (0, 0), (a, b), power=2.3) / waist, 0.03), FAT)
    wall = ellipse(u, v, (0, 0.5), (a - plan.fat, b - plan.fat * 0.8), power=2.3) / waist
    blend(hu, soft(wall, 0.04), MUSCLE)
    blend(
        hu,
        soft(ellipse(u, v, (0, -3), (a - plan.fat - 11, b - plan.fat * 0.8 - 11), power=2.3) / waist, 0.05),
        FAT + 6,
    )


def draw_skeleton(hu: Array, u: Array, v: Array, w: Array, plan: Abdomen, rng: Rng) -> None:
    a, b = plan.body
    back = b * 0.42
    for side in (-1, 1):
        blend(hu, soft(ellipse(u, v, (side * 34, back + 30), (24, 19)), 0.1), MUSCLE + 8)
        blend(hu, soft(ellipse(u, v, (side * 33, back - 2), (13, 16)), 0.1), MUSCLE + 6)
    body = ellipse(u, v, (0, back), (22, 16), power=2.4)
    disc = np.abs((w + 300) % 34 - 17) > 13.5
    trabecular = 190 + 30 * smooth_noise(hu.shape, 1.0, rng)
    blend(hu, soft(body, 0.1), np.where(disc, 95.0, BONE))
    blend(hu, soft(body / 0.86, 0.08) * ~disc, trabecular)
    blend(hu, soft(ellipse(u, v, (0, back + 24), (15, 12)), 0.1), BONE + 60)
    blend(hu, soft(ellipse(u, v, (0, back + 23), (9, 8)), 0.1), 25.0)
    blend(hu, soft(ellipse(u, v, (0, back + 42), (4.5, 13)), 0.2) * (np.abs((w + 310) % 34 - 17) < 11), BONE)
    shell = np.abs(ellipse(u, v, (0, 0.5), (a - plan.fat - 6, b - plan.fat * 0.8 - 6), power=2.3) - 1) * 100
    slant = w - 0.32 * v - 12
    rib = (shell < 4.2) & (np.abs((slant + 300) % 28 - 14) < 5.2) & (slant < 26) & (np.abs(u) > 26)
    blend(hu, rib.astype(np.float32), BONE + 90)


def _solid_organs(hu: Array, u: Array, v: Array, w: Array, plan: Abdomen, rng: Rng) -> None:
    a, b = plan.body
    inside = soft(ellipse(u, v, (0, -3), (a - plan.fat - 13, b - plan.fat * 0.8 - 13), power=2.3), 0.04)
    texture = 4 * smooth_noise(hu.shape, 1.2, rng)
    liver = np.sqrt(
        ellipse(u, v, (-a * 0.42, -b * 0.12), (a * 0.5, b * 0.62), 0.25) ** 2 + ((w + 58) / 78) ** 2
    )
    vessel = smooth_noise(hu.shape, (1.5, 2.0, 2.0), rng) > 1.7
    blend(hu, soft(liver, 0.08) * inside, np.where(vessel, LIVER + 45, LIVER + texture))
    spleen = np.sqrt(
        ellipse(u, v, (a * 0.58, b * 0.18), (a * 0.19, b * 0.36), -0.4) ** 2 + ((w + 62) / 42) ** 2
    )
    blend(hu, soft(spleen, 0.1) * inside, SPLEEN + texture)


def _vessels(hu: Array, u: Array, v: Array, w: Array, plan: Abdomen, rng: Rng) -> None:
    front = plan.body[1] * 0.42 - 25
    drift = 2.5 * np.sin(w / 45)
    blend(hu, soft(ellipse(u - drift, v, (10, front), (9, 9)), 0.15), 205.0)
    blend(hu, soft(ellipse(u + drift, v, (-15, front - 2), (11, 8.5)), 0.15), 115.0)
    calcified = ellipse(u - drift, v, (18, front + 3), (2.2, 3.2))
    blend(hu, soft(calcified, 0.3) * (np.abs(w - rng.uniform(-20, 60)) < 9), 600.0)


def _bowel(hu: Array, u: Array, v: Array, w: Array, plan: Abdomen, rng: Rng) -> None:
    a, b = plan.body
    for _ in range(11):
        cx, cy = rng.uniform(-0.5, 0.5) * a, rng.uniform(-0.55, -0.12) * b
        cw, radius = rng.uniform(-10, 95), rng.uniform(9, 15)
        loop = np.sqrt(
            ellipse(u, v, (cx, cy), (radius * rng.uniform(1, 1.6), radius), rng.uniform(0, 3)) ** 2
            + ((w - cw) / rng.uniform(16, 34)) ** 2
        )
        blend(hu, soft(loop, 0.12), 38.0)
        content = 18.0 if rng.random() < 0.6 else -780.0
        level = (v < cy - 1) if content < 0 else np.ones_like(v, dtype=bool)
        blend(hu, soft(loop / 0.76, 0.12) * level, content)


def draw_kidney(
    hu: Array, kidney: Mask, tumour: Mask, grid: tuple[Array, Array, Array], plan: Kidney, rng: Rng
) -> None:
    w, v, u = grid
    du, dv, dw = u - plan.centre[2], v - plan.centre[1], w - plan.centre[0]
    du = du - plan.side * np.tan(plan.tilt) * dw
    bumps = 1 + 0.035 * smooth_noise(hu.shape, (2.0, 4.0, 4.0), rng)
    level = np.sqrt((dw / plan.radii[0]) ** 2 + (dv / plan.radii[1]) ** 2 + (du / plan.radii[2]) ** 2) * bumps
    medial = -plan.side * du / plan.radii[2]
    hilum = np.sqrt(
        (dw / (plan.radii[0] * 0.42)) ** 2
        + (dv / (plan.radii[1] * 0.42)) ** 2
        + ((medial - 0.78) / 0.62) ** 2
    )
    body = (level <= 1) & (hilum > 1)
    pyramids = (np.sin(np.arctan2(dw * 0.6, du) * 7) * np.cos(dv / 6.5) > -0.1) & (level < 0.76)
    perirenal = soft(level / 1.32, 0.1)
    blend(hu, perirenal, FAT)
    tissue = np.where(pyramids, MEDULLA, CORTEX) + 7 * smooth_noise(hu.shape, 0.9, rng)
    blend(hu, body.astype(np.float32), tissue.astype(np.float32))
    blend(hu, ((hilum < 0.62) & (level < 1.02)).astype(np.float32), PELVIS)
    kidney |= body
    for mass in plan.cysts:
        inside = _ball(du, dv, dw, mass) < 1
        blend(hu, inside.astype(np.float32), mass.hu)
        kidney |= inside
    for mass in plan.tumours:
        _tumour(
            hu,
            tumour,
            _ball(du, dv, dw, mass) * (1 + 0.07 * smooth_noise(hu.shape, (1.5, 3.0, 3.0), rng)),
            mass,
            rng,
        )


def _ball(du: Array, dv: Array, dw: Array, mass: Mass) -> Array:
    ow, ov, ou = mass.offset
    return np.asarray(
        np.sqrt((dw - ow) ** 2 + (dv - ov) ** 2 + (du - ou) ** 2) / mass.radius, dtype=np.float32
    )


def _tumour(hu: Array, tumour: Mask, level: Array, mass: Mass, rng: Rng) -> None:
    inside = level < 1
    value = mass.hu + 11 * smooth_noise(hu.shape, 1.6, rng)
    if mass.necrotic:
        value = np.where(level < 0.5, 32.0, value)
    blend(hu, inside.astype(np.float32), np.clip(value, 30, 100).astype(np.float32))
    tumour |= inside


def finish(hu: Array, plan: Abdomen, rng: Rng) -> None:
    hu[:] = gaussian_filter(hu, (0.35, plan.sharpness, plan.sharpness))
    hu += plan.noise * smooth_noise(hu.shape, (0.01, 0.55, 0.55), rng)
    np.clip(hu, -1024, 3071, out=hu)


def random_abdomen(rng: Rng, width: float, lesions: int, cysts: int = 0) -> Abdomen:
    """A patient whose body fits a field of view of ``width`` mm, with so many tumours and cysts."""
    body = (width * rng.uniform(0.43, 0.465), width * rng.uniform(0.31, 0.345))
    kidneys = [_random_kidney(rng, side, body) for side in (-1, 1)]
    for _ in range(lesions):
        index = int(rng.integers(2))
        kidneys[index] = _with_mass(rng, kidneys[index], tumour=True)
    for _ in range(cysts):
        index = int(rng.integers(2))
        kidneys[index] = _with_mass(rng, kidneys[index], tumour=False)
    return Abdomen(body, float(rng.uniform(9, 16)), tuple(kidneys), noise=float(rng.uniform(9, 14)))


def _random_kidney(rng: Rng, side: int, body: tuple[float, float]) -> Kidney:
    centre = (
        rng.uniform(2, 16) - 8 * side,
        body[1] * 0.33 + rng.uniform(-3, 3),
        side * body[0] * rng.uniform(0.47, 0.52),
    )
    radii = (rng.uniform(48, 56), rng.uniform(22, 26), rng.uniform(22, 26))
    return Kidney(side, centre, radii, float(rng.uniform(0.05, 0.18)))


def _with_mass(rng: Rng, kidney: Kidney, *, tumour: bool) -> Kidney:
    """Add a mass that lies on the outer or front surface, so that it bulges."""
    polar, turn = rng.uniform(-0.55, 0.55), rng.uniform(-1.1, 0.7)
    radius = float(rng.uniform(11, 24) if tumour else rng.uniform(6, 10))
    reach = 0.98 - 0.1 * (radius / 24)
    ow = kidney.radii[0] * np.sin(polar) * reach
    ov = kidney.radii[1] * np.cos(polar) * np.sin(turn) * reach
    ou = kidney.side * kidney.radii[2] * np.cos(polar) * np.cos(turn) * reach
    hu = float(rng.uniform(40, 95) if tumour else rng.uniform(4, 12))
    mass = Mass((float(ow), float(ov), float(ou)), radius, hu, necrotic=bool(tumour and radius > 18))
    if tumour:
        return replace(kidney, tumours=(*kidney.tumours, mass))
    return replace(kidney, cysts=(*kidney.cysts, mass))
