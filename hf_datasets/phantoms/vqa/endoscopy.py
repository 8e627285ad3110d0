"""What a colonoscope sees: folds around a dark lumen, polyps, an instrument, and what the processor overlays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, smooth_noise, soft

HEIGHT, WIDTH = 150, 176
ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")


@dataclass(frozen=True)
class Polyp:
    """A round growth: centre from -1 to 1 in both axes (right and down), radius as a share of the height."""

    at: tuple[float, float]
    radius: float
    pale: bool = False

    @property
    def place(self) -> str:
        """The ninth of the picture that holds the centre, in words."""
        row, column = (min(2, int((value + 1) * 1.5)) for value in (self.at[1], self.at[0]))
        words = (ROWS[row], COLUMNS[column])
        return "center" if words == ("center", "center") else "-".join(words)


@dataclass(frozen=True)
class Frame:
    """One picture of the scope."""

    polyps: tuple[Polyp, ...] = ()
    instrument: bool = False
    green_box: bool = False
    inflamed: bool = False
    from_above: bool = False
    """The instrument comes from the upper right, not from the lower right."""


def paint(frame: Frame, rng: Rng) -> np.ndarray:
    """An RGB frame, uint8 of shape (HEIGHT, WIDTH, 3)."""
    y, x = np.meshgrid(np.linspace(-1, 1, HEIGHT), np.linspace(-1, 1, WIDTH), indexing="ij")
    x, y = x.astype(np.float32) * WIDTH / HEIGHT, y.astype(np.float32)
    image = _mucosa(x, y, frame, rng)
    for polyp in frame.polyps:
        _polyp(image, x, y, polyp, rng)
    if frame.instrument:
        _instrument(image, x, -y if frame.from_above else y)
    image = gaussian_filter(image, (0.7, 0.7, 0)) + 1.2 * rng.standard_normal(image.shape, dtype=np.float32)
    image *= soft(ellipse(x, y, (0, 0), (1.12, 0.99), power=5), 0.03)[..., None]
    if frame.green_box:
        _green_box(image)
    return np.asarray(np.clip(image, 0, 255), dtype=np.uint8)


def random_polyp(rng: Rng, apart_from: tuple[Polyp, ...] = (), rows: tuple[int, ...] = (0, 1, 2)) -> Polyp:
    """A polyp well inside one ninth of the picture, in one of the ``rows`` of ninths, not over another polyp."""
    for _ in range(200):
        ninth = (int(rng.integers(3)), int(rng.choice(rows)))
        at = tuple(0.62 * (part - 1) + float(rng.uniform(-0.12, 0.12)) for part in ninth)
        if all(np.hypot(at[0] - other.at[0], at[1] - other.at[1]) > 0.55 for other in apart_from):
            break
    return Polyp((at[0], at[1]), float(rng.uniform(0.17, 0.24)), bool(rng.random() < 0.3))


def _mucosa(x: Array, y: Array, frame: Frame, rng: Rng) -> Array:
    lumen = (float(rng.uniform(-0.25, 0.25)), float(rng.uniform(-0.2, 0.2)))
    depth = np.hypot(x - lumen[0], y - lumen[1])
    wobble = 0.05 * smooth_noise(x.shape, 16, rng)
    folds = np.sin(7.5 / (0.35 + depth + wobble) + rng.uniform(0, 6))
    light = np.clip(0.35 + 0.75 * np.clip(depth / 0.55, 0, 1) - 0.1 * (depth > 0.9), 0, 1)
    light = light * (1 + 0.09 * folds) + 0.02 * smooth_noise(x.shape, 4, rng)
    colour = np.array([216.0, 96.0, 84.0] if frame.inflamed else [222.0, 136.0, 112.0], np.float32)
    image = light[..., None] * colour
    vessels = gaussian_filter(np.abs(smooth_noise(x.shape, 5, rng)), 0.6) < 0.09
    for channel, value in enumerate((176.0, 66.0, 60.0)):
        blend(image[..., channel], 0.45 * vessels.astype(np.float32) * (light > 0.75), value)
    if frame.inflamed:
        sores = smooth_noise(x.shape, 5, rng) > 1.75
        for channel, value in enumerate((236.0, 222.0, 170.0)):
            blend(image[..., channel], 0.85 * gaussian_filter(sores.astype(np.float32), 0.8), value)
    return np.asarray(image, dtype=np.float32)


def _polyp(image: Array, x: Array, y: Array, polyp: Polyp, rng: Rng) -> None:
    cx, cy = polyp.at[0] * WIDTH / HEIGHT * 0.92, polyp.at[1] * 0.92
    radius, angle = polyp.radius, float(rng.uniform(0, np.pi))
    shadow = ellipse(x, y, (cx + 0.05, cy + 0.07), (radius * 1.2, radius * 1.15), angle)
    image *= (1 - 0.45 * soft(shadow, 0.5))[..., None]
    level = ellipse(x, y, (cx, cy), (radius * 1.1, radius), angle)
    bulge = np.sqrt(np.clip(1 - np.clip(level, 0, 1) ** 2, 0, 1))
    base = (236.0, 190.0, 168.0) if polyp.pale else (214.0, 62.0, 66.0)
    surface = 1 + 0.05 * smooth_noise(x.shape, 2.2, rng)
    for channel, value in enumerate(base):
        blend(image[..., channel], soft(level, 0.1), value * (0.62 + 0.42 * bulge) * surface)
    gleam = soft(ellipse(x, y, (cx - 0.3 * radius, cy - 0.35 * radius), (radius * 0.2, radius * 0.14)), 0.5)
    for channel in range(3):
        blend(image[..., channel], gleam, 252.0)


def _instrument(image: Array, x: Array, y: Array) -> None:
    """A grey shaft from the corner where ``x`` and ``y`` are largest, with two open jaws."""
    along, across = (x - 1.17 + y - 1.0) / np.sqrt(2), (x - 1.17 - (y - 1.0)) / np.sqrt(2)
    shaft = (np.abs(across) < 0.075) & (along < 0) & (along > -0.8)
    shade = 196 - 70 * np.abs(across) / 0.075
    for channel, tint in enumerate((1.0, 1.03, 1.08)):
        blend(image[..., channel], shaft.astype(np.float32), shade * tint)
    for side in (-1, 1):
        jaw = ellipse(along, across, (-0.9, side * 0.09), (0.15, 0.035), side * -0.5)
        for channel, value in enumerate((172.0, 178.0, 186.0)):
            blend(image[..., channel], soft(jaw, 0.2), value)


def _green_box(image: Array) -> None:
    """The processor's picture of the scope in the lower left corner."""
    height, width = int(HEIGHT * 0.3), int(WIDTH * 0.27)
    box = image[HEIGHT - height :, :width]
    box[:] = (8.0, 30.0, 14.0)
    rows, columns = np.mgrid[0:height, 0:width]
    loop = np.abs(np.hypot((columns - width * 0.5) / 1.1, rows - height * 0.5) - height * 0.27) < 1.6
    box[loop] = (40.0, 214.0, 84.0)
