"""Skin lesions under the dermatoscope, of the seven kinds of ISIC 2018; coordinates run from -1 to 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft

WIDTH, HEIGHT = 200, 150
Colour = tuple[float, float, float]
_BROWN, _DARK, _BLUE, _WHITE = (
    (150.0, 98.0, 72.0),
    (74.0, 46.0, 40.0),
    (112.0, 116.0, 142.0),
    (238.0, 218.0, 208.0),
)


class _Skin:
    """Lit skin with hairs and a lesion on it; not every lesion shows all signs of its kind (``textbook``)."""

    def __init__(self, rng: Rng) -> None:
        y, x = np.meshgrid(np.linspace(-0.75, 0.75, HEIGHT), np.linspace(-1, 1, WIDTH), indexing="ij")
        self.x, self.y, self.rng = x.astype(np.float32), y.astype(np.float32), rng
        ground = (
            np.array([224, 172, 152], np.float32)
            + rng.uniform(-10, 10)
            + rng.uniform(-5, 5, 3).astype(np.float32)
        )
        self.image: Array = np.empty((HEIGHT, WIDTH, 3), np.float32)
        self.image[:] = ground
        self.image += (4 * self.noise(14) + 2.5 * self.noise(1.2))[..., None]
        self.centre = (float(rng.uniform(-0.12, 0.12)), float(rng.uniform(-0.08, 0.08)))
        self.radius = float(rng.uniform(0.3, 0.42))
        self.angle = float(rng.uniform(0, np.pi))
        self.textbook = bool(rng.random() < 0.7)

    def noise(self, sigma: float) -> Array:
        return smooth_noise(self.x.shape, sigma, self.rng)

    def body(self, stretch: float, ragged: float, scale: float = 1.0) -> Array:
        """Level of the lesion: 1 on its border, with ``ragged`` dents."""
        radii = (self.radius * scale * stretch, self.radius * scale / stretch)
        level = ellipse(self.x, self.y, self.centre, radii, self.angle)
        return np.asarray(level * (1 + ragged * self.noise(11)), dtype=np.float32)

    def spot(self, reach: float, radius: float) -> Array:
        """Level of a small round thing somewhere within ``reach`` times the lesion's radius."""
        turn, away = self.rng.uniform(0, 2 * np.pi), self.radius * reach * np.sqrt(self.rng.random())
        at = (self.centre[0] + float(away * np.cos(turn)), self.centre[1] + float(away * np.sin(turn)))
        return ellipse(self.x, self.y, at, (radius, radius * float(self.rng.uniform(0.7, 1.0))), turn)

    def paint(self, coverage: Array, colour: Colour, grain: float = 0.0) -> None:
        texture = grain * self.noise(2.0)
        for channel, value in enumerate(colour):
            blend(
                self.image[..., channel],
                coverage.astype(np.float32),
                np.asarray(value + texture, dtype=np.float32),
            )

    def net(self, pitch: float) -> Array:
        """A honeycomb of lines, 1 on them."""
        u, v = self.x + 0.01 * self.noise(8), self.y + 0.01 * self.noise(8)
        waves = sum(
            np.cos(2 * np.pi * (np.cos(turn) * u + np.sin(turn) * v) / pitch)
            for turn in (0.2, 0.2 + np.pi / 3, 0.2 + 2 * np.pi / 3)
        )
        return np.asarray(np.clip(-waves / 1.5, 0, 1), dtype=np.float32)

    def finished(self) -> np.ndarray:
        for _ in range(int(self.rng.integers(0, 5))):
            self._hair()
        shade = 1 - 0.14 * (self.x**2 + self.y**2)
        picture = gaussian_filter(self.image * shade[..., None], (0.6, 0.6, 0))
        picture += 1.8 * self.rng.standard_normal(picture.shape, dtype=np.float32)
        return np.asarray(np.clip(picture, 0, 255), dtype=np.uint8)

    def _hair(self) -> None:
        angle, offset, bend = (
            self.rng.uniform(0, np.pi),
            self.rng.uniform(-0.7, 0.7),
            self.rng.uniform(-0.3, 0.3),
        )
        along = np.cos(angle) * self.x + np.sin(angle) * self.y
        across = -np.sin(angle) * self.x + np.cos(angle) * self.y - offset - bend * along**2
        self.paint(0.8 * soft(np.abs(across) / 0.006, 0.8), (70.0, 50.0, 44.0))


def paint(kind: str, rng: Rng) -> np.ndarray:
    """A picture of one of the kinds of `LESIONS`, uint8 of shape (HEIGHT, WIDTH, 3)."""
    skin = _Skin(rng)
    LESIONS[kind](skin)
    return skin.finished()


