"""Reading foreign NIfTI volumes with named errors, writing clean ones."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.filebasedimages import ImageFileError
from nibabel.spatialimages import HeaderDataError
from numpy.typing import NDArray

from hf_datasets.staging.base import StagingError

_MISMATCH_MM = 1e-3


@dataclass(frozen=True)
class Volume:
    """A 3-D array (4-D with channels last) with its affine (voxel index to millimetres, RAS+)."""

    data: NDArray[Any]
    affine: NDArray[np.float64]
    spacing: tuple[float, float, float]


def read_volume(path: Path, content: bytes | None = None, channels: int = 1) -> Volume:
    """Read a volume as float32 or, where the file stores integers without a scale, as they are.

    Parameters
    ----------
    path
        The file, or the name in messages where the ``content`` comes out of an archive.
    content
        The bytes of a ``.nii.gz`` file.
    channels
        1 for a 3-D volume; more for a 4-D one whose last axis has this length.

    Raises
    ------
    StagingError
        Truncated or not NIfTI, not of the expected dimensions, no usable affine, an affine that contradicts the
        voxel sizes, or values that are not finite.
    """
    try:
        image: Any = (
            nibabel.load(path)
            if content is None
            else nibabel.Nifti1Image.from_bytes(gzip.decompress(content))
        )
        stored = np.asanyarray(image.dataobj)
    except (ImageFileError, HeaderDataError, EOFError, OSError, ValueError, zlib.error) as error:
        raise StagingError(
            f"{path}: not a complete NIfTI file ({_short(error)}); download it again"
        ) from None
    if channels == 1 and stored.ndim == 4 and stored.shape[3] == 1:
        stored = stored[..., 0]
    wanted = "a 3-D volume" if channels == 1 else f"a 4-D volume of {channels} channels"
    if stored.ndim != (3 if channels == 1 else 4) or (channels > 1 and stored.shape[3] != channels):
        raise StagingError(f"{path}: expected {wanted}, found shape {stored.shape}")
    data = stored if np.issubdtype(stored.dtype, np.integer) else stored.astype(np.float32)
    if not np.isfinite(data).all():
        raise StagingError(f"{path}: expected finite values, found NaN or infinity")
    affine = np.asarray(image.affine, dtype=np.float64)
    spacing = _spacing(path, affine, image.header.get_zooms()[:3])
    return Volume(data, affine, spacing)


def read_labels(path: Path, allowed: Collection[int], content: bytes | None = None) -> Volume:
    """Read a label map as uint8; parameters and errors as in `read_volume`.

    Raises
    ------
    StagingError
        A value that is not one of the ``allowed`` labels.
    """
    volume = read_volume(path, content)
    whole = np.issubdtype(volume.data.dtype, np.integer)
    rounded = volume.data if whole else np.rint(volume.data)
    off = 0.0 if whole else np.abs(volume.data - rounded).max()
    if off > 1e-3 or not _only(rounded, set(allowed)):
        found = np.unique(volume.data)[:6].tolist()
        raise StagingError(
            f"{path}: expected the labels {', '.join(map(str, sorted(allowed)))}, found {found}"
        )
    return replace(volume, data=rounded.astype(np.uint8))


def _only(values: NDArray[Any], allowed: set[int]) -> bool:
    """Whether all values are allowed; where whatever lies between the extremes is, nothing need be counted."""
    between = range(int(values.min()), int(values.max()) + 1)
    dense = len(between) <= len(allowed) and allowed.issuperset(between)
    return dense or set(np.unique(values).tolist()) <= allowed


def as_stored(scan: Volume) -> NDArray[Any]:
    """Whole numbers that fit are stored as int16, as a scanner does; anything else as float32."""
    whole = np.rint(scan.data)
    small = whole.min() >= -32768 and whole.max() <= 32767
    return (
        whole.astype(np.int16) if small and np.array_equal(whole, scan.data) else scan.data.astype(np.float32)
    )


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
    if volume.data.shape[:3] != other.data.shape[:3]:
        raise StagingError(
            f"{other_path}: expected shape {volume.data.shape[:3]} as {path.name}, found {other.data.shape[:3]}"
        )
    corners = np.array([[i, j, k, 1] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
    corners[:, :3] *= np.array(volume.data.shape[:3]) - 1
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
