"""NIfTI-1 and NIfTI-2 single files (.nii, .nii.gz) from people we do not trust.

The header is judged before a byte of the body is read. The body then passes through the decompressor piece by
piece into an array of the result's own type, so neither a false header nor a compression bomb, nor labels
stored as float64, can ask for more memory than the volume itself needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from nibabel.orientations import apply_orientation, inv_ornt_aff, io_orientation
from numpy.typing import NDArray

from evaluator.readers.errors import ReadError
from evaluator.readers.gunzip import Gunzip
from evaluator.readers.nifti_header import Header, corner_distance, read_header
from evaluator.untrusted import MEGABYTE, open_regular

MAX_FILE_BYTES = 2048 * MEGABYTE
MAX_VOXELS = 400_000_000
MAX_LABEL = 65_535
LABEL_TOLERANCE = 1e-3
"""How far a stored label may lie from an integer."""
GRID_TOLERANCE_VOXELS = 1e-3
"""How far the corners of two grids may lie apart."""

_PIECE = 1 << 20


class Stream(Protocol):
    """What a plain file and a decompressed one have in common."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes, fewer only at the end."""

    def readinto(self, view: memoryview, /) -> int:
        """Fill some of ``view``; how many bytes, 0 at the end."""


@dataclass(frozen=True)
class Volume:
    """A volume in closest canonical (RAS+) orientation.

    ``data`` (x, y, z); ``affine`` (4, 4) voxel index -> mm; ``spacing`` mm along each array axis.
    ``flags`` says what had to be tolerated: ``squeezed`` for trailing axes of length 1.
    """

    data: NDArray[Any]
    affine: NDArray[np.float64]
    spacing: tuple[float, float, float]
    flags: tuple[str, ...] = ()


def read_nifti(
    path: Path, *, max_voxels: int = MAX_VOXELS, expected_shape: tuple[int, ...] | None = None
) -> Volume:
    """Read a 3-D volume of finite numbers.

    Parameters
    ----------
    path : Path
    max_voxels : int
        Cap on the product of the header's dimensions.
    expected_shape : tuple of int, optional
        Shape after reorientation; another one is refused before the body is read.

    Returns
    -------
    Volume
        Values after slope and intercept: the stored dtype where there is no scaling, else float32 or float64.

    Raises
    ------
    ReadError
        Codes: those of `open_regular`, ``bad_format``, ``unsupported_dtype``, ``wrong_dimensions``,
        ``wrong_shape``, ``too_large``, ``bad_geometry``, ``truncated``, ``corrupt``, ``trailing_data``,
        ``non_finite``.
    """
    with _opened(path, max_voxels, expected_shape) as (stream, header):
        data = np.empty(header.shape, dtype=header.dtype, order="F")
        flat = data.reshape(-1, order="F")
        for start, values in _pieces(stream, header, path.name):
            flat[start : start + values.size] = values
    return _canonical(data, header)


def read_label_map(
    path: Path,
    allowed_ids: Collection[int],
    *,
    max_voxels: int = MAX_VOXELS,
    expected_shape: tuple[int, ...] | None = None,
) -> Volume:
    """Read a label map whose values all belong to the task.

    Parameters
    ----------
    path : Path
    allowed_ids : collection of int
        Labels in 0..65535; the background is one of them.
    max_voxels, expected_shape
        As in `read_nifti`.

    Returns
    -------
    Volume
        ``data`` is uint8, or uint16 where the task has a label above 255. Values within 0.001 of an integer
        were rounded to it.

    Raises
    ------
    ReadError
        As `read_nifti`, and ``non_integer_labels``, ``unknown_label``.
    """
    allowed = np.zeros(MAX_LABEL + 1, dtype=bool)
    allowed[list(allowed_ids)] = True
    unknown: set[int] = set()
    with _opened(path, max_voxels, expected_shape) as (stream, header):
        labels = np.empty(header.shape, dtype=np.uint8 if max(allowed_ids) < 256 else np.uint16, order="F")
        flat = labels.reshape(-1, order="F")
        for start, values in _pieces(stream, header, path.name):
            rounded = _rounded(values, path.name)
            if rounded.min() >= 0 and rounded.max() <= MAX_LABEL and allowed[rounded].all():
                flat[start : start + values.size] = rounded
            elif len(unknown) < 100:
                unknown |= {int(value) for value in np.unique(rounded)} - set(allowed_ids)
    if unknown:
        raise ReadError("unknown_label", _unknown_labels(path.name, sorted(unknown), allowed_ids))
    return _canonical(labels, header)


def same_grid(a: Volume, b: Volume) -> bool:
    """Whether two canonical volumes have one shape, and corners that coincide within 0.001 of a voxel."""
    return grid_difference(a, b) is None


