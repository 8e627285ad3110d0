"""NIfTI-1 and NIfTI-2 single files (.nii, .nii.gz) from people we do not trust.

The header is read and judged before a byte of the body is; the body is then read into memory of exactly the
size the header claims, through the decompressor, so that neither a false header nor a compression bomb can
ask for more.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import nibabel
import numpy as np
from nibabel.orientations import apply_orientation, inv_ornt_aff, io_orientation
from numpy.typing import NDArray

from evaluator.readers.errors import ReadError
from evaluator.readers.files import MEGABYTE, open_regular

MAX_FILE_BYTES = 2048 * MEGABYTE
MAX_VOXELS = 400_000_000
MAX_EXTENSION_BYTES = MEGABYTE
MAX_LABEL = 65_535
LABEL_TOLERANCE = 1e-3
GRID_TOLERANCE_VOXELS = 1e-3
"""How far two grids' corners may lie apart."""
FORM_TOLERANCE_VOXELS = 1e-2
"""How far sform and qform may lie apart.

A qform is stored as float32 quaternion and never quite equals the sform.
"""

_DTYPES = {
    2: "u1",
    4: "i2",
    8: "i4",
    16: "f4",
    64: "f8",
    256: "i1",
    512: "u2",
    768: "u4",
    1024: "i8",
    1280: "u8",
}
_NAMES = {
    0: "unknown",
    1: "binary",
    32: "complex64",
    128: "RGB",
    1536: "float128",
    1792: "complex128",
    2304: "RGBA",
}
_SLAB = 1 << 22


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
    with open_regular(path, MAX_FILE_BYTES) as file, _decompressed(file) as stream:
        try:
            header, shape, flags = _read_header(stream, path.name, max_voxels)
            affine = _affine(header, shape, path.name)
            turn = io_orientation(affine)
            canonical = tuple(shape[int(axis)] for axis in np.argsort(turn[:, 0]))
            if expected_shape is not None and canonical != tuple(expected_shape):
                raise ReadError(
                    "wrong_shape", f"{path.name} has shape {canonical}, expected {tuple(expected_shape)}"
                )
            stored = _read_body(stream, header, shape, path.name)
        except EOFError:
            raise ReadError("truncated", f"{path.name} ends inside its compressed data") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ReadError("corrupt", f"{path.name} does not decompress: {error}") from None
        except OSError as error:
            raise ReadError("unreadable", f"{path.name}: {error.strerror or error}") from None
    data = _scaled(stored, header)
    _require_finite(data, path.name)
    affine = affine @ inv_ornt_aff(turn, shape)
    spacing = np.sqrt(np.sum(affine[:3, :3] ** 2, axis=0))
    return Volume(
        apply_orientation(data, turn),
        affine,
        (float(spacing[0]), float(spacing[1]), float(spacing[2])),
        flags,
    )


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
        ``data`` is uint8, or uint16 where a label is above 255. Values within 0.001 of an integer were
        rounded to it.

    Raises
    ------
    ReadError
        As `read_nifti`, and ``non_integer_labels``, ``unknown_label``.
    """
    volume = read_nifti(path, max_voxels=max_voxels, expected_shape=expected_shape)
    allowed = np.zeros(MAX_LABEL + 1, dtype=bool)
    allowed[list(allowed_ids)] = True
    labels = np.empty(volume.data.shape, dtype=np.uint8 if max(allowed_ids) < 256 else np.uint16, order="F")
    unknown: set[int] = set()
    for source, target in zip(_slabs(volume.data), _slabs(labels), strict=True):
        rounded = _rounded(source, path.name)
        if int(rounded.min()) >= 0 and int(rounded.max()) <= MAX_LABEL and allowed[rounded].all():
            target[...] = rounded
        else:
            unknown |= {int(value) for value in np.unique(rounded)} - set(allowed_ids)
    if unknown:
        raise ReadError("unknown_label", _unknown_labels(path.name, sorted(unknown), allowed_ids))
    return Volume(labels, volume.affine, volume.spacing, volume.flags)


def same_grid(a: Volume, b: Volume) -> bool:
    """Whether two canonical volumes have one shape, and corners that coincide within 0.001 of a voxel."""
    return grid_difference(a, b) is None


def grid_difference(a: Volume, b: Volume) -> str | None:
    """What tells the grid of ``a`` from that of ``b``, in one line; None when they are the same grid."""
    if a.data.shape != b.data.shape:
        return f"shape {a.data.shape}, expected {b.data.shape}"
    apart = _corner_distance(a.affine, b.affine, b.data.shape)
    if apart <= GRID_TOLERANCE_VOXELS:
        return None
    return (
        f"corners lie up to {apart:.4g} voxels away from the expected grid; keep the affine of the input file"
    )


def require_same_grid(volume: Volume, expected: Volume, name: str) -> None:
    """Raise ``wrong_shape`` or ``wrong_grid`` unless `same_grid` holds."""
    difference = grid_difference(volume, expected)
    if difference is not None:
        code = "wrong_shape" if volume.data.shape != expected.data.shape else "wrong_grid"
        raise ReadError(code, f"{name}: {difference}")


def _decompressed(file: BinaryIO) -> BinaryIO:
    magic = file.read(2)
    file.seek(0)
    if magic == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=file, mode="rb")  # type: ignore[return-value]  # a BinaryIO in all but name
    return file


def _read_header(
    stream: BinaryIO, name: str, max_voxels: int
) -> tuple[Any, tuple[int, int, int], tuple[str, ...]]:
    raw = stream.read(348)
    if len(raw) < 348:
        raise ReadError("truncated", f"{name} ends inside its header")
    kind: Any = nibabel.Nifti1Header
    if raw[4:8] in (b"n+2\0", b"ni2\0"):
        kind = nibabel.Nifti2Header
        raw += stream.read(192)
    try:
        header = kind.from_fileobj(BytesIO(raw), check=False)
    except Exception as error:  # nibabel raises many kinds for a header that is no header
        raise ReadError("bad_format", f"{name} is not NIfTI: {type(error).__name__}") from None
    if bytes(header["magic"])[:3] not in (b"n+1", b"n+2"):
        raise ReadError(
            "bad_format", f"{name} is not a single-file NIfTI (magic {bytes(header['magic'])[:3]!r})"
        )
    code = int(header["datatype"])
    if code not in _DTYPES:
        found = _NAMES.get(code, f"code {code}")
        raise ReadError("unsupported_dtype", f"{name} stores {found}; expected integers or real floats")
    shape, flags = _shape(header, name, max_voxels)
    return header, shape, flags


def _shape(header: Any, name: str, max_voxels: int) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    rank = int(header["dim"][0])
    if not 1 <= rank <= 7:
        raise ReadError("bad_format", f"{name} claims {rank} dimensions")
    dims = [int(size) for size in header["dim"][1 : rank + 1]]
    if min(dims) < 1:
        raise ReadError("bad_format", f"{name} has the impossible shape {tuple(dims)}")
    if math.prod(dims) > max_voxels:
        raise ReadError(
            "too_large", f"{name} claims shape {tuple(dims)}, at most {max_voxels} voxels are accepted"
        )
    if len(dims) < 3 or any(size != 1 for size in dims[3:]):
        raise ReadError("wrong_dimensions", f"{name} has shape {tuple(dims)}, expected 3 dimensions")
    return (dims[0], dims[1], dims[2]), ("squeezed",) if len(dims) > 3 else ()


def _affine(header: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    sform, qform = int(header["sform_code"]) > 0, int(header["qform_code"]) > 0
    if not (sform or qform):
        raise ReadError("bad_geometry", f"{name} has no affine; save it with the affine of the input file")
    try:
        forms = [header.get_sform()] * sform + [header.get_qform()] * qform
    except Exception as error:  # a quaternion that is none
        raise ReadError("bad_geometry", f"{name} has a broken qform: {type(error).__name__}") from None
    for form in forms:
        scale = np.linalg.norm(form[:3, :3], axis=0) if np.isfinite(form).all() else np.zeros(3)
        if not (np.isfinite(scale).all() and (scale > 1e-6).all() and (scale < 1e6).all()):
            raise ReadError("bad_geometry", f"{name} has an affine that is not finite or has no voxel size")
        if abs(np.linalg.det(form[:3, :3] / scale)) < 1e-3:
            raise ReadError("bad_geometry", f"{name} has a singular affine")
    if len(forms) == 2 and _corner_distance(forms[1], forms[0], shape) > FORM_TOLERANCE_VOXELS:
        raise ReadError(
            "bad_geometry", f"{name} has a qform and an sform that disagree; write one of them, or both alike"
        )
    return np.asarray(forms[0], dtype=np.float64)


def _read_body(stream: BinaryIO, header: Any, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    offset = float(header["vox_offset"])
    start = int(header["sizeof_hdr"])
    if not (
        math.isfinite(offset) and offset == int(offset) and start <= offset <= start + MAX_EXTENSION_BYTES
    ):
        raise ReadError("bad_format", f"{name} says its data start at byte {offset:g}")
    stream.read(int(offset) - start)
    dtype = np.dtype(_DTYPES[int(header["datatype"])]).newbyteorder(header.endianness)
    data = np.empty(shape, dtype=dtype, order="F")
    view = data.reshape(-1, order="F").view(np.uint8).data
    filled = 0
    while filled < len(view):
        count = stream.readinto(view[filled : filled + _SLAB])  # type: ignore[attr-defined]
        if not count:
            raise ReadError(
                "truncated", f"{name} holds {filled} bytes of data, its header claims {len(view)}"
            )
        filled += count
    if stream.read(1):  # this read also verifies the checksum of gzip
        raise ReadError("trailing_data", f"{name} goes on after the {len(view)} bytes its header claims")
    return data.astype(dtype.newbyteorder("="), copy=False)


def _scaled(stored: NDArray[Any], header: Any) -> NDArray[Any]:
    slope, intercept = float(header["scl_slope"]), float(header["scl_inter"])
    if not math.isfinite(slope) or slope == 0.0:
        return stored
    intercept = intercept if math.isfinite(intercept) else 0.0
    if (slope, intercept) == (1.0, 0.0):
        return stored
    exact = np.float32 if stored.dtype.itemsize <= 2 else np.float64
    scaled: NDArray[Any] = stored.astype(exact)
    np.multiply(scaled, exact(slope), out=scaled)
    np.add(scaled, exact(intercept), out=scaled)
    return scaled


def _require_finite(data: NDArray[Any], name: str) -> None:
    if np.issubdtype(data.dtype, np.floating) and not all(np.isfinite(slab).all() for slab in _slabs(data)):
        raise ReadError("non_finite", f"{name} contains NaN or infinity")


def _rounded(values: NDArray[Any], name: str) -> NDArray[Any]:
    if np.issubdtype(values.dtype, np.integer):
        return values
    nearest: NDArray[Any] = np.rint(values)
    off = np.abs(values - nearest)
    worst = int(off.argmax())
    if off.flat[worst] > LABEL_TOLERANCE:
        raise ReadError(
            "non_integer_labels", f"{name} contains {float(values.flat[worst]):.6g}; labels must be integers"
        )
    return nearest.astype(np.int64)


def _unknown_labels(name: str, found: list[int], allowed_ids: Collection[int]) -> str:
    shown = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
    hint = "; negative labels come from a dtype that is too small" if found[0] < 0 else ""
    known = f"{len(allowed_ids)} labels between {min(allowed_ids)} and {max(allowed_ids)}"
    return f"{name} contains {shown}; the task has {known}, listed in the brief{hint}"


def _slabs(data: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Pieces along the last axis, the slowest one of a NIfTI array."""
    step = max(1, _SLAB // max(1, data[..., :1].size))
    for start in range(0, data.shape[-1], step):
        yield data[..., start : start + step]


def _corner_distance(a: NDArray[np.float64], b: NDArray[np.float64], shape: tuple[int, ...]) -> float:
    """Largest distance between the corners of two grids of one shape, in voxels of ``b``."""
    ends = np.array([(0, size - 1) for size in shape])
    corners = np.stack([*(grid.ravel() for grid in np.meshgrid(*ends)), np.ones(8)])
    return float(np.abs((np.linalg.inv(b) @ (a - b) @ corners)[:3]).max())
