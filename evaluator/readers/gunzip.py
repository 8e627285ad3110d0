"""A gzip stream from people we do not trust: read piece by piece, with a bound on what is not content."""

from __future__ import annotations

import zlib
from typing import BinaryIO

from evaluator.readers.errors import ReadError

MAX_MEMBERS = 100_000
"""Block-wise writers start a member every 64 KB; a file of nothing but empty members would keep us busy for minutes."""

_CHUNK = 1 << 18
_GZIP = 16 + zlib.MAX_WBITS
_MAGIC = b"\x1f\x8b"


class Gunzip:
    """Decompressed bytes of ``file``; checksums are verified as each member ends.

    Raises
    ------
    ReadError
        While reading: ``truncated``, ``corrupt``, ``trailing_data`` for bytes behind the last member (padding
        included), ``too_large`` for too many members.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._unpacker = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._members = 1

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, fewer only at the end."""
        parts = []
        while size and (part := self._some(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def readinto(self, view: memoryview) -> int:
        """Fill some of ``view``; how many bytes, 0 at the end."""
        part = self._some(len(view))
        view[: len(part)] = part
        return len(part)

    def _some(self, size: int) -> bytes:
        """Some bytes, at most ``size``; none at the end of the file alone."""
        while True:
            if self._unpacker.eof and not self._next_member():
                return b""
            packed = self._packed or self._file.read(_CHUNK)
            try:
                content = self._unpacker.decompress(packed, size)
            except zlib.error as error:
                raise ReadError("corrupt", f"{self._name} does not decompress: {error}") from None
            self._packed = self._unpacker.unused_data or self._unpacker.unconsumed_tail
            if content:
                return content
            if not packed and not self._unpacker.eof:
                raise ReadError("truncated", f"{self._name} ends inside its compressed data")

    def _next_member(self) -> bool:
        while len(self._packed) < len(_MAGIC) and (more := self._file.read(_CHUNK)):
            self._packed += more
        if not self._packed:
            return False
        if not self._packed.startswith(_MAGIC):
            raise ReadError("trailing_data", f"{self._name} goes on after its compressed data")
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise ReadError("too_large", f"{self._name} has more than {MAX_MEMBERS} gzip members")
        self._unpacker = zlib.decompressobj(_GZIP)
        return True
