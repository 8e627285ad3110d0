"""Single-frame DICOM images from people we do not trust."""

from __future__ import annotations

import importlib.util
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.readers.errors import ReadError
from evaluator.untrusted import MEGABYTE, open_regular

MAX_FILE_BYTES = 128 * MEGABYTE
MAX_PIXELS = 16_000_000

_UNCOMPRESSED = {"1.2.840.10008.1.2": "<", "1.2.840.10008.1.2.1": "<", "1.2.840.10008.1.2.2": ">"}
_HEADER_TAGS = [
    "Rows",
    "Columns",
    "SamplesPerPixel",
    "NumberOfFrames",
    "BitsAllocated",
    "PixelRepresentation",
    "RescaleSlope",
    "RescaleIntercept",
    "PixelSpacing",
]


@dataclass(frozen=True)
class Slice:
    """``data`` (rows, columns) float64 after the rescale.

    ``spacing`` mm between rows and columns, if stated.
    """

    data: NDArray[np.float64]
    spacing: tuple[float, float] | None


def read_dicom(path: Path, *, max_pixels: int = MAX_PIXELS) -> Slice:
    """Read one uncompressed grey image.

    Parameters
    ----------
    path : Path
    max_pixels : int
        Cap on rows times columns as the header claims them.

    Raises
    ------
    ReadError
        Codes: those of `open_regular`, ``unavailable``, ``bad_dicom``, ``too_large``, ``animated``,
        ``unsupported_dtype``, ``truncated``, ``non_finite``.
    """
    if importlib.util.find_spec("pydicom") is None:
        raise ReadError("unavailable", "pydicom is not installed")
    header, pixels = _parse(path)
    rows, columns = _number(header, "Rows", path.name), _number(header, "Columns", path.name)
    if rows * columns > max_pixels:
        raise ReadError(
            "too_large", f"{path.name} is {rows} x {columns}, at most {max_pixels} pixels are accepted"
        )
    if min(rows, columns) < 1:
        raise ReadError("bad_dicom", f"{path.name} is {rows} x {columns}")
    if _number(header, "NumberOfFrames", path.name, 1) != 1:
        raise ReadError("animated", f"{path.name} has several frames, expected one image")
    bits = _number(header, "BitsAllocated", path.name)
    if _number(header, "SamplesPerPixel", path.name, 1) != 1 or bits not in (8, 16):
        raise ReadError("unsupported_dtype", f"{path.name} is not a grey image of 8 or 16 bits")
    order = _UNCOMPRESSED[str(header.file_meta.TransferSyntaxUID)]
    sign = "i" if _number(header, "PixelRepresentation", path.name, 0) else "u"
    dtype = np.dtype(f"{order}{sign}{bits // 8}")
    size = rows * columns * dtype.itemsize
    if not size <= len(pixels) <= size + 1:
        raise ReadError(
            "truncated", f"{path.name} holds {len(pixels)} bytes of pixels, its header claims {size}"
        )
    stored = np.frombuffer(pixels, dtype=dtype, count=rows * columns).reshape(rows, columns)
    slope, intercept = (
        _real(header, "RescaleSlope", path.name, 1.0),
        _real(header, "RescaleIntercept", path.name, 0.0),
    )
    return Slice(stored * slope + intercept, _spacing(header, path.name))


def _parse(path: Path) -> tuple[Any, bytes]:
    """The data set and its pixels; the transfer syntax is judged first, since a deflated data set may be a bomb."""
    import pydicom
    from pydicom.filereader import read_dataset, read_preamble

    with open_regular(path, MAX_FILE_BYTES) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read_preamble(file, force=False)
            meta = read_dataset(file, False, True, stop_when=lambda tag, _vr, _length: tag.group != 2)
            syntax = str(meta.get("TransferSyntaxUID", ""))
            if syntax in _UNCOMPRESSED:
                file.seek(0)
                dataset = pydicom.dcmread(file, specific_tags=[*_HEADER_TAGS, "PixelData"])
                pixels = dataset.get("PixelData")
        except Exception as error:  # pydicom raises what a broken field happens to raise
            raise ReadError(
                "bad_dicom", f"{path.name} is not a DICOM image: {type(error).__name__}"
            ) from None
    if syntax not in _UNCOMPRESSED:
        raise ReadError(
            "bad_dicom", f"{path.name} has transfer syntax {syntax[:40]!r}; only uncompressed ones are read"
        )
    if not isinstance(pixels, bytes):
        raise ReadError("bad_dicom", f"{path.name} has no pixel data")
    return dataset, pixels


def _number(header: Any, name: str, file: str, default: int | None = None) -> int:
    value = _real(header, name, file, None if default is None else float(default))
    return int(value)


def _real(header: Any, name: str, file: str, default: float | None) -> float:
    try:
        value = header.get(name, default)
        number = float(value)
    except Exception:  # a missing or garbled field
        raise ReadError("bad_dicom", f"{file} has no usable {name}") from None
    if not math.isfinite(number):
        raise ReadError("non_finite", f"{file} has {name} {number}")
    return number


def _spacing(header: Any, file: str) -> tuple[float, float] | None:
    try:
        value = header.get("PixelSpacing")
        if value is None:
            return None
        between_rows, between_columns = (float(part) for part in value)
    except Exception:  # a garbled field
        raise ReadError("bad_dicom", f"{file} has no usable PixelSpacing") from None
    if not (
        math.isfinite(between_rows)
        and math.isfinite(between_columns)
        and min(between_rows, between_columns) > 0
    ):
        raise ReadError(
            "bad_dicom", f"{file} has the impossible PixelSpacing {between_rows} x {between_columns}"
        )
    return between_rows, between_columns
