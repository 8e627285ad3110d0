"""SynthRAD2025, task 1, head and neck: ``Task1/HN/1HN<centre><nnn>/{mr,ct,mask}.mha`` on one grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms import head
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.metaimage import write_mha
from hf_datasets.phantoms.shapes import Array, Rng, rng_for, smooth_noise

CASES = 5
CENTRES = "AACCD"
SHAPE = (80, 88, 26)
SPACING = (2.8, 2.8, 5.5)
TOP = 2.0
"""Height of the uppermost slice in the head's coordinates; the lowest lies in the neck."""


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write five patients, two of whom have a contrast-enhanced MR."""
    for index, centre in enumerate(CENTRES):
        rng = rng_for(seed, "synthrad", index)
        folder = out / "Task1" / "HN" / f"1HN{centre}{3 * index + int(rng.integers(1, 4)):03d}"
        folder.mkdir(parents=True)
        _write_case(folder, rng, contrast=head.T1C if index % 2 else head.T1)
    return {}


def _write_case(folder: Path, rng: Rng, contrast: head.Contrast) -> None:
    plan = head.random_head(rng)
    x, y = (
        (np.arange(n, dtype=np.float32) - (n - 1) / 2) * s
        for n, s in zip(SHAPE[:2], SPACING[:2], strict=True)
    )
    z = np.float32(TOP) - (SHAPE[2] - 1 - np.arange(SHAPE[2], dtype=np.float32)) * np.float32(SPACING[2])
    grid = (x[:, None, None], y[None, :, None], z[None, None, :])
    ct = head.paint(plan, *grid, head.CT, SPACING[0])
    signal = head.paint(plan, *grid, contrast, SPACING[0])
    mask = head.body_mask(plan, *grid, margin=4).astype(np.uint8)
    origin = np.round(rng.uniform(-150, -100, 3), 2)
    write_mha(folder / "mr.mha", _mr(signal, rng), SPACING, origin)
    write_mha(folder / "ct.mha", _ct(ct, rng), SPACING, origin)
    write_mha(folder / "mask.mha", mask, SPACING, origin)


def _mr(signal: Array, rng: Rng) -> Array:
    """Coils that see one side better, and the noise of a magnitude image."""
    bright = signal * (1 + 0.1 * smooth_noise(signal.shape, (20, 20, 6), rng))
    bright += 0.02 * signal * smooth_noise(signal.shape, 0.8, rng)
    noise = 0.016 * rng.standard_normal((2, *signal.shape))
    return np.asarray(np.rint(900 * np.hypot(bright + noise[0], noise[1])), dtype=np.int16)


def _ct(hu: Array, rng: Rng) -> Array:
    noisy = gaussian_filter(hu, (0.4, 0.4, 0.0)) + 14 * smooth_noise(hu.shape, (0.6, 0.6, 0.01), rng)
    return np.asarray(np.rint(np.clip(noisy, -1024, 3071)), dtype=np.int16)
