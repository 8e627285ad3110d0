"""Archives that are the same bytes for the same content, and that are unpacked without trusting them."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from hf_datasets.folders import EPOCH

Member = tuple[str, bytes | Path]
"""A path inside the archive, and the content or the file that holds it."""


HEADER_BYTES = 4 << 20

_DAMAGE = (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError)


class ArchiveError(Exception):
    """An archive holds what no archive of ours holds; one line."""


def write_tar(members: Iterable[Member], out: Any) -> None:
    """Write a tar archive with nothing in it but names and bytes: no owner, no mode, no time of its own.

    ``out`` needs no more than ``write``.
    """
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(members, key=lambda member: member[0]):
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = EPOCH, 0o644
            info.size = len(content) if isinstance(content, bytes) else content.stat().st_size
            with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
                tar.addfile(info, file)


def write_tar_gz(members: Iterable[Member], path: Path) -> None:
    """A gzip-compressed archive; the header of the compression says neither name nor time."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as packed:
        write_tar(members, packed)


class Reads(Protocol):
    """Something that bytes come out of."""

    def read(self, size: int, /) -> bytes: ...


class Metered:
    """The stream below a tar archive: what stands between two files is bounded, for it is read into memory as a whole.

    ``room`` is what may be read before the first file.
    """

    def __init__(self, stream: Reads, room: int = HEADER_BYTES) -> None:
        self._stream = stream
        self._room = room

    def allow(self, size: int) -> None:
        """A file of this size follows, and then the next header."""
        self._room = size + HEADER_BYTES

    def read(self, size: int, /) -> bytes:
        content = self._stream.read(size)
        self._room -= len(content)
        if self._room < 0:
            raise ArchiveError(f"has more than {HEADER_BYTES} bytes between two files")
        return content


class Content:
    """One file of an archive; where its end is missing, that is an ``ArchiveError``."""

    def __init__(self, content: Reads) -> None:
        self._content = content

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._content.read(size)
        except _DAMAGE as error:
            raise ArchiveError(f"is damaged: {' '.join(str(error).split())[:200]}") from None


def read_tar(file: Any, *, most_files: int, most_bytes: int) -> Iterator[tuple[str, Content, int]]:
    """Name, content and size of each file of a tar archive from anybody; ``file`` needs no more than ``read``.

    Raises
    ------
    ArchiveError
        It is damaged, holds a link, a device, a path that leads elsewhere or one name twice, or is beyond the bounds.
    """
    seen: set[str] = set()
    room = most_bytes
    metered = Metered(file)
    try:
        with tarfile.open(fileobj=metered, mode="r|") as tar:  # type: ignore[call-overload]
            for info in tar:
                _require_plain(info, seen)
                metered.allow(info.size)
                seen.add(info.name)
                room -= info.size
                if room < 0 or len(seen) > most_files:
                    raise ArchiveError(f"holds more than {most_files} files or {most_bytes} bytes")
                content = tar.extractfile(info)
                assert content is not None  # a regular file has content
                yield info.name, Content(content), info.size
    except _DAMAGE as error:
        raise ArchiveError(f"is damaged: {' '.join(str(error).split())[:200]}") from None


def _require_plain(info: tarfile.TarInfo, seen: set[str]) -> None:
    path = PurePosixPath(info.name)
    if not info.isreg() or info.size < 0:
        raise ArchiveError(f"{info.name[:100]!r} is not a regular file")
    if (
        path.is_absolute()
        or not path.parts
        or ".." in path.parts
        or str(path) != info.name
        or "\\" in info.name
        or not info.name.isprintable()
        or len(info.name.encode(errors="surrogateescape")) > 255
    ):
        raise ArchiveError(f"{info.name[:100]!r} is no plain path below the archive's root")
    if info.name in seen:
        raise ArchiveError(f"{info.name!r} stands twice in it")
