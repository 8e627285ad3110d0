"""Put and get through the host side of a mount, never following a link the sandbox may have planted."""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runner.sandbox.base import Mount, SandboxSpec
from runner.sandbox.inside import HOME, ids

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def prepare(spec: SandboxSpec) -> None:
    """Check that the mounts' sources exist, and hand the writable ones over to the uid inside.

    Raises
    ------
    ValueError
        A source does not exist.
    """
    for mount in spec.mounts:
        if not mount.source.exists():
            raise ValueError(f"cannot mount {mount.source} at {mount.target}: it does not exist")
        if mount.writable:
            hand_over(mount.source)
    home = _find(spec, HOME)
    if spec.role == "agent" and home and home[0].writable:
        with _folder(home[0], home[1], create=True):
            pass


def hand_over(folder: Path) -> None:
    """Give a folder on the host to the uid inside; a runner that is not root shares its own uid with the sandbox."""
    if os.getuid() == 0:
        os.chown(folder, *ids(), follow_symlinks=False)


def put(spec: SandboxSpec, files: Mapping[str, bytes]) -> None:
    """Write files below writable mounts, owned by the uid inside; see ``Sandbox.put``."""
    for path, content in files.items():
        mount, parts = _locate(spec, path)
        if not mount.writable:
            raise ValueError(f"cannot write {path}: {mount.target} is mounted read-only")
        with _folder(mount, parts[:-1], create=True) as folder:
            _write(folder, parts[-1], content)


def get(spec: SandboxSpec, path: str, limit: int) -> bytes:
    """Read one regular file below a mount; see ``Sandbox.get``."""
    mount, parts = _locate(spec, path)
    with _no_links(path), _folder(mount, parts[:-1]) as folder:
        handle = os.open(parts[-1], _FILE, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path} is not a regular file")
            content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path} is larger than {limit} bytes")
    return content


def _locate(spec: SandboxSpec, path: str) -> tuple[Mount, list[str]]:
    found = _find(spec, path)
    if found is None or not found[1]:
        raise ValueError(f"{path!r} is not a file path below a mount of this sandbox")
    return found


def _find(spec: SandboxSpec, path: str) -> tuple[Mount, list[str]] | None:
    """The innermost mount that holds ``path``, and the path's parts below it."""
    clean = posixpath.normpath(path)
    if not clean.startswith("/") or "\0" in clean:
        return None
    for mount in sorted(spec.mounts, key=lambda mount: -len(mount.target)):
        if posixpath.commonpath([clean, mount.target]) == mount.target:
            below = posixpath.relpath(clean, mount.target)
            return mount, [] if below == "." else below.split("/")
    return None


@contextmanager
def _folder(mount: Mount, parts: list[str], create: bool = False) -> Iterator[int]:
    """Descriptor of a folder below a mount, reached one name at a time so that no link can lead elsewhere."""
    descriptor = os.open(mount.source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with _no_links("/".join([mount.target, *parts])):
                below = _enter(descriptor, part, create)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(parent: int, name: str, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    os.mkdir(name, 0o755, dir_fd=parent)
    descriptor = os.open(name, _FOLDER, dir_fd=parent)
    os.fchown(descriptor, *ids())
    return descriptor


@contextmanager
def _no_links(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ValueError(f"{path} leads through a link or something that is not a folder") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise ValueError(f"{path} is not a regular file") from None
        raise


def _write(folder: int, name: str, content: bytes) -> None:
    temporary = f".{secrets.token_hex(8)}"
    with os.fdopen(os.open(temporary, _NEW, 0o644, dir_fd=folder), "wb") as file:
        os.fchown(file.fileno(), *ids())
        file.write(content)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
