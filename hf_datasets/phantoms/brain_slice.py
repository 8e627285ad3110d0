"""Single axial MR slices of the head after contrast, with one of three kinds of tumour or none.

Coordinates run from -1 to 1 over the picture; the forehead is at the top.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft

KINDS = ("glioma", "meningioma", "notumor", "pituitary")
SIZE = 176


def paint(kind: str, rng: Rng) -> np.ndarray:
    """A grey slice of one of `KINDS`, uint8 of shape (SIZE, SIZE).

    Pituitary tumours lie at the skull's base; so do some slices of the other kinds.
    """
    y, x = np.meshgrid(np.linspace(-1, 1, SIZE), np.linspace(-1, 1, SIZE), indexing="ij")
    turn, grow = float(rng.normal(0, 0.05)), float(rng.uniform(0.92, 1.04))
    u = ((np.cos(turn) * x + np.sin(turn) * y) / grow).astype(np.float32)
    v = ((np.cos(turn) * y - np.sin(turn) * x) / grow).astype(np.float32)
    slice_ = _Slice(u, v, rng)
    base = kind == "pituitary" or rng.random() < 0.25
    slice_.head(base=base)
    if kind == "glioma":
        slice_.glioma()
    elif kind == "meningioma":
        slice_.meningioma()
    elif kind == "pituitary":
        slice_.pituitary()
    return slice_.finished()


class _Slice:
    def __init__(self, u: Array, v: Array, rng: Rng) -> None:
        self.u, self.v, self.rng = u, v, rng
        self.image: Array = np.full(u.shape, 4.0, np.float32)
        self.brain: Array = np.zeros_like(u)

    def level(self, centre: tuple[float, float], radii: tuple[float, float], angle: float = 0.0) -> Array:
        return ellipse(self.u, self.v, centre, radii, angle)

    def noise(self, sigma: float) -> Array:
        return smooth_noise(self.u.shape, sigma, self.rng)

    def paint(self, coverage: Array, value: float | Array) -> None:
        blend(self.image, coverage.astype(np.float32), value)

    def head(self, *, base: bool) -> None:
        length = 0.86 if base else 0.9
        self.paint(soft(self.level((0, 0), (0.76, length)), 0.05), 150)
        self.paint(soft(self.level((0, 0), (0.72, length - 0.04)), 0.04), 18)
        inside = self.level((0, 0), (0.66, length - 0.1))
        self.brain = soft(inside, 0.04)
        self.paint(self.brain, 82)
        folds = np.clip(self.noise(3.2) + 0.4, 0, 1) * np.clip((inside - 0.72) / 0.12, 0, 1)
        white = soft(inside / 0.84 * (1 + 0.05 * self.noise(5.0)), 0.12)
        self.paint(white * self.brain, 112)
        self.paint(0.75 * folds * self.brain, 40)
        self.paint(soft(np.abs(self.u) / 0.014, 1.0) * self.brain * (np.abs(self.v) > 0.35), 60)
        if base:
            self._base()
        else:
            self._ventricles()

    def _ventricles(self) -> None:
        width = float(self.rng.uniform(0.045, 0.08))
        for side in (-1, 1):
            self.paint(
                soft(self.level((side * 0.1, -0.18), (width, 0.22), side * 0.25), 0.3) * self.brain, 26
            )
            self.paint(
                soft(self.level((side * 0.16, 0.2), (width * 0.9, 0.2), side * -0.35), 0.3) * self.brain, 26
            )
            self.paint(
                soft(self.level((side * 0.21, -0.02), (0.085, 0.13), side * 0.2), 0.4) * self.brain, 88
            )

    def _base(self) -> None:
        """Eyes in front, temporal lobes beside the cisterns, brainstem and cerebellum behind."""
        for side in (-1, 1):
            self.paint(soft(self.level((side * 0.34, -0.62), (0.16, 0.17)), 0.1), 34)
            self.paint(soft(self.level((side * 0.34, -0.66), (0.05, 0.05)), 0.3), 70)
        self.paint(soft(self.level((0, -0.14), (0.2, 0.15)), 0.3) * self.brain, 24)
        self.paint(soft(self.level((0, 0.1), (0.17, 0.14)), 0.15), 106)
        self.paint(soft(self.level((0, 0.5), (0.46, 0.26)), 0.1), 92)
        ridges = (0.5 + 0.5 * np.sin(self.v * 70 + 3 * np.abs(self.u))) * soft(
            self.level((0, 0.5), (0.42, 0.22)), 0.2
        )
        self.paint(0.35 * ridges, 58)
        self.paint(soft(self.level((0, 0.27), (0.06, 0.05)), 0.3), 24)

    def _somewhere_deep(self) -> tuple[float, float]:
        side = 1 if self.rng.random() < 0.5 else -1
        return side * float(self.rng.uniform(0.24, 0.36)), float(self.rng.uniform(-0.35, 0.35))

    def glioma(self) -> None:
        """Within the white matter: a ragged bright rim around a dark core, in a field of oedema."""
        centre, radius = self._somewhere_deep(), float(self.rng.uniform(0.13, 0.2))
        ragged = 1 + 0.16 * self.noise(7.0)
        level = self.level(centre, (radius * 1.2, radius), self.rng.uniform(0, np.pi)) * ragged
        self.paint(0.75 * soft(level / 1.75, 0.5) * self.brain, 62)
        self.paint(soft(level, 0.2) * self.brain, 190 + 22 * self.noise(2.5))
        core = float(self.rng.uniform(0.45, 0.72))
        self.paint(soft(level / core, 0.25) * self.brain, 52 + 10 * self.noise(3.0))

    def meningioma(self) -> None:
        """A smooth, evenly bright ball that sits on the inside of the skull."""
        angle = float(self.rng.uniform(0, 2 * np.pi))
        radius = float(self.rng.uniform(0.13, 0.2))
        reach = 1 - 0.9 * radius
        centre = (0.66 * reach * np.cos(angle), 0.78 * reach * np.sin(angle))
        level = self.level(centre, (radius, radius * float(self.rng.uniform(0.85, 1.0))), angle)
        self.paint(0.6 * soft(level / 1.3, 0.25) * self.brain, 66)
        self.paint(
            soft(level, 0.06) * soft(self.level((0, 0), (0.68, 0.82)), 0.04), 196 + 5 * self.noise(2.0)
        )

    def pituitary(self) -> None:
        """A bright lump in the midline before the brainstem, where the cisterns are."""
        radius = float(self.rng.uniform(0.1, 0.16))
        centre = (float(self.rng.normal(0, 0.012)), -0.13 + float(self.rng.normal(0, 0.015)))
        level = self.level(centre, (radius * float(self.rng.uniform(1.0, 1.25)), radius))
        self.paint(soft(level * (1 + 0.05 * self.noise(5.0)), 0.1), 184 + 9 * self.noise(2.5))

    def finished(self) -> np.ndarray:
        coil = self.noise(SIZE / 4)
        bias = 1 + 0.05 * (coil - coil.mean())
        picture = gaussian_filter(self.image * bias, 0.8) * float(self.rng.uniform(0.9, 1.15))
        picture += 3.0 * self.rng.standard_normal(picture.shape)
        return np.asarray(np.clip(picture, 0, 255), dtype=np.uint8)
