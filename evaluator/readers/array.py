"""NumPy arrays (.npy, .npz) from people we do not trust. Nothing is ever unpickled."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evaluator.readers.errors import ReadError
from evaluator.untrusted import MEGABYTE, open_regular

MAX_FILE_BYTES = 1024 * MEGABYTE
MAX_ELEMENTS = 100_000_000
MAX_MEMBERS = 64
MAX_DIRECTORY_BYTES = MEGABYTE

_CHUNK = 1 << 22
_END_OF_DIRECTORY = b"PK\x05\x06"
_END_OF_LARGE_DIRECTORY = b"PK\x06\x07"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What NumPy writes; the others let a file choose how much memory its unpacking takes."""


def read_array(
    path: Path, *, max_elements: int = MAX_ELEMENTS, expected_shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Read one .npy array of finite real numbers.

    Parameters
    ----------
    path : Path
    max_elements : int
        Cap on the number of elements the header claims.
    expected_shape : tuple of int, optional
        Another shape is refused before the body is read.

    Returns
    -------
    array
        Of the stored dtype (bool, integer or real float) in native byte order.

    Raises
    ------
    ReadError
        Codes: those of `open_regular`, ``bad_format``, ``pickled``, ``unsupported_dtype``, ``too_large``,
        ``wrong_shape``, ``truncated``, ``trailing_data``, ``non_finite``.
    """
    with open_regular(path, MAX_FILE_BYTES) as file:
        return _read_npy(file, path.name, max_elements, expected_shape)


def read_arrays(path: Path, *, max_elements: int = MAX_ELEMENTS) -> dict[str, NDArray[Any]]:
    """Read every array of an .npz archive; ``max_elements`` is a cap on all of them together.

    Raises
    ------
    ReadError
        As `read_array`, and ``corrupt``.
    """
    with open_regular(path, MAX_FILE_BYTES) as file:
        require_small_directory(file, path.name)
        arrays: dict[str, NDArray[Any]] = {}
        left = max_elements
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    key = member.filename.removesuffix(".npy")
                    if key in arrays or not member.filename.endswith(".npy"):
                        raise ReadError(
                            "bad_format", f"{path.name} holds the unexpected member {member.filename[:40]!r}"
                        )
                    if member.compress_type not in _METHODS:
                        raise ReadError(
                            "bad_format", f"{path.name} packs its members in a way that NumPy does not"
                        )
                    with archive.open(member) as stream:
                        arrays[key] = _read_npy(stream, f"{path.name}:{key[:40]!r}", left, None)  # type: ignore[arg-type]
                    left -= arrays[key].size
        except EOFError:
            raise ReadError("truncated", f"{path.name} ends inside a member") from None
        except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, ValueError, struct.error) as error:
            raise ReadError("corrupt", f"{path.name} cannot be unpacked: {str(error)[:200]}") from None
    return arrays


def _read_npy(
    stream: BinaryIO, name: str, max_elements: int, expected_shape: tuple[int, ...] | None
) -> NDArray[Any]:
    shape, fortran, dtype = _read_header(stream, name)
    if dtype.hasobject:
        raise ReadError("pickled", f"{name} holds Python objects; save a plain numeric array")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ReadError(
            "unsupported_dtype", f"{name} has dtype {str(dtype)[:40]}; expected integers or real floats"
        )
    if any(size < 0 for size in shape):
        raise ReadError("bad_format", f"{name} has the impossible shape {str(shape)[:80]}")
    if math.prod(shape) > max_elements:
        raise ReadError(
            "too_large",
            f"{name} claims shape {str(shape)[:80]}, at most {max_elements} elements are accepted",
        )
    if expected_shape is not None and shape != tuple(expected_shape):
        raise ReadError(
            "wrong_shape", f"{name} has shape {str(shape)[:80]}, expected {tuple(expected_shape)}"
        )
    data = np.empty(math.prod(shape), dtype=dtype)
    _fill(stream, data.view(np.uint8).data, name)
    data = data.astype(dtype.newbyteorder("="), copy=False)
    if dtype.kind == "f" and not np.isfinite(data).all():
        raise ReadError("non_finite", f"{name} contains NaN or infinity")
    return data.reshape(shape, order="F" if fortran else "C")


def _read_header(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(stream)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(stream)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
        raise
    except Exception as error:  # the header is a Python literal, and can be wrong in as many ways
        if stream.tell() < 6:
            raise ReadError("truncated", f"{name} ends inside its header") from None
        raise ReadError("bad_format", f"{name} is not a NumPy array: {type(error).__name__}") from None
    raise ReadError("bad_format", f"{name} has NumPy format version {version}")


def _fill(stream: BinaryIO, view: memoryview, name: str) -> None:
    filled = 0
    while filled < len(view):
        chunk = stream.read(min(_CHUNK, len(view) - filled))
        if not chunk:
            raise ReadError(
                "truncated", f"{name} holds {filled} bytes of data, its header claims {len(view)}"
            )
        view[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    if stream.read(1):
        raise ReadError("trailing_data", f"{name} goes on after the {len(view)} bytes its header claims")


def require_small_directory(
    file: BinaryIO, name: str, max_members: int = MAX_MEMBERS, max_bytes: int = MAX_DIRECTORY_BYTES
) -> None:
    """Judge a zip file's directory before `zipfile` builds an object for each of its entries.

    Raises
    ------
    ReadError
        ``corrupt`` or ``too_large``.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - 65_557))
    tail = file.read()
    file.seek(0)
    place = tail.rfind(_END_OF_DIRECTORY)
    if place < 0 or len(tail) < place + 22:
        raise ReadError("corrupt", f"{name} has no zip directory (truncated?)")
    if tail[max(0, place - 20) : place].startswith(_END_OF_LARGE_DIRECTORY):
        raise ReadError("too_large", f"{name} has a directory for more than 65535 members or 4 GB")
    entries = int.from_bytes(tail[place + 10 : place + 12], "little")
    length = int.from_bytes(tail[place + 12 : place + 16], "little")
    if entries > max_members or length > max_bytes:
        raise ReadError("too_large", f"{name} has {entries} members, at most {max_members} are accepted")
