"""A record, a zip or a tar from anybody: the files of its runs, read under caps on number, size and unpacked bytes."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from evaluator.readers.array import require_small_directory
from evaluator.readers.errors import ReadError
from evaluator.readers.gunzip import Gunzip
from evaluator.untrusted import MEGABYTE, open_regular
from hf_datasets.archives import ArchiveError, Metered

MAX_UPLOAD = 256 * MEGABYTE
MAX_MEMBERS = 50_000
MAX_DIRECTORY = 16 * MEGABYTE
MAX_UNPACKED = 1024 * MEGABYTE
MAX_RECORD = MEGABYTE
MAX_RUNS = 2000
_CHUNK = 1 << 18

RECORD = "record.json"
HASHED = ("cell.json", "report.json", "judgement.json", "trace.jsonl", "submission/manifest.json")
"""Files beside a record whose digests it carries."""


class UploadRefused(Exception):
    """The file cannot be looked at; one sentence."""


@dataclass
class Found:
    """A run as it lies in the upload: its record's bytes, and the digests of the files beside it."""

    place: str
    record: bytes | None = None
    digests: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Upload:
    """The runs, and names of what was passed over: links, devices, names that lead elsewhere."""

    runs: tuple[Found, ...]
    passed_over: tuple[str, ...]


def read_upload(path: Path) -> Upload:
    """The runs of an uploaded file.

    Raises
    ------
    UploadRefused
        It is no record and no archive, is damaged, or goes beyond the caps.
    """
    try:
        with open_regular(path, MAX_UPLOAD) as file:
            start = file.read(512)
            file.seek(0)
            if start.lstrip()[:1] == b"{":
                return Upload((Found(path.name, file.read(MAX_RECORD + 1)),), ())
            return _sorted(file, start, path.name)
    except ReadError as error:
        raise UploadRefused(error.message) from None
    except (
        ArchiveError,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
    ) as error:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise UploadRefused(f"{path.name} cannot be unpacked: {text}") from None


def _sorted(file: BinaryIO, start: bytes, name: str) -> Upload:
    if start.startswith(b"PK"):
        members = _zip_members(file, name)
    elif start.startswith(b"\x1f\x8b"):
        members = _tar_members(Gunzip(file, name))
    elif start[257:262] == b"ustar":
        members = _tar_members(file)
    else:
        raise UploadRefused(f"{name} is no record.json, zip, tar or tar.gz")
    return _collected(members)


@dataclass(frozen=True)
class _Member:
    """``content`` None: something that is not a plain file under a plain name."""

    name: str
    content: IO[bytes] | None


def _zip_members(file: BinaryIO, name: str) -> Iterator[_Member]:
    require_small_directory(file, name, MAX_MEMBERS, MAX_DIRECTORY)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            kind = info.external_attr >> 28
            usual = kind in (0, 8) and info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if not usual or info.flag_bits & 1 or not _wanted(info.filename):
                yield _Member(info.filename, None if not usual else io.BytesIO())
                continue
            with archive.open(info) as content:
                yield _Member(info.filename, content)


def _tar_members(stream: Gunzip | BinaryIO) -> Iterator[_Member]:
    metered = Metered(_Bounded(stream))
    with tarfile.open(fileobj=metered, mode="r|") as archive:  # type: ignore[call-overload]
        for info in archive:
            metered.allow(max(0, info.size))
            if info.isreg():
                yield _Member(info.name, archive.extractfile(info))
            elif not info.isdir():
                yield _Member(info.name, None)


class _Bounded:
    """A stream that ends in an error where more comes out of it than is looked at."""

    def __init__(self, stream: Gunzip | BinaryIO) -> None:
        self._stream = stream
        self._left = MAX_UNPACKED

    def read(self, size: int, /) -> bytes:
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise UploadRefused(_TOO_MUCH)
        return content


_TOO_MUCH = f"The archive unpacks to more than {MAX_UNPACKED // MEGABYTE} MB; send fewer runs at once"


def _collected(members: Iterator[_Member]) -> Upload:
    runs: dict[str, Found] = {}
    odd: list[str] = []
    left = MAX_UNPACKED
    for number, member in enumerate(members):
        if number >= MAX_MEMBERS:
            raise UploadRefused(f"The archive has more than {MAX_MEMBERS} members; send fewer runs at once")
        if member.content is None or not _is_plain(member.name):
            odd.append(member.name[:100])
            continue
        kept = _wanted(member.name)
        if kept is None:
            continue
        place = str(PurePosixPath(member.name)).removesuffix(kept).rstrip("/") or "."
        run = runs.setdefault(place, Found(place))
        if len(runs) > MAX_RUNS:
            raise UploadRefused(f"The archive has more than {MAX_RUNS} runs; send fewer at once")
        left -= _keep(run, kept, member.content, left)
    return Upload(tuple(run for run in runs.values() if run.record is not None), tuple(odd))


def _wanted(name: str) -> str | None:
    """Which of a run's files this is; None for all others."""
    parts = PurePosixPath(name).parts
    if len(parts) > 1 and "/".join(parts[-2:]) in HASHED:
        return "/".join(parts[-2:])
    return parts[-1] if parts and parts[-1] in (RECORD, *HASHED) else None


def _is_plain(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and "\0" not in name


def _keep(run: Found, name: str, content: IO[bytes], left: int) -> int:
    """Keep a record, or the digest of a file beside it; how many bytes were read."""
    if name == RECORD:
        run.record = content.read(MAX_RECORD + 1)
        return len(run.record)
    digest, count = hashlib.sha256(), 0
    while chunk := content.read(_CHUNK):
        count += len(chunk)
        if count > left:
            raise UploadRefused(_TOO_MUCH)
        digest.update(chunk)
    run.digests[name] = digest.hexdigest()
    return count