def grid_difference(a: Volume, b: Volume) -> str | None:
    """What tells the grid of ``a`` from that of ``b``, in one line; None when they are the same grid."""
    if a.data.shape != b.data.shape:
        return f"shape {a.data.shape}, expected {b.data.shape}"
    apart = corner_distance(a.affine, b.affine, b.data.shape)
    if apart <= GRID_TOLERANCE_VOXELS:
        return None
    return f"corners lie up to {apart:.4g} voxels off the expected grid; keep the affine of the input file"


def require_same_grid(volume: Volume, expected: Volume, name: str) -> None:
    """Raise ``wrong_shape`` or ``wrong_grid`` unless `same_grid` holds."""
    difference = grid_difference(volume, expected)
    if difference is not None:
        code = "wrong_shape" if volume.data.shape != expected.data.shape else "wrong_grid"
        raise ReadError(code, f"{name}: {difference}")


@contextmanager
def _opened(
    path: Path, max_voxels: int, expected_shape: tuple[int, ...] | None
) -> Iterator[tuple[Stream, Header]]:
    """The stream behind a usable header; whatever breaks while it is read becomes a `ReadError`."""
    with open_regular(path, MAX_FILE_BYTES) as file:
        try:
            stream = _decompressed(file, path.name)
            header = read_header(stream, path.name, max_voxels)
            if expected_shape is not None and _canonical_shape(header) != tuple(expected_shape):
                found = f"{path.name} has shape {_canonical_shape(header)}"
                raise ReadError("wrong_shape", f"{found}, expected {tuple(expected_shape)}")
            stream.read(header.skip)
            yield stream, header
        except OSError as error:
            raise ReadError("unreadable", f"{path.name}: {error.strerror or error}") from None
        except MemoryError:
            raise ReadError("too_large", f"{path.name} needs more memory than there is") from None


def _decompressed(file: BinaryIO, name: str) -> Stream:
    magic = file.read(2)
    file.seek(0)
    return Gunzip(file, name) if magic == b"\x1f\x8b" else cast(Stream, file)


def _pieces(stream: Stream, header: Header, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
    """The values of the body in file order, scaled and checked to be finite.

    With the place where each piece starts.
    """
    total = int(np.prod(header.shape, dtype=np.int64))
    buffer = np.empty(min(_PIECE, total), dtype=header.stored)
    for start in range(0, total, _PIECE):
        stored = buffer[: min(_PIECE, total - start)]
        _fill(stream, stored.view(np.uint8).data, start * buffer.itemsize, total * buffer.itemsize, name)
        values = stored.astype(header.dtype, copy=False)
        if header.scaled:
            with np.errstate(over="ignore", invalid="ignore"):  # infinity is refused just below
                values = values * header.dtype.type(header.slope) + header.dtype.type(header.intercept)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ReadError("non_finite", f"{name} contains NaN or infinity")
        yield start, values
    if stream.read(1):  # of gzip, this read also verifies the checksum
        raise ReadError(
            "trailing_data", f"{name} goes on after the {total * buffer.itemsize} bytes of its shape"
        )


def _fill(stream: Stream, view: memoryview, before: int, total: int, name: str) -> None:
    filled = 0
    while filled < len(view):
        count = stream.readinto(view[filled:])
        if not count:
            raise ReadError(
                "truncated", f"{name} holds {before + filled} bytes of data, its shape needs {total}"
            )
        filled += count


def _rounded(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.kind in "iu":
        return values
    nearest: NDArray[Any] = np.rint(values)
    off = np.abs(values - nearest)
    worst = int(off.argmax())
    if off[worst] > LABEL_TOLERANCE:
        raise ReadError(
            "non_integer_labels", f"{name} contains {float(values[worst]):.6g}; labels are integers"
        )
    if np.abs(nearest).max() > 2.0**31:
        raise ReadError("unknown_label", f"{name} contains {float(nearest.max()):.6g}, which is no label")
    return nearest.astype(np.int64)


def _canonical_shape(header: Header) -> tuple[int, ...]:
    return tuple(header.shape[int(axis)] for axis in np.argsort(io_orientation(header.affine)[:, 0]))


def _canonical(data: NDArray[Any], header: Header) -> Volume:
    turn = io_orientation(header.affine)
    affine = header.affine @ inv_ornt_aff(turn, header.shape)
    x, y, z = (float(size) for size in np.sqrt(np.sum(affine[:3, :3] ** 2, axis=0)))
    return Volume(apply_orientation(data, turn), affine, (x, y, z), header.flags)


def _unknown_labels(name: str, found: list[int], allowed_ids: Collection[int]) -> str:
    shown = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
    known = f"{len(allowed_ids)} labels between {min(allowed_ids)} and {max(allowed_ids)}"
    hint = "; negative labels come from a dtype that is too small" if found[0] < 0 else ""
    return f"{name} contains {shown}; the task has {known}, listed in the brief{hint}"
