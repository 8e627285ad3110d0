"""Files as chunks, and chunks as whole lines: nothing is held in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20


def file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def line_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines, many at a time, however the chunks were cut; what follows the last newline is left out."""
    held: list[bytes] = []
    length = 0
    for chunk in chunks:
        held.append(chunk)
        length += len(chunk)
        if length >= CHUNK_BYTES:
            whole, newline, rest = b"".join(held).rpartition(b"\n")
            if newline:
                yield whole + newline
            held, length = [rest], len(rest)
    whole, newline, _ = b"".join(held).rpartition(b"\n")
    if newline:
        yield whole + newline
