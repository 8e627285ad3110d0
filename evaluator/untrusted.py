"""Look at and open files that a stranger wrote, without following, blocking on or trusting any of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

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


class Refused(Exception):
    """A path that we do not read. ``code`` is a stable name, the message says what was found."""

    def __init__(self, code: ProblemCode, message: str) -> None:
        super().__init__(message)
        self.code: ProblemCode = code
        self.message = message


def require_folder(info: os.stat_result, what: str) -> None:
    """Refuse whatever is not a real folder (``info`` comes from ``lstat``)."""
    if stat.S_ISLNK(info.st_mode):
        raise Refused("link", f"{what} is a symbolic link, expected a real folder")
    if not stat.S_ISDIR(info.st_mode):
        raise Refused("not_a_folder", f"{what} is {_kind(info.st_mode)}, expected a folder")


def require_file(info: os.stat_result, max_bytes: int) -> None:
    """Refuse whatever is not a plain, non-empty file within ``max_bytes`` (``info`` comes from ``lstat``).

    The size is the apparent one: a sparse file counts as long as it claims to be. A second name of a file
    is refused, not copied: making a hard link needs no right to read its target, so where a workspace shares
    a file system with other data a link could hand the reader's rights to the agent. Writing the file again
    costs an honest agent nothing.
    """
    if stat.S_ISLNK(info.st_mode):
        raise Refused("link", "is a symbolic link, expected a regular file")
    if not stat.S_ISREG(info.st_mode):
        raise Refused("not_regular", f"is {_kind(info.st_mode)}, expected a regular file")
    if info.st_nlink > 1:
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
    descriptor = _open(name, _READ_FLAGS | os.O_DIRECTORY, parent, need=stat.S_IRUSR | stat.S_IXUSR)
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
    descriptor = _open(name, _READ_FLAGS, parent, need=stat.S_IRUSR)
    try:
        info = os.fstat(descriptor)
        require_file(info, max_bytes)
        yield descriptor, info.st_size
    finally:
        os.close(descriptor)


def _lstat(name: str, parent: int) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        raise Refused("missing", "no such file") from None
    except OSError as error:
        raise Refused("unreadable", f"cannot be looked at: {error.strerror}") from None


def _open(name: str, flags: int, parent: int, need: int) -> int:
    try:
        try:
            return os.open(name, flags, dir_fd=parent)
        except PermissionError:
            return _open_after_repair(name, flags, parent, need)
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {error.strerror}") from None


def _open_after_repair(name: str, flags: int, parent: int, need: int) -> int:
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
