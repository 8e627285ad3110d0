"""A run folder on its way between machines: packed as a stream of bounded pieces, and put in place on arrival.

What the agent left in its workspace is hostile, so only regular files and folders are carried, each file once and no
file with holes: links, devices, endless trees and tricks with size stay behind, and ``not_carried.txt`` names them.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.files import sha256_file
from hf_datasets.records import RecordError, load_record
from runner import cell as files
from runner.cell import set_aside

PIECE = 8 * 1024 * 1024
NOT_CARRIED = "not_carried.txt"
_NAMED = 1000
"""So many of the files that stay behind are named."""
MAX_ENTRIES = 200_000
MAX_DEPTH = 64
_SLACK = 1024 * 1024
"""A file that is larger than its blocks on the disk by more than this has holes."""
_END = bytes(2 * tarfile.BLOCKSIZE)


class Damaged(Exception):
    """What arrived is not what was sent; says what is wrong."""


# --- packing ---


def packed(folder: Path) -> Iterator[bytes]:
    """The folder as a tar archive in pieces of at most about twice ``PIECE`` bytes, and a last piece, its SHA-256."""
    waiting, digest = bytearray(), hashlib.sha256()
    for part in _archive(folder):
        waiting += part
        if len(waiting) >= PIECE:
            digest.update(waiting)
            yield bytes(waiting)
            waiting.clear()
    digest.update(waiting)
    yield bytes(waiting)
    yield digest.digest()


def _archive(folder: Path) -> Iterator[bytes]:
    left: list[str] = []
    seen: set[tuple[int, int]] = set()
    for path in _everything_in(folder, left):
        name = path.relative_to(folder).as_posix()
        try:
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode):
                yield _header(name, tarfile.DIRTYPE, found)
            elif (why := _reason_to_leave(found, seen)) is not None:
                left.append(f"{name!r}: {why}")
            else:
                yield from _file(path, name)
        except OSError as error:
            left.append(f"{name!r}: {error.strerror}")
    if left:
        text = "".join(
            f"{line}\n"
            for line in [*left[:_NAMED], *([f"and {len(left) - _NAMED} more"] * (len(left) > _NAMED))]
        )
        yield from _member(NOT_CARRIED, text.encode())
    yield _END


def _everything_in(folder: Path, left: list[str]) -> Iterator[Path]:
    """All entries, parents first, within bounds and without recursion."""
    waiting = [(folder, 0)]
    entries = 0
    while waiting:
        place, depth = waiting.pop()
        try:
            found = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError as error:
            left.append(f"{place.relative_to(folder).as_posix()!r}: {error.strerror}")
            continue
        entries += len(found)
        if entries > MAX_ENTRIES or depth > MAX_DEPTH:
            left.append(f"what is in {place.relative_to(folder).as_posix()!r}: too many entries, or too deep")
            continue
        for entry in found:
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), depth + 1))


def _reason_to_leave(found: os.stat_result, seen: set[tuple[int, int]]) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    if found.st_size > found.st_blocks * 512 + _SLACK:
        return f"a file with holes, {found.st_size} bytes long"
    if found.st_nlink > 1:
        if (found.st_dev, found.st_ino) in seen:
            return "another name of a file that was carried"
        seen.add((found.st_dev, found.st_ino))
    return None


def _file(path: Path, name: str) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        yield _header(name, tarfile.REGTYPE, found)
        left = found.st_size
        while left > 0 and (part := file.read(min(PIECE, left))):
            left -= len(part)
            yield part
        yield bytes(left + -found.st_size % tarfile.BLOCKSIZE)


def _member(name: str, content: bytes) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    yield info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
    yield content + bytes(-len(content) % tarfile.BLOCKSIZE)


def _header(name: str, kind: bytes, found: os.stat_result) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, stat.S_IMODE(found.st_mode), int(found.st_mtime)
    info.size = found.st_size if kind == tarfile.REGTYPE else 0
    return info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")


# --- unpacking ---


class _Pieces(io.RawIOBase):
    """All pieces but the last as one file; the last is the digest of the others."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")
        self._next = next(self._pieces, b"")
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # (a writable buffer)
        while not self._rest:
            following = next(self._pieces, None)
            if following is None:
                return 0
            self._digest.update(self._next)
            self._rest, self._next = memoryview(self._next), following
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def is_whole(self) -> bool:
        """Whether all was read and is what was sent."""
        while self.read(PIECE):
            pass
        return self._next == self._digest.digest()


