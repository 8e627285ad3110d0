"""Opening a path that someone else chose: regular files only, never blocking.

Never more bytes than asked for.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from evaluator.readers.errors import ReadError

MEGABYTE = 1 << 20


def open_regular(path: Path, max_bytes: int) -> BinaryIO:
    """Open a regular, non-empty file of at most ``max_bytes`` for reading.

    The last component of the path is not followed when it is a link, and nothing that could block (FIFO,
    device) is read.

    Raises
    ------
    ReadError
        ``missing``, ``not_a_file``, ``unreadable``, ``empty`` or ``too_large``.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ReadError("missing", f"{path.name} is not there") from None
    except OSError as error:
        raise _refused(path, error) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ReadError("not_a_file", f"{path.name} is not a regular file")
        if status.st_size == 0:
            raise ReadError("empty", f"{path.name} is empty")
        if status.st_size > max_bytes:
            raise ReadError(
                "too_large", f"{path.name} has {status.st_size} bytes, at most {max_bytes} are accepted"
            )
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The whole content of a regular file of at most ``max_bytes``; errors as in `open_regular`."""
    with open_regular(path, max_bytes) as file:
        try:
            content = file.read(max_bytes + 1)
        except OSError as error:
            raise ReadError("unreadable", f"{path.name}: {error.strerror}") from None
    if len(content) > max_bytes:
        raise ReadError("too_large", f"{path.name} grew beyond {max_bytes} bytes while it was read")
    return content


def decode_utf8(content: bytes, name: str) -> str:
    """The text of ``content``.

    Raises
    ------
    ReadError
        ``byte_order_mark`` or ``not_utf8``.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ReadError(
            "not_utf8", f"{name} starts with a UTF-16 byte order mark; write UTF-8 without a mark"
        )
    if content.startswith(b"\xef\xbb\xbf"):
        raise ReadError(
            "byte_order_mark", f"{name} starts with a UTF-8 byte order mark; write it without one"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError("not_utf8", f"{name} is not UTF-8 at byte {error.start}") from None


def _refused(path: Path, error: OSError) -> ReadError:
    if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EMLINK):
        return ReadError("not_a_file", f"{path.name} is a link or a special file, expected a regular file")
    return ReadError("unreadable", f"{path.name}: {error.strerror}")
