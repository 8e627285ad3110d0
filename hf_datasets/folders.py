"""Folders that appear whole or not at all, with the same times and modes wherever they were made."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EPOCH = 315_532_800
"""1980-01-01T00:00:00Z, the time of every staged file (the earliest a ZIP archive can hold)."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; the kernel lets go of it when the process dies."""
    make_parents(path)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def built_beside(target: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yield an empty folder beside ``target`` that takes its place when the block ends without an error.

    The caller holds the lock of ``target``: what an earlier, killed process left half-made is removed. Without
    ``flush`` nothing waits for the disk, for what can be made again, such as a phantom.
    """
    make_parents(target)
    partial = target.parent / f".{target.name}.partial"
    remove(partial)
    partial.mkdir()
    try:
        yield partial
        normalise(partial, flush=flush)
        _swap_in(partial, target)
    except BaseException:
        remove(partial)
        raise


def make_parents(path: Path) -> None:
    """Create the missing parents of ``path``, enterable by other users whatever the umask is."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        folder.chmod(0o755)


def normalise(folder: Path, *, flush: bool = True) -> None:
    """Give every file mode 644, every folder 755, all of them one time, and flush them to disk."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(root, name)
            path.chmod(0o644)
            os.utime(path, (EPOCH, EPOCH))
            if flush:
                _flush(path)
        Path(root).chmod(0o755)
        os.utime(root, (EPOCH, EPOCH))
        if flush:
            _flush(Path(root))


def _swap_in(partial: Path, target: Path) -> None:
    replaced = target.parent / f".{target.name}.replaced"
    remove(replaced)
    if target.exists():
        target.rename(replaced)
    partial.rename(target)
    _flush(target.parent)
    remove(replaced)


def remove(folder: Path) -> None:
    """Remove a folder and what is in it; nothing happens where there is none."""
    if folder.exists():
        shutil.rmtree(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