def unpack(pieces: Iterable[bytes], folder: Path) -> None:
    """Make ``folder`` of what :func:`packed` gave.

    Raises
    ------
    Damaged
        The pieces are not all that was sent, or a member would leave the folder.
    OSError
        The disk is full, for one.
    """
    folder.mkdir(parents=True)
    stream = _Pieces(pieces)
    reader = io.BufferedReader(stream, PIECE)  # type: ignore[type-var]
    try:
        with tarfile.open(fileobj=reader, mode="r|", errors="surrogateescape") as archive:
            archive.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise Damaged(f"the archive of the run folder is damaged: {error}") from None
    if not stream.is_whole():
        raise Damaged("the archive of the run folder is damaged: it is not all that was sent")


def remove(folder: Path) -> None:
    """Remove a folder that an agent may have nested deeper than recursion goes; nothing happens where there is none."""
    subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)


@contextmanager
def arriving(folder: Path) -> Iterator[Path]:
    """A name beside ``folder`` for what is on its way there; whatever is left of it afterwards is removed."""
    place = folder.with_name(f".{folder.name}.arriving")
    remove(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield place
    finally:
        remove(place)


def require_sealed(folder: Path, record_sha256: str) -> None:
    """The record is the one that was announced, and stands over the files that lie beside it.

    Raises
    ------
    Damaged
        It does not.
    """
    try:
        found = sha256_file(folder / files.RECORD)
        record = load_record(folder / files.RECORD)
    except (OSError, RecordError) as error:
        raise Damaged(f"the record did not arrive: {error}") from None
    digests = {
        files.CELL: record.cell_sha256,
        files.TRACE: record.trace_sha256,
        f"{files.SUBMISSION}/{files.MANIFEST}": record.submission_sha256,
        files.REPORT: record.report_sha256,
        files.JUDGEMENT: record.judgement_sha256,
    }
    if found != record_sha256:
        raise Damaged("the record that arrived is not the one that was sealed")
    for name, digest in digests.items():
        if digest is not None and (not (folder / name).is_file() or sha256_file(folder / name) != digest):
            raise Damaged(f"{name} is not the file that the record was sealed over")


def put_beside(arrived: Path, folder: Path) -> None:
    """Put a new attempt in place; what stands there is kept as an earlier attempt.

    A folder without a cell is only the log of this attempt's requests, which the new one holds too. It may come again
    while it is replaced, with the last word of a worker.
    """
    flush(arrived)
    if (folder / files.CELL).is_file():
        set_aside(folder)
    for tries_left in (2, 1, 0):
        remove(folder)
        try:
            arrived.rename(folder)
            break
        except OSError:
            if not tries_left:
                raise
    _sync(folder.parent)


def put_over(arrived: Path, folder: Path) -> None:
    """Bring a run folder up to what came of its own copy: file by file, the record last, as the steps themselves do."""
    flush(arrived)
    found = [path for path in arrived.rglob("*") if path.is_file() and not path.is_symlink()]
    for path in sorted(found, key=lambda path: (path == arrived / files.RECORD, path)):
        target = folder / path.relative_to(arrived)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    if not any(path == arrived / files.UNSCORED for path in found):
        (folder / files.UNSCORED).unlink(missing_ok=True)
    _sync(folder)


def flush(folder: Path) -> None:
    """Make sure that everything but the workspace is on the disk before a record says that the run is done."""
    for root, folders, names in os.walk(folder):
        if Path(root) == folder and files.WORKSPACE in folders:
            folders.remove(files.WORKSPACE)
        for name in names:
            _sync(Path(root, name))
        _sync(Path(root))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
