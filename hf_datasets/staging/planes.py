"""Single planes of volumes as [0, 1] images, and the two files of a super-resolution or denoising case."""

from __future__ import annotations

from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders
from hf_datasets.staging.degrade import Plane, bicubic_half, noisy
from hf_datasets.staging.nifti import Volume

SIDE = 32
"""Planes are padded to a multiple of this."""
BRIGHTEST = 99.9
SCALE_NOTE = f"divided by the plane's {BRIGHTEST}th percentile, clipped to [0, 1]"
PADDING_NOTE = f"zeros around it up to the next multiple of {SIDE} pixels"


def canonical(volume: Volume) -> NDArray[Any]:
    """The voxels with axes that run to the patient's right, front and head (RAS+)."""
    image = nibabel.as_closest_canonical(nibabel.Nifti1Image(volume.data, volume.affine))
    return np.asarray(image.dataobj)


def axial(data: NDArray[Any], index: int) -> Plane:
    """A plane across the body of canonical data: front up, the patient's right at the left."""
    return np.ascontiguousarray(data[::-1, ::-1, index].T, dtype=np.float32)


def sagittal(data: NDArray[Any], index: int) -> Plane:
    """A plane along the body of canonical data: head up, front at the left."""
    return np.ascontiguousarray(data[index, ::-1, ::-1].T, dtype=np.float32)


def unit_scale(plane: Plane) -> Plane | None:
    """The plane on [0, 1] by its own brightness; None where there is nothing bright."""
    top = float(np.percentile(plane, BRIGHTEST))
    return np.clip(plane / np.float32(top), 0, 1) if top > 0 else None


def window(hu: NDArray[Any], low: float, high: float) -> Plane:
    """Hounsfield units on [0, 1]."""
    return np.asarray(np.clip((hu - low) / (high - low), 0, 1), dtype=np.float32)


def padded(plane: Plane) -> Plane:
    """The plane in the middle of zeros, its sides multiples of `SIDE`."""
    room = [-size % SIDE for size in plane.shape]
    return np.pad(plane, [(extra // 2, extra - extra // 2) for extra in room])


def middle_third(count: int, rng: np.random.Generator) -> int:
    """A random index from the middle third."""
    third = count // 3
    return int(rng.integers(third, count - third))


def write_halved(to: CaseFolders, reference: Plane) -> None:
    """``reference.npy`` and, at half its size, ``input.npy``."""
    np.save(to.private / "reference.npy", reference)
    np.save(to.public / "input.npy", bicubic_half(reference))


def write_noisy(to: CaseFolders, reference: Plane) -> None:
    """``reference.npy`` and, with noise from the case's seed, ``input.npy``."""
    np.save(to.private / "reference.npy", reference)
    np.save(to.public / "input.npy", noisy(reference, to.seed))
