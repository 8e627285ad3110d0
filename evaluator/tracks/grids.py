"""Staged volumes, which are ours and need no guard: their grid alone, or their first channel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.orientations import apply_orientation, inv_ornt_aff, io_orientation

from evaluator.readers.nifti import Volume


def read_grid(path: Path) -> Volume:
    """A staged file as a canonical volume without voxels (one zero is seen everywhere)."""
    image: Any = nibabel.load(path)
    stored = tuple(int(size) for size in image.shape[:3])
    turn = io_orientation(image.affine)
    shape = tuple(stored[int(axis)] for axis in np.argsort(turn[:, 0]))
    affine = image.affine @ inv_ornt_aff(turn, stored)
    x, y, z = (float(size) for size in np.sqrt(np.sum(affine[:3, :3] ** 2, axis=0)))
    return Volume(np.broadcast_to(np.uint8(0), shape), affine, (x, y, z))


def read_first_channel(path: Path) -> Volume:
    """A staged file as a canonical 3-D volume; of a fourth axis the first place is taken."""
    image: Any = nibabel.load(path)
    data = np.asarray(image.dataobj[..., 0] if len(image.shape) == 4 else image.dataobj)
    grid = read_grid(path)
    return Volume(apply_orientation(data, io_orientation(image.affine)), grid.affine, grid.spacing)
