"""Writing MetaImage volumes (``.mha``)."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"uint8": "MET_UCHAR", "int16": "MET_SHORT"}


def write_mha(
    path: Path, data: NDArray[Any], spacing: tuple[float, float, float], origin: NDArray[Any]
) -> None:
    """Write an array (x, y, z) of bytes or shorts whose axes run to left, back and head; millimetres are LPS+."""
    body = zlib.compress(np.asfortranarray(data).tobytes(order="F"), 6)
    header = {
        "ObjectType": "Image",
        "NDims": "3",
        "BinaryData": "True",
        "BinaryDataByteOrderMSB": "False",
        "CompressedData": "True",
        "CompressedDataSize": str(len(body)),
        "TransformMatrix": "1 0 0 0 1 0 0 0 1",
        "Offset": " ".join(f"{value:.6g}" for value in origin),
        "CenterOfRotation": "0 0 0",
        "AnatomicalOrientation": "RAI",
        "ElementSpacing": " ".join(f"{value:.6g}" for value in spacing),
        "DimSize": " ".join(map(str, data.shape)),
        "ElementType": _TYPES[data.dtype.name],
        "ElementDataFile": "LOCAL",
    }
    lines = "".join(f"{key} = {value}\n" for key, value in header.items())
    path.write_bytes(lines.encode() + body)
