"""Chest radiographs drawn from a list of findings, so that the picture and its report can't disagree.

Coordinates run from -1 to 1; the patient's right is on the left of a frontal image, as on a light box, and
the front of the chest is on the left of a lateral one. Values are attenuations until the film is exposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Mask, Rng, blend, ellipse, smooth_noise, soft

Side = Literal["right", "left"]
Zone = Literal["upper", "mid", "lower"]

WIDTH, HEIGHT = 304, 336
_SIGN = {"right": -1, "left": 1}
_ZONE_Y = {"upper": -0.4, "mid": -0.1, "lower": 0.2}


@dataclass(frozen=True)
class Findings:
    """What is drawn. ``None`` and ``False`` mean absent."""

    effusion: Side | None = None
    pneumothorax: Side | None = None
    consolidation: tuple[Side, Zone] | None = None
    nodule: tuple[Side, Zone] | None = None
    cardiomegaly: bool = False
    pacemaker: bool = False
    catheter: bool = False
    wide_aorta: bool = False

    @property
    def normal(self) -> bool:
        """Nothing is drawn."""
        return self == Findings()


def frontal(findings: Findings, rng: Rng) -> np.ndarray:
    """A frontal view, uint8 of shape (HEIGHT, WIDTH)."""
    return frontal_with_extents(findings, rng)[0]


def frontal_with_extents(findings: Findings, rng: Rng) -> tuple[np.ndarray, dict[str, Mask]]:
    """A frontal view and, for each finding by its field's name, where it is drawn."""
    y, x = _grid()
    film = _torso(x, y)
    air = _lung_air(x, y, findings, rng)
    film -= 0.74 * air
    _markings(film, x, y, air, rng)
    extents = _centre(film, x, y, findings)
    _bones(film, x, y)
    extents |= _frontal_findings(film, x, y, air, findings, rng)
    if findings.effusion:
        sign = _SIGN[findings.effusion]
        base = _lung_shape(x, y, sign) < 1.08
        extents["effusion"] = base & (y > 0.12) & (y < _dome(x, sign)) & (air < 0.5)
    _devices(film, x, y, findings)
    return _expose(film, rng), extents


def lateral(findings: Findings, rng: Rng) -> np.ndarray:
    """A lateral view, uint8 of shape (HEIGHT, WIDTH)."""
    y, x = _grid()
    film = 1.0 * soft(ellipse(x, y, (0, 0.3), (0.8, 1.5), power=3), 0.06)
    dome = 0.44 + 0.5 * (x - 0.05) ** 2 + 0.1 * x
    air = soft(ellipse(x, y, (0.04, -0.08), (0.62, 0.78), 0.12, power=2.6), 0.06) * _step(dome - y, 0.03)
    if findings.effusion:
        air = air * _step(0.36 - 0.3 * (x - 0.2) - y, 0.05)
    film -= 0.66 * air
    film += 0.05 * air * smooth_noise(x.shape, 3, rng)
    heart = 0.34 if findings.cardiomegaly else 0.25
    film += 0.4 * soft(ellipse(x, y, (-0.22, 0.24), (heart, heart * 0.85), 0.5), 0.2) * air
    spine = ellipse(x + 0.12 * y, y, (0.52, 0), (0.13, 2))
    film += (0.26 + 0.07 * np.sin(y * 34)) * soft(spine, 0.3)
    film += 0.3 * soft(np.abs(x + 0.62 - 0.1 * y) / 0.03, 0.5) * (np.abs(y + 0.1) < 0.5)
    for k in range(9):
        film += 0.08 * soft(np.abs(y + 0.75 - 0.15 * k - 0.32 * (x + 0.1)) / 0.022, 0.5) * (air > 0.2)
    if findings.consolidation:
        centre = (0.1, _ZONE_Y[findings.consolidation[1]])
        film += 0.42 * soft(ellipse(x, y, centre, (0.2, 0.16)), 0.6) * air
    if findings.nodule:
        film += 0.5 * soft(ellipse(x, y, (0.05, _ZONE_Y[findings.nodule[1]]), (0.045, 0.041)), 0.3)
    if findings.pacemaker:
        blend(film, soft(ellipse(x, y, (-0.66, -0.5), (0.05, 0.12), power=4), 0.1), 2.2)
        blend(film, _wire(x.shape, [(-0.62, -0.42), (-0.2, -0.35), (-0.05, 0.1), (-0.25, 0.34)]), 1.9)
    return _expose(film, rng)


def heart_ratio(findings: Findings) -> float:
    """Width of the drawn heart over the width of the drawn chest, the radiologist's cardiothoracic ratio."""
    return 2 * _heart_radii(findings)[0] / 1.56


def deal(rng: Rng, count: int) -> list[Findings]:
    """Findings for so many patients: every kind occurs, a quarter are normal, the order is random."""
    kinds = (
        "normal",
        "effusion",
        "pneumothorax",
        "consolidation",
        "nodule",
        "cardiomegaly",
        "normal",
        "consolidation",
    )
    dealt = [_draw(kinds[index % len(kinds)], rng) for index in range(count)]
    return [dealt[index] for index in rng.permutation(count)]


