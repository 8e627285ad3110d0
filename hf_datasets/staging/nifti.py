"""Reading foreign NIfTI volumes with named errors, writing clean ones."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.filebasedimages import ImageFileError
from numpy.typing import NDArray

from hf_datasets.staging.base import StagingError

_MISMATCH_MM = 1e-3


@dataclass(frozen=True)
class Volume:
    """A 3-D array with its affine (voxel index to millimetres, RAS+)."""

    data: NDArray[Any]
    affine: NDArray[np.float64]
    spacing: tuple[float, float, float]


def read_volume(path: Path) -> Volume:
    """Read a 3-D volume as float32 or, where the file stores integers without a scale, as they are.

    Raises
    ------
    StagingError
        Truncated or not NIfTI, not 3-D, no usable affine, an affine that contradicts the voxel sizes, or
        values that are not finite.
    """
    try:
        image: Any = nibabel.load(path)
        stored = np.asanyarray(image.dataobj)
    except (ImageFileError, EOFError, OSError, ValueError, zlib.error) as error:
        raise StagingError(
            f"{path}: not a complete NIfTI file ({_short(error)}); download it again"
        ) from None
    if stored.ndim == 4 and stored.shape[3] == 1:
        stored = stored[..., 0]
    if stored.ndim != 3:
        raise StagingError(f"{path}: expected a 3-D volume, found shape {stored.shape}")
    data = stored if np.issubdtype(stored.dtype, np.integer) else stored.astype(np.float32)
    if not np.isfinite(data).all():
        raise StagingError(f"{path}: expected finite values, found NaN or infinity")
    affine = np.asarray(image.affine, dtype=np.float64)
    spacing = _spacing(path, affine, image.header.get_zooms()[:3])
    return Volume(data, affine, spacing)


def _spacing(path: Path, affine: NDArray[np.float64], zooms: tuple[float, ...]) -> tuple[float, float, float]:
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise StagingError(f"{path}: expected an invertible affine, found {affine[:3, :3].tolist()}")
    sizes = np.sqrt((affine[:3, :3] ** 2).sum(axis=0))
    if not np.allclose(sizes, zooms, rtol=1e-3, atol=_MISMATCH_MM):
        raise StagingError(
            f"{path}: affine says {_mm(sizes)}, the header's voxel sizes {_mm(zooms)}; repair the header"
        )
    return (float(sizes[0]), float(sizes[1]), float(sizes[2]))


def same_grid(path: Path, volume: Volume, other_path: Path, other: Volume) -> None:
    """Refuse two volumes that do not lie on one grid (corners within a thousandth of a voxel)."""
    if volume.data.shape != other.data.shape:
        raise StagingError(
            f"{other_path}: expected shape {volume.data.shape} as {path.name}, found {other.data.shape}"
        )
    corners = np.array([[i, j, k, 1] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
    corners[:, :3] *= np.array(volume.data.shape) - 1
    apart = np.abs(corners @ (volume.affine - other.affine).T).max()
    if apart > _MISMATCH_MM * min(volume.spacing):
        raise StagingError(
            f"{other_path}: expected the grid of {path.name} ({_mm(volume.spacing)}), found "
            f"{_mm(other.spacing)} with corners up to {apart:.3g} mm apart; are the two files of one case?"
        )


def write_volume(path: Path, data: NDArray[Any], affine: NDArray[np.float64]) -> None:
    """Write a volume under a fresh header: no description, millimetres, one affine in both codes."""
    image = nibabel.Nifti1Image(data, affine)
    image.header.set_xyzt_units("mm")
    image.set_sform(affine, code="scanner")
    image.set_qform(affine, code="scanner")
    nibabel.save(image, path)


def _mm(sizes: Any) -> str:
    return "x".join(f"{float(size):.4g}" for size in sizes) + " mm"


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
