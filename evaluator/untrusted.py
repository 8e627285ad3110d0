"""Look at and open files that a stranger wrote, without following, blocking on or trusting any of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from evaluator.readers.errors import ReadError

MEGABYTE = 1 << 20

ProblemCode = Literal[
    "missing",
    "empty",
    "link",
    "hard_link",
    "not_regular",
    "not_a_folder",
    "too_large",
    "total_too_large",
    "unreadable",
]

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Refused(ReadError):
    """A path that we do not even open, for what lies there."""

    code: ProblemCode

    def __init__(self, code: ProblemCode, message: str) -> None:
        super().__init__(code, message)


def require_folder(info: os.stat_result, what: str) -> None:
    """Refuse whatever is not a real folder (``info`` comes from ``lstat``)."""
    if stat.S_ISLNK(info.st_mode):
        raise Refused("link", f"{what} is a symbolic link, expected a real folder")
    if not stat.S_ISDIR(info.st_mode):
        raise Refused("not_a_folder", f"{what} is {_kind(info.st_mode)}, expected a folder")


def require_file(info: os.stat_result, max_bytes: int, *, one_name: bool = True) -> None:
    """Refuse whatever is not a plain, non-empty file within ``max_bytes`` (``info`` comes from ``lstat``).

    The size is the apparent one: a sparse file counts as long as it claims to be. A second name of a file
    is refused, not copied: making a hard link needs no right to read its target, so where a workspace shares
    a file system with other data a link could hand the reader's rights to the agent. Writing the file again
    costs an honest agent nothing. Without ``one_name`` it is accepted: what we staged may have as many as we like.
    """
    if stat.S_ISLNK(info.st_mode):
        raise Refused("link", "is a symbolic link, expected a regular file")
    if not stat.S_ISREG(info.st_mode):
        raise Refused("not_regular", f"is {_kind(info.st_mode)}, expected a regular file")
    if one_name and info.st_nlink > 1:
        raise Refused("hard_link", f"has {info.st_nlink} hard links, expected one; write a copy")
    if info.st_size == 0:
        raise Refused("empty", "is empty (0 bytes)")
    if info.st_size > max_bytes:
        raise Refused("too_large", f"claims {info.st_size} bytes, at most {max_bytes} are read")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
        stat.S_IFREG: "a regular file",
    }
    return kinds.get(stat.S_IFMT(mode), "of an unknown kind")


def open_regular(path: Path, max_bytes: int) -> BinaryIO:
    """Open a regular, non-empty file of at most ``max_bytes`` for reading.

    The last component of the path is not followed when it is a link, and nothing that could block or act on being
    opened (FIFO, device) is opened.

    Raises
    ------
    Refused
        ``missing``, ``link``, ``not_regular``, ``empty``, ``too_large`` or ``unreadable``.
    """
    try:
        require_file(_lstat(path, None), max_bytes, one_name=False)
        file = os.fdopen(_open(path, _READ_FLAGS, None), "rb")
        try:
            require_file(os.fstat(file.fileno()), max_bytes, one_name=False)
        except Refused:
            file.close()
            raise
    except Refused as refused:
        raise Refused(refused.code, f"{path.name}: {refused.message}") from None
    return file


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The whole content of a regular file of at most ``max_bytes``; errors as in `open_regular`."""
    with open_regular(path, max_bytes) as file:
        try:
            content = file.read(max_bytes + 1)
        except OSError as error:
            raise Refused("unreadable", f"{path.name}: {error.strerror}") from None
    if len(content) > max_bytes:
        raise Refused("too_large", f"{path.name} grew beyond {max_bytes} bytes while it was read")
    return content


@contextmanager
def trusted_folder(path: Path) -> Iterator[int]:
    """Descriptor of a folder whose whole path is ours."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def folder(name: str, parent: int, what: str) -> Iterator[int]:
    """Descriptor of the real folder ``name`` below ``parent``, or :class:`Refused`."""
    require_folder(_lstat(name, parent), what)
    descriptor = _open(name, _READ_FLAGS | os.O_DIRECTORY, parent, repair=stat.S_IRUSR | stat.S_IXUSR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def regular_file(name: str, parent: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Descriptor and size of the plain file ``name`` below ``parent``, or :class:`Refused`.

    It is looked at before it is opened (a device may act on opening) and once more through the descriptor.
    """
    require_file(_lstat(name, parent), max_bytes)
    descriptor = _open(name, _READ_FLAGS, parent, repair=stat.S_IRUSR)
    try:
        info = os.fstat(descriptor)
        require_file(info, max_bytes)
        yield descriptor, info.st_size
    finally:
        os.close(descriptor)


def _lstat(name: str | Path, parent: int | None) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        raise Refused("missing", "no such file") from None
    except OSError as error:
        raise Refused("unreadable", f"cannot be looked at: {error.strerror}") from None


def _open(name: str | Path, flags: int, parent: int | None, repair: int = 0) -> int:
    """Open; where the mode forbids it and is ours to change, with the ``repair`` bits added to it."""
    try:
        try:
            return os.open(name, flags, dir_fd=parent)
        except PermissionError:
            if not repair:
                raise
            return _open_after_repair(name, flags, parent, repair)
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {error.strerror}") from None


def _open_after_repair(name: str | Path, flags: int, parent: int | None, need: int) -> int:
    """Open what its owner (us) locked with ``chmod 000``.

    The handle pins the inode, so no other file can get the new mode.
    """
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        pinned = f"/proc/self/fd/{handle}"
        os.chmod(pinned, stat.S_IMODE(os.fstat(handle).st_mode) | need)  # noqa: PTH101 - a descriptor, not a path
        return os.open(pinned, flags & ~os.O_NOFOLLOW)
    finally:
        os.close(handle)