def _draw(kind: str, rng: Rng) -> Findings:
    if kind == "normal":
        return Findings()
    side: Side = "right" if rng.random() < 0.5 else "left"
    zone: Zone = ("upper", "mid", "lower")[int(rng.integers(3))]
    return Findings(
        effusion=side if kind == "effusion" else None,
        pneumothorax=side if kind == "pneumothorax" else None,
        consolidation=(side, zone) if kind == "consolidation" else None,
        nodule=(side, "upper" if zone == "lower" else zone) if kind == "nodule" else None,
        cardiomegaly=kind == "cardiomegaly" or bool(rng.random() < 0.2),
        pacemaker=bool(rng.random() < (0.6 if kind == "cardiomegaly" else 0.1)),
        catheter=bool(rng.random() < 0.2),
    )


def _grid() -> tuple[Array, Array]:
    y, x = np.meshgrid(np.linspace(-1, 1, HEIGHT), np.linspace(-1, 1, WIDTH), indexing="ij")
    return y.astype(np.float32), x.astype(np.float32)


def _step(distance: Array, width: float) -> Array:
    return np.asarray(np.clip(0.5 + distance / width, 0, 1), dtype=np.float32)


def _torso(x: Array, y: Array) -> Array:
    trunk = soft(ellipse(x, y, (0, 0.55), (0.97, 1.45), power=3.2), 0.05)
    neck = soft(ellipse(x, y, (0, -1), (0.3, 0.5), power=3), 0.15)
    arms = soft(ellipse(np.abs(x), y, (0.98, 0.1), (0.14, 1.0), power=2.5), 0.2)
    return np.asarray(0.92 * np.maximum(trunk, np.maximum(neck, 0.8 * arms)), dtype=np.float32)


def _lung_shape(x: Array, y: Array, sign: int) -> Array:
    return ellipse(x, y, (sign * 0.46, -0.02), (0.33, 0.73), sign * -0.09, power=2.3)


def _dome(x: Array, sign: int) -> Array:
    top = 0.47 if sign < 0 else 0.53
    return np.asarray(top + 1.15 * np.abs(np.abs(x) - 0.36) ** 2.2, dtype=np.float32)


def _lung_air(x: Array, y: Array, findings: Findings, rng: Rng) -> Array:
    air = np.zeros_like(x)
    for side, sign in _SIGN.items():
        lung = soft(_lung_shape(x, y, sign), 0.05) * _step(_dome(x, sign) - y, 0.03)
        if findings.effusion == side:
            meniscus = rng.uniform(0.2, 0.3) - 0.42 * np.clip(np.abs(x) - 0.42, -0.3, 1)
            lung = lung * _step(meniscus - y, 0.06)
        air = np.maximum(air, lung)
    return np.asarray(air, dtype=np.float32)


def _markings(film: Array, x: Array, y: Array, air: Array, rng: Rng) -> None:
    reach = np.exp(-((np.abs(x) - 0.12) ** 2) / 0.11 - y**2 / 0.3)
    branches = gaussian_filter(np.abs(smooth_noise(x.shape, 3.2, rng)), 0.8)
    film += 0.22 * air * reach * np.clip(0.55 - branches, 0, 1) * 1.6
    for sign in (-1, 1):
        film += 0.22 * soft(ellipse(x, y, (sign * 0.2, -0.06), (0.08, 0.15), sign * -0.3), 0.9)


def _heart_radii(findings: Findings) -> tuple[float, float]:
    return (0.49, 0.31) if findings.cardiomegaly else (0.33, 0.27)


def _centre(film: Array, x: Array, y: Array, findings: Findings) -> dict[str, Mask]:
    blend(film, soft(np.abs(x) / (0.155 + 0.03 * np.abs(y)), 0.25) * (y < 0.5), 0.92)
    place, radii = ((0.16, -0.36), (0.2, 0.19)) if findings.wide_aorta else ((0.13, -0.36), (0.1, 0.1))
    knob = ellipse(x, y, place, radii)
    blend(film, 0.9 * soft(knob, 0.2), 0.95)
    heart = ellipse(x, y, (0.12, 0.28), _heart_radii(findings), 0.28)
    blend(film, 0.93 * soft(heart, 0.12) * (y < 0.62), 1.0)
    film -= 0.2 * soft(np.abs(x) / 0.04, 0.4) * _step(-0.22 - y, 0.1)
    film -= 0.3 * soft(ellipse(x, y, (0.42, 0.68), (0.16, 0.06)), 0.4)
    drawn = {"wide_aorta": knob <= 1} if findings.wide_aorta else {}
    return drawn | ({"cardiomegaly": (heart <= 1) & (y < 0.62)} if findings.cardiomegaly else {})


