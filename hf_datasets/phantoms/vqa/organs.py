"""Four more looks of medicine: a brain in MR, a retina, an ultrasound fan and its contents."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft

Side = Literal["right", "left"]
Weighting = Literal["T1", "T2"]
BRAIN, RETINA, FAN = 176, 176, 176

_GREY = {
    "T1": {"fat": 235.0, "bone": 18.0, "csf": 34.0, "cortex": 108.0, "white": 158.0, "lesion": 62.0},
    "T2": {"fat": 150.0, "bone": 14.0, "csf": 238.0, "cortex": 128.0, "white": 84.0, "lesion": 206.0},
}


def brain(
    rng: Rng, weighting: Weighting, lesions: tuple[Side, ...] = (), *, behind: bool = False
) -> np.ndarray:
    """An axial slice, uint8 of shape (BRAIN, BRAIN), front up, the patient's right on the left.

    Parameters
    ----------
    lesions : tuple of sides
        One entry a lesion of the white matter.
    behind : bool
        The first lesion of each side lies in the back half and the second one in the front, not the reverse.
    """
    tone = _GREY[weighting]
    y, x = np.mgrid[-1 : 1 : BRAIN * 1j, -1 : 1 : BRAIN * 1j].astype(np.float32)
    image = np.zeros_like(x)
    head = ellipse(x, y, (0, 0.02), (0.76, 0.93), power=2.2)
    for reach, value in ((1.0, tone["fat"]), (0.945, tone["bone"]), (0.87, tone["csf"])):
        blend(image, soft(head / reach, 0.03), value)
    gyri = 0.028 * np.sin(11 * np.arctan2(y, x) + 2.2 * smooth_noise(x.shape, 11, rng))
    blend(image, soft(head / 0.83 + gyri, 0.03), tone["cortex"])
    blend(image, soft(head / 0.7 + 2.4 * gyri, 0.05), tone["white"])
    blend(image, soft(np.abs(x) / 0.018, 0.8) * (head < 0.84) * (np.abs(y) > 0.4), tone["csf"])
    for sign in (-1, 1):
        blend(image, soft(ellipse(x, y, (sign * 0.2, 0.08), (0.12, 0.17), sign * 0.4), 0.15), tone["cortex"])
        for centre, radii, turn in (
            ((0.085, -0.16), (0.055, 0.2), -0.25),
            ((0.12, 0.22), (0.05, 0.18), 0.35),
        ):
            horn = ellipse(x, y, (sign * centre[0], centre[1]), radii, sign * turn)
            blend(image, soft(horn, 0.12), tone["csf"])
    drawn: dict[str, int] = {}
    for side in lesions:
        sign, turn = (-1 if side == "right" else 1), drawn.get(side, 0)
        drawn[side] = turn + 1
        at = (
            sign * float(rng.uniform(0.36, 0.42)),
            (-0.34, 0.36)[(turn + behind) % 2] + float(rng.uniform(-0.04, 0.04)),
        )
        spot = ellipse(x, y, at, (0.1, 0.115)) * (1 + 0.06 * smooth_noise(x.shape, 5, rng))
        blend(image, soft(spot, 0.2), tone["lesion"])
    image = gaussian_filter(image, 0.7) * (1 + 0.05 * smooth_noise(x.shape, 45, rng))
    image += 2.0 * np.abs(rng.standard_normal(image.shape, dtype=np.float32))
    return np.asarray(np.clip(image, 0, 255), dtype=np.uint8)


def retina(rng: Rng, eye: Side, *, haemorrhages: bool = False, exudates: bool = False) -> np.ndarray:
    """A fundus photograph, uint8 of shape (RETINA, RETINA, 3); the disc lies on the side of the nose."""
    y, x = np.mgrid[-1 : 1 : RETINA * 1j, -1 : 1 : RETINA * 1j].astype(np.float32)
    nasal = 1 if eye == "right" else -1
    glow = 1 - 0.35 * (x**2 + y**2) + 0.03 * smooth_noise(x.shape, 12, rng)
    image = glow[..., None] * np.array([214.0, 98.0, 42.0], np.float32)
    disc = (nasal * 0.48, float(rng.uniform(-0.06, 0.06)))
    _stain(
        image,
        0.55 * soft(ellipse(x, y, (-nasal * 0.12, disc[1] + 0.04), (0.17, 0.16)), 1.0),
        (128.0, 44.0, 20.0),
    )
    for up in (-1, 1):
        for bend, width in ((0.62, 0.02), (0.36, 0.013)):
            away = -nasal * (x - disc[0])
            arc = disc[1] + up * bend * np.sqrt(np.clip(away, 0, 2)) * (1 - 0.25 * np.clip(away, 0, 2))
            _stain(image, 0.8 * soft(np.abs(y - arc) / width, 0.6) * (away > 0), (132.0, 26.0, 22.0))
        short = disc[1] + up * 0.7 * np.sqrt(np.clip(nasal * (x - disc[0]), 0, 2))
        _stain(
            image,
            0.7 * soft(np.abs(y - short) / 0.015, 0.6) * (nasal * (x - disc[0]) > 0),
            (132.0, 26.0, 22.0),
        )
    _stain(image, soft(ellipse(x, y, disc, (0.125, 0.14)), 0.15), (250.0, 208.0, 128.0))
    _stain(image, soft(ellipse(x, y, disc, (0.055, 0.065)), 0.4), (254.0, 236.0, 186.0))
    for wanted, colour, count, radius in (
        (haemorrhages, (96.0, 10.0, 14.0), 9, 0.055),
        (exudates, (250.0, 226.0, 120.0), 14, 0.035),
    ):
        for _ in range(count if wanted else 0):
            at = (-nasal * float(rng.uniform(-0.1, 0.6)), float(rng.choice([-1, 1]) * rng.uniform(0.22, 0.6)))
            _stain(
                image, soft(ellipse(x, y, at, (radius * 1.2, radius), float(rng.uniform(0, 3))), 0.4), colour
            )
    image = gaussian_filter(image, (0.7, 0.7, 0)) + 1.2 * rng.standard_normal(image.shape, dtype=np.float32)
    image *= soft(np.hypot(x, y) / 0.97, 0.02)[..., None]
    return np.asarray(np.clip(image, 0, 255), dtype=np.uint8)


def ultrasound(rng: Rng, *, cysts: int = 0, stone: bool = False, side: Side = "left") -> np.ndarray:
    """A sector scan, uint8 of shape (FAN, FAN): up to two echo-free cysts, or a bright stone with its shadow.

    The first cyst lies on the ``side`` of the picture.
    """
    y, x = np.mgrid[0 : 1 : FAN * 1j, -1 : 1 : FAN * 1j].astype(np.float32)
    depth, angle = np.hypot(x, y + 0.22), np.arctan2(x, y + 0.22)
    echo = 92 - 28 * (depth - 0.3) + 10 * smooth_noise(x.shape, 14, rng)
    echo += 60 * soft(np.abs(depth - 0.36 - 0.02 * np.sin(angle * 5)) / 0.012, 0.8)
    for place in ((-0.27, 0.27) if side == "left" else (0.27, -0.27))[:cysts]:
        turn, far = place + float(rng.uniform(-0.05, 0.05)), float(rng.uniform(0.66, 0.78))
        at = (far * np.sin(turn), far * np.cos(turn) - 0.22)
        hole = ellipse(x, y, at, (0.13, 0.115))
        behind = (np.abs(angle - turn) < 0.14) & (depth > far + 0.1)
        echo += 34 * gaussian_filter(behind.astype(np.float32), 2)
        blend(echo, soft(hole, 0.12), 6.0)
        echo += 60 * soft(np.abs(hole - 1) / 0.07, 0.8)
    if stone:
        turn, far = float(rng.uniform(-0.12, 0.12)), float(rng.uniform(0.58, 0.66))
        echo *= 1 - 0.92 * gaussian_filter(
            ((np.abs(angle - turn) < 0.085) & (depth > far)).astype(np.float32), 1.2
        )
        at = (far * np.sin(turn), far * np.cos(turn) - 0.22)
        blend(echo, soft(ellipse(x, y, at, (0.075, 0.028)), 0.3), 250.0)
    speckle = rng.rayleigh(0.8, x.shape).astype(np.float32)
    image = gaussian_filter(echo * (0.35 + 0.65 * speckle), 0.75)
    image *= soft(np.abs(angle) / 0.72, 0.02) * soft(depth / 1.17, 0.02) * (depth > 0.3)
    return np.asarray(np.clip(image, 0, 255), dtype=np.uint8)


def _stain(image: Array, coverage: Array, colour: tuple[float, float, float]) -> None:
    for channel, value in enumerate(colour):
        blend(image[..., channel], coverage, value)