def _melanoma(skin: _Skin) -> None:
    """Uneven in outline and colour: dark brown, black, blue-white veil, an area that has faded.

    An early one is merely brown, with a net that breaks off on one side and dots beyond the border there.
    """
    if not skin.textbook:
        level = skin.body(1.15, 0.12)
        skin.paint(soft(level, 0.25), (140.0, 92.0, 70.0), 4)
        broken = np.clip(0.5 + 2 * (skin.x - skin.centre[0]) / skin.radius, 0, 1)
        skin.paint(0.6 * skin.net(0.07) * soft(level, 0.3) * broken, (88.0, 54.0, 42.0))
        for _ in range(9):
            skin.paint(soft(skin.spot(1.15, 0.014), 0.5) * broken, (60.0, 40.0, 36.0))
        return
    level = skin.body(1.25, 0.22)
    skin.paint(soft(level, 0.1), (118.0, 74.0, 58.0), 10)
    blotch = skin.noise(9)
    skin.paint(soft(level, 0.12) * np.clip(blotch, 0, 1), _DARK, 6)
    skin.paint(soft(level, 0.2) * np.clip(-blotch - 0.9, 0, 1), (196.0, 150.0, 136.0))
    veil = skin.spot(0.5, skin.radius * 0.45)
    skin.paint(0.7 * soft(veil, 0.8) * soft(level, 0.2), _BLUE)
    for _ in range(14):
        skin.paint(soft(skin.spot(1.05, 0.017), 0.5), (40.0, 28.0, 30.0))


def _nevus(skin: _Skin) -> None:
    """Even and symmetric, brown, with a regular net that thins towards the border; some are darker in the middle."""
    level = skin.body(float(skin.rng.uniform(1.0, 1.15)), 0.03 if skin.textbook else 0.1)
    shade = float(skin.rng.uniform(-14, 14))
    tone = (158 + shade, 106 + shade, 80 + shade)
    skin.paint(soft(level, 0.35), tone)
    skin.paint(0.5 * skin.net(0.055) * soft(level / 0.95, 0.4), (116 + shade, 72 + shade, 54 + shade))
    if not skin.textbook:
        skin.paint(0.8 * soft(level / 0.5, 0.5), (96 + shade, 60 + shade, 48 + shade), 5)


def _basal_cell(skin: _Skin) -> None:
    """Pearly pink with branching vessels and a few blue-grey nests."""
    level = skin.body(1.15, 0.08)
    skin.paint(0.85 * soft(level, 0.25), (226.0, 160.0, 156.0), 4)
    vessels = np.abs(skin.noise(7)) < 0.06
    skin.paint(0.8 * gaussian_filter(vessels.astype(np.float32), 0.7) * soft(level, 0.2), (178.0, 52.0, 60.0))
    for _ in range(int(skin.rng.integers(3, 6)) if skin.textbook else 1):
        skin.paint(
            0.85 * soft(skin.spot(0.8, float(skin.rng.uniform(0.04, 0.065))), 0.4), (104.0, 102.0, 122.0)
        )


def _actinic(skin: _Skin) -> None:
    """A red patch without pigment, dotted with pale follicles and covered by white scale."""
    level = skin.body(1.2, 0.1)
    skin.paint(0.8 * soft(level, 0.5), (214.0, 120.0, 108.0), 5)
    for _ in range(26):
        skin.paint(0.75 * soft(skin.spot(0.9, 0.022), 0.6), (236.0, 190.0, 168.0))
    skin.paint(0.85 * soft(level, 0.3) * np.clip(skin.noise(4) - 1.0, 0, 1), (246.0, 238.0, 226.0))


def _keratosis(skin: _Skin) -> None:
    """Stuck on: a sharp border, tan and waxy, with white cysts and brown plugs, few in a young one."""
    level = skin.body(1.15, 0.05)
    skin.paint(soft(level, 0.05), (172.0, 130.0, 96.0), 7)
    skin.paint(0.5 * soft(level, 0.05) * np.clip(skin.noise(5), 0, 1), (132.0, 96.0, 68.0))
    for _ in range(14 if skin.textbook else 2):
        skin.paint(0.9 * soft(skin.spot(0.85, 0.018), 0.5), (240.0, 226.0, 196.0))
    for _ in range(10 if skin.textbook else 1):
        skin.paint(0.85 * soft(skin.spot(0.85, 0.026), 0.5), (92.0, 62.0, 46.0))


def _fibroma(skin: _Skin) -> None:
    """A white scar in the middle of a faint brown ring."""
    level = skin.body(1.05, 0.03)
    skin.paint(0.75 * soft(level, 0.5), (182.0, 130.0, 108.0))
    skin.paint(0.35 * skin.net(0.06) * soft(level, 0.4), (136.0, 92.0, 74.0))
    skin.paint(0.92 * soft(level / 0.45, 0.5), _WHITE, 3)


def _vascular(skin: _Skin) -> None:
    """Round red to purple lagoons, close together, with a pale veil between."""
    level = skin.body(1.05, 0.03)
    skin.paint(0.9 * soft(level, 0.12), (172.0, 44.0, 58.0), 5)
    for _ in range(18):
        tone = float(skin.rng.uniform(-18, 14))
        skin.paint(0.85 * soft(skin.spot(0.75, 0.06), 0.35), (126 + tone, 24 + tone / 2, 52 + tone))


LESIONS: dict[str, Callable[[_Skin], None]] = {
    "MEL": _melanoma,
    "NV": _nevus,
    "BCC": _basal_cell,
    "AKIEC": _actinic,
    "BKL": _keratosis,
    "DF": _fibroma,
    "VASC": _vascular,
}
"""Upstream's name of a class -> its painter."""
