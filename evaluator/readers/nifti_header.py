"""The header of a NIfTI file, judged before a byte of its body is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from evaluator.readers.errors import ReadError

if TYPE_CHECKING:
    from evaluator.readers.nifti import Stream

MAX_EXTENSION_BYTES = 1 << 20
FORM_TOLERANCE_VOXELS = 1e-2
"""How far sform and qform may lie apart: a qform is a float32 quaternion and never quite equals the sform."""

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
_OTHERS = {1: "bits", 32: "complex64", 128: "RGB", 1536: "float128", 1792: "complex128", 2304: "RGBA"}
_SIZE_1, _SIZE_2 = 348, 540


@dataclass(frozen=True)
class Header:
    """What the header says, found usable.

    ``shape`` (x, y, z) as stored; ``stored`` dtype in the file's byte order; ``slope`` and ``intercept`` of
    the values; ``affine`` (4, 4) stored index -> mm; ``skip`` bytes between header and body; ``flags`` as in
    `Volume`.
    """

    shape: tuple[int, int, int]
    stored: np.dtype[Any]
    slope: float
    intercept: float
    affine: NDArray[np.float64]
    skip: int
    flags: tuple[str, ...]

    @property
    def scaled(self) -> bool:
        return (self.slope, self.intercept) != (1.0, 0.0)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values after scaling, in native byte order."""
        if not self.scaled:
            return self.stored.newbyteorder("=")
        return np.dtype(np.float32 if self.stored.itemsize <= 2 else np.float64)


def read_header(stream: Stream, name: str, max_voxels: int) -> Header:
    """Read and judge the header at the start of ``stream``.

    Raises
    ------
    ReadError
        ``truncated``, ``bad_format``, ``unsupported_dtype``, ``too_large``, ``wrong_dimensions``,
        ``bad_geometry``.
    """
    raw = _parsed(stream, name)
    code = int(raw["datatype"])
    if code not in _DTYPES:
        found = _OTHERS.get(code, f"type {code}")
        raise ReadError("unsupported_dtype", f"{name} stores {found}; expected integers or real floats")
    shape, flags = _shape(raw, name, max_voxels)
    slope, intercept = _scaling(raw, name)
    return Header(
        shape=shape,
        stored=np.dtype(_DTYPES[code]).newbyteorder(raw.endianness),
        slope=slope,
        intercept=intercept,
        affine=_affine(raw, shape, name),
        skip=_skip(raw, name),
        flags=flags,
    )


def corner_distance(a: NDArray[np.float64], b: NDArray[np.float64], shape: tuple[int, ...]) -> float:
    """Largest distance between the corners of two grids of one shape, in voxels of ``b``."""
    ends = np.array([(0, size - 1) for size in shape])
    corners = np.stack([*(grid.ravel() for grid in np.meshgrid(*ends)), np.ones(8)])
    return float(np.abs((np.linalg.inv(b) @ (a - b) @ corners)[:3]).max())


def _parsed(stream: Stream, name: str) -> Any:
    raw = stream.read(_SIZE_1)
    if len(raw) < _SIZE_1:
        raise ReadError("truncated", f"{name} ends inside its header")
    kind: Any = nibabel.Nifti1Header
    if raw[4:8] == b"n+2\0":
        kind, raw = nibabel.Nifti2Header, raw + stream.read(_SIZE_2 - _SIZE_1)
    try:
        header = kind.from_fileobj(BytesIO(raw), check=False)
    except Exception as error:  # nibabel raises many kinds for a header that is none
        raise ReadError("bad_format", f"{name} is not NIfTI: {type(error).__name__}") from None
    if int(header["sizeof_hdr"]) != len(raw):
        raise ReadError("bad_format", f"{name} claims a header of {int(header['sizeof_hdr'])} bytes")
    magic = bytes(header["magic"])[:3]
    if magic not in (b"n+1", b"n+2"):
        raise ReadError("bad_format", f"{name} is not a single-file NIfTI (magic {magic!r})")
    return header


def _shape(raw: Any, name: str, max_voxels: int) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    rank = int(raw["dim"][0])
    if not 1 <= rank <= 7:
        raise ReadError("bad_format", f"{name} claims {rank} dimensions")
    dims = [int(size) for size in raw["dim"][1 : rank + 1]]
    if min(dims) < 1:
        raise ReadError("bad_format", f"{name} has the impossible shape {tuple(dims)}")
    if math.prod(dims) > max_voxels:
        raise ReadError(
            "too_large", f"{name} claims shape {tuple(dims)}, at most {max_voxels} voxels are read"
        )
    if len(dims) < 3 or any(size != 1 for size in dims[3:]):
        raise ReadError("wrong_dimensions", f"{name} has shape {tuple(dims)}, expected 3 dimensions")
    return (dims[0], dims[1], dims[2]), ("squeezed",) if len(dims) > 3 else ()


def _scaling(raw: Any, name: str) -> tuple[float, float]:
    slope, intercept = float(raw["scl_slope"]), float(raw["scl_inter"])
    if math.isnan(slope) or slope == 0.0:
        return 1.0, 0.0  # the standard's, and nibabel's, way to say that there is no scaling
    if not (math.isfinite(slope) and math.isfinite(intercept)):
        raise ReadError("bad_format", f"{name} scales its values by {slope:g} and {intercept:g}")
    return slope, intercept


def _affine(raw: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    sform, qform = int(raw["sform_code"]) > 0, int(raw["qform_code"]) > 0
    if not (sform or qform):
        raise ReadError("bad_geometry", f"{name} has no affine; save it with the affine of the input file")
    try:
        forms = [raw.get_sform()] * sform + [raw.get_qform()] * qform
    except Exception as error:  # a quaternion that is none
        raise ReadError("bad_geometry", f"{name} has a broken qform: {type(error).__name__}") from None
    for form in forms:
        scale = np.linalg.norm(form[:3, :3], axis=0) if np.isfinite(form).all() else np.zeros(3)
        if not ((scale > 1e-6).all() and (scale < 1e6).all()):
            raise ReadError("bad_geometry", f"{name} has an affine that is not finite or has no voxel size")
        if abs(np.linalg.det(form[:3, :3] / scale)) < 1e-3:
            raise ReadError("bad_geometry", f"{name} has a singular affine")
    if len(forms) == 2 and corner_distance(forms[1], forms[0], shape) > FORM_TOLERANCE_VOXELS:
        raise ReadError(
            "bad_geometry", f"{name} has a qform and an sform that disagree; write both alike, or one"
        )
    return np.asarray(forms[0], dtype=np.float64)


def _skip(raw: Any, name: str) -> int:
    offset = float(raw["vox_offset"])
    start = int(raw["sizeof_hdr"])
    if not (
        math.isfinite(offset) and offset == int(offset) and start <= offset <= start + MAX_EXTENSION_BYTES
    ):
        raise ReadError("bad_format", f"{name} says its data start at byte {offset:g}")
    return int(offset) - start
