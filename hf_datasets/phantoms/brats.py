"""BraTS 2023 adult glioma: ``BraTS-GLI-ppppp-000/BraTS-GLI-ppppp-000-{t1c,t1n,t2f,t2w,seg}.nii.gz``, skull-stripped."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms import head
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Array, Rng, rng_for, smooth_noise

CASES = 6
SIZE, SLICES = 120, 8
PIXEL, THICKNESS = 1.45, 6.0
FOLDER = "ASNR-MICCAI-BraTS2023-GLI-Challenge-TrainingData"
CONTRASTS = {
    "t1c": head.T1C,
    "t1n": head.T1,
    "t2w": head.T2,
    "t2f": {**head.T2, "csf": 0.08, "oedema": 0.95, "necrosis": 0.3},
}


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six patients, each with a tumour, as the upstream has it."""
    rng = rng_for(seed, "brats")
    for number in sorted(int(number) for number in rng.choice(1666, CASES, replace=False)):
        _write_case(out / FOLDER / f"BraTS-GLI-{number:05d}-000", rng_for(seed, "brats", number))
    return {}


def _write_case(folder: Path, rng: Rng) -> None:
    folder.mkdir(parents=True)
    plan = head.random_head(rng, tumour=True)
    assert plan.tumour is not None
    x, y = (_axis(SIZE, PIXEL, axis) for axis in (0, 1))
    z = _axis(SLICES, THICKNESS, 2) + np.float32(plan.tumour.centre[2])
    brain = head.brain_mask(plan, x, y, z)
    affine = np.array([[-PIXEL, 0, 0, 0], [0, -PIXEL, 0, SIZE * PIXEL], [0, 0, THICKNESS, 0], [0, 0, 0, 1]])
    for name, contrast in CONTRASTS.items():
        signal = brain * head.paint(plan, x, y, z, contrast, PIXEL)
        signal *= 1 + 0.05 * smooth_noise(signal.shape, (14, 14, 2), rng)
        signal += brain * 0.012 * smooth_noise(signal.shape, 0.01, rng)
        _save(folder, name, np.clip(1400 * signal, 0, None).astype(np.int16), affine)
    _save(folder, "seg", _labels(plan.tumour, x, y, z, brain), affine)


def _labels(tumour: head.Tumour, x: Array, y: Array, z: Array, brain: Array) -> Array:
    """1 necrosis, 2 oedema, 3 enhancing rim, as round as a quick reader would draw them."""
    away = np.sqrt(sum((axis - at) ** 2 for axis, at in zip((x, y, z), tumour.centre, strict=True)))
    labels = np.select(
        [away < 0.66 * tumour.radius, away < tumour.radius, away < tumour.radius + 10], [1, 3, 2]
    )
    return np.asarray(labels * (brain > 0), dtype=np.uint8)


def _axis(count: int, step: float, axis: int) -> Array:
    shape = [count if axis == index else 1 for index in range(3)]
    return (((np.arange(count) - (count - 1) / 2) * step).astype(np.float32)).reshape(shape)


def _save(folder: Path, part: str, data: Array, affine: Array) -> None:
    nibabel.save(nibabel.Nifti1Image(data, affine), folder / f"{folder.name}-{part}.nii.gz")
