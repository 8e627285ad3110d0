"""A CT of a whole body or a part of it: Hounsfield units and labels."""

from __future__ import annotations

import numpy as np

from hf_datasets.phantoms.anatomy import Person, body, draw_ribs, split_lungs
from hf_datasets.phantoms.body import Canvas, Grid, blank, draw, render
from hf_datasets.phantoms.shapes import Array, Rng

_HU = {
    "air": -1000.0,
    "gas": -990.0,
    "lung": -850.0,
    "fat": -100.0,
    "fluid": 8.0,
    "cord": 30.0,
    "gut": 42.0,
    "brain": 36.0,
    "muscle": 55.0,
    "gland": 58.0,
    "cartilage": 95.0,
    "marrow": 200.0,
    "bone": 480.0,
}
_ENHANCED_HU = {
    "liver": 105.0,
    "pancreas": 90.0,
    "heart": 100.0,
    "spleen": 118.0,
    "thyroid": 140.0,
    "vein": 135.0,
    "kidney": 170.0,
    "blood": 165.0,
    "artery": 190.0,
}
_TEXTURE_HU = {
    "lung": 22.0,
    "marrow": 30.0,
    "liver": 4.0,
    "spleen": 4.0,
    "kidney": 8.0,
    "muscle": 4.0,
    "fat": 4.0,
}


def draw_body(grid: Grid, person: Person, rng: Rng) -> Canvas:
    """All structures that lie in the grid."""
    canvas = blank(grid)
    draw(canvas, body(person, rng))
    split_lungs(canvas)
    draw_ribs(canvas)
    return canvas


def hounsfield(canvas: Canvas, rng: Rng, noise: float = 10.0, **others: float) -> Array:
    """The image of a canvas, float32; ``others`` are HU of further tissues. The contrast phase is drawn at random."""
    phase = float(rng.uniform(0.75, 1.1))
    enhanced = {tissue: 45 + (value - 45) * phase for tissue, value in _ENHANCED_HU.items()}
    image = render(canvas, _HU | enhanced | others, _TEXTURE_HU, noise, rng)
    return np.asarray(np.clip(image, -1024, 3071, out=image), dtype=np.float32)