def _bones(film: Array, x: Array, y: Array) -> None:
    cage = soft(ellipse(x, y, (0, 0.02), (0.8, 0.86), power=2.6), 0.06)
    for k in range(9):
        back = y + 0.74 - 0.145 * k - 0.42 * (np.abs(x) - 0.1) ** 2 * (1 if k > 1 else 2)
        film += 0.085 * soft(np.abs(back) / 0.03, 0.4) * cage * (np.abs(x) > 0.12)
        front = y + 0.52 - 0.16 * k + 0.5 * (np.abs(x) - 0.75)
        film += 0.04 * soft(np.abs(front) / 0.035, 0.6) * cage * (np.abs(x) > 0.3)
    film += (0.1 + 0.05 * np.sin(y * 38)) * soft(np.abs(x) / 0.09, 0.3)
    for sign in (-1, 1):
        clavicle = y + 0.63 + 0.22 * (sign * x - 0.1) + 0.05 * np.sin(sign * x * 7)
        film += 0.2 * soft(np.abs(clavicle) / 0.028, 0.4) * (sign * x > 0.07) * (sign * x < 0.82)
        film += 0.1 * soft(ellipse(x, y, (sign * 0.78, -0.3), (0.13, 0.36), sign * 0.3), 0.3)


def _frontal_findings(
    film: Array, x: Array, y: Array, air: Array, findings: Findings, rng: Rng
) -> dict[str, Mask]:
    extents: dict[str, Mask] = {}
    if findings.consolidation:
        side, zone = findings.consolidation
        centre = (_SIGN[side] * rng.uniform(0.42, 0.5), _ZONE_Y[zone])
        patch = soft(ellipse(x, y, centre, (0.2, 0.15)) * (1 + 0.12 * smooth_noise(x.shape, 7, rng)), 0.5)
        film += patch * air * (0.46 + 0.06 * smooth_noise(x.shape, 2, rng))
        extents["consolidation"] = patch * air > 0.4
    if findings.pneumothorax:
        extents["pneumothorax"] = _pneumothorax(film, x, y, air, _SIGN[findings.pneumothorax])
    if findings.nodule:
        side, zone = findings.nodule
        centre = (_SIGN[side] * rng.uniform(0.4, 0.56), _ZONE_Y[zone] + rng.uniform(-0.05, 0.05))
        spot = ellipse(x, y, centre, (0.045, 0.041))
        blend(film, soft(spot, 0.25), 1.25)
        extents["nodule"] = spot <= 1.1
    return extents


def _pneumothorax(film: Array, x: Array, y: Array, air: Array, sign: int) -> Mask:
    """Air without markings outside a lung that has shrunk to the hilum, and the fine line of its pleura."""
    lung = ellipse(x, y, (sign * 0.37, 0.06), (0.24, 0.62), sign * -0.09, power=2.3)
    own = air * (sign * x > 0)
    film -= own * (lung > 1) * (film - 0.12) * 0.9
    film += 0.16 * own * soft(lung, 0.06)
    film += 0.35 * own * (np.abs(lung - 1) < 0.025)
    return (own > 0.5) & (lung > 1)


def _devices(film: Array, x: Array, y: Array, findings: Findings) -> None:
    if findings.pacemaker:
        blend(film, soft(ellipse(x, y, (0.6, -0.5), (0.11, 0.085), power=3.5), 0.06), 2.4)
        blend(
            film, _wire(x.shape, [(0.55, -0.52), (0.25, -0.6), (0.02, -0.4), (-0.1, 0.05), (0.16, 0.42)]), 2.2
        )
    if findings.catheter:
        blend(film, _wire(x.shape, [(-0.7, -0.72), (-0.3, -0.62), (-0.1, -0.45), (-0.09, 0.0)]), 1.7)


def _wire(shape: tuple[int, ...], points: list[tuple[float, float]]) -> Array:
    """Coverage of a smooth thin line through the points."""
    nodes = np.array(points)
    path = CubicSpline(np.arange(len(nodes)), nodes)(np.linspace(0, len(nodes) - 1, 500))
    coverage = np.zeros(shape, dtype=np.float32)
    rows = np.clip(np.rint((path[:, 1] + 1) / 2 * (HEIGHT - 1)).astype(int), 0, HEIGHT - 1)
    columns = np.clip(np.rint((path[:, 0] + 1) / 2 * (WIDTH - 1)).astype(int), 0, WIDTH - 1)
    coverage[rows, columns] = 1
    return np.asarray(np.clip(gaussian_filter(coverage, 0.8) * 3.2, 0, 1), dtype=np.float32)


def _expose(film: Array, rng: Rng) -> np.ndarray:
    film = gaussian_filter(np.maximum(film, 0), 0.9)
    picture = 255 * (1 - np.exp(-1.55 * film)) * 1.12
    picture += 3.0 * smooth_noise(picture.shape, 0.6, rng)
    return np.asarray(np.clip(picture, 0, 255), dtype=np.uint8)
