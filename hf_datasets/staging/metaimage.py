"""Reading foreign MetaImage volumes (``.mha``: text header, then the voxels, in one file) with named errors."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import StagingError
from hf_datasets.staging.nifti import Volume

_TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
_HEADER_BYTES = 16_384
_LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])


def read_mha(path: Path) -> Volume:
    """Read a 3-D volume; whole numbers keep their type, all others become float32. The affine is RAS+.

    Raises
    ------
    StagingError
        Not a MetaImage with its voxels in the same file, truncated, not 3-D, no usable geometry, or values that
        are not finite.
    """
    header, start = _header(path)
    try:
        shape = tuple(int(word) for word in header["DimSize"].split())
        kind = np.dtype(_TYPES[header["ElementType"]])
        affine = _affine(header)
    except (KeyError, ValueError) as error:
        raise StagingError(
            f"{path}: expected a header with DimSize, ElementType and geometry; {error!r}"
        ) from None
    if len(shape) != 3 or min(shape) < 1 or header.get("ElementNumberOfChannels", "1") != "1":
        raise StagingError(f"{path}: expected a 3-D volume, found DimSize {header['DimSize']}")
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise StagingError(f"{path}: expected an invertible geometry, found {affine[:3, :3].tolist()}")
    body = _body(path, start, compressed=header.get("CompressedData", "False") == "True")
    if len(body) != int(np.prod(shape)) * kind.itemsize:
        raise StagingError(
            f"{path}: expected {int(np.prod(shape)) * kind.itemsize} bytes of voxels, found {len(body)}; download again"
        )
    stored = kind.newbyteorder(">" if header.get("BinaryDataByteOrderMSB", "False") == "True" else "<")
    data: NDArray[Any] = np.frombuffer(body, stored).reshape(shape, order="F")
    data = data.astype(kind if kind.kind in "iu" else np.float32)
    if not np.isfinite(data).all():
        raise StagingError(f"{path}: expected finite values, found NaN or infinity")
    x, y, z = (float(size) for size in np.linalg.norm(affine[:3, :3], axis=0))
    return Volume(data, affine, (x, y, z))


def _header(path: Path) -> tuple[dict[str, str], int]:
    """The fields of the header, and where the voxels begin."""
    with path.open("rb") as handle:
        head = handle.read(_HEADER_BYTES)
    end = head.find(b"LOCAL\n")
    end = end + 6 if end >= 0 else head.find(b"LOCAL\r\n") + 7
    lines = head[:end].decode("ascii", "replace").splitlines()
    fields = dict(part for line in lines if len(part := [word.strip() for word in line.split("=", 1)]) == 2)
    if end < 7 or "ObjectType" not in fields:
        raise StagingError(f"{path}: not a MetaImage with header and voxels in one file; download it again")
    return fields, end


def _affine(header: dict[str, str]) -> NDArray[np.float64]:
    numbers = {
        key: np.array([float(word) for word in header[key].split()])
        for key in ("TransformMatrix", "Offset", "ElementSpacing")
    }
    affine = np.eye(4)
    affine[:3, :3] = numbers["TransformMatrix"].reshape(3, 3).T * numbers["ElementSpacing"]
    affine[:3, 3] = numbers["Offset"]
    return _LPS_TO_RAS @ affine


def _body(path: Path, start: int, *, compressed: bool) -> bytes:
    with path.open("rb") as handle:
        handle.seek(start)
        stored = handle.read()
    if not compressed:
        return stored
    try:
        return zlib.decompress(stored)
    except zlib.error as error:
        raise StagingError(f"{path}: the voxels do not decompress ({error}); download it again") from None
