"""SimNICT: normal-dose volumes in ``SimNICT-<set>-Sample/<split>/org/<n>.nii.gz``.

Upstream ships degraded copies beside ``org``; staging takes the normal-dose volumes only and degrades them
itself.
"""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms import abdomen, thorax
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Array, Rng, rng_for

VOLUMES = 6
SIZE = 256
SLICES = 3
FOLDER = Path("SimNICT-AMOS-Sample", "test_nii_files", "org")


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six short volumes, chests and abdomens in random order."""
    folder = out / FOLDER
    folder.mkdir(parents=True)
    chests = set(rng_for(seed, "simnict").permutation(VOLUMES)[: VOLUMES // 3].tolist())
    for index in range(VOLUMES):
        rng = rng_for(seed, "simnict", index)
        pixel = float(np.round(rng.uniform(1.15, 1.4), 3))
        thickness = float(rng.choice([3.0, 5.0]))
        hu = _volume(rng, (thickness, pixel, pixel), chest=index in chests)
        stored = np.rint(hu).astype(np.int16).transpose(2, 1, 0)[:, :, ::-1]
        affine = np.diag([-pixel, -pixel, thickness, 1.0])
        nibabel.save(nibabel.Nifti1Image(stored, affine), folder / f"{index + 1}.nii.gz")
    return {}


def _volume(rng: Rng, spacing: tuple[float, float, float], *, chest: bool) -> Array:
    shape = (SLICES, SIZE, SIZE)
    width = SIZE * spacing[1]
    if chest:
        nodule = (int(rng.choice([-1, 1])), float(rng.uniform(4, 8)))
        return thorax.paint(thorax.random_chest(rng, width, nodule=nodule), shape, spacing, rng)
    plan = abdomen.random_abdomen(rng, width, lesions=int(rng.integers(2)), cysts=int(rng.integers(2)))
    return abdomen.paint(plan, shape, spacing, rng).hu
