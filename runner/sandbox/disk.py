"""Watch how much a sandbox has written, from the host: no file system here offers a quota for a folder."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 200_000
"""Entries (files, folders, links) a sandbox may create below its writable mounts."""

FIRST_LOOK = 0.25
LOOK_SHARE = 20
"""A walk that took t seconds is repeated after LOOK_SHARE * t at the earliest, at most once a second."""


@dataclass(frozen=True)
class Usage:
    """Bytes in allocated blocks (a sparse file counts what it really holds) and number of entries."""

    size: int = 0
    entries: int = 0

    def exceeds(self, other: Usage) -> bool:
        return self.size > other.size or self.entries > other.entries


class DiskMeter:
    """The use of some folders, and the cap no command may grow beyond."""

    def __init__(self, folders: Iterable[Path], disk_mb: int) -> None:
        self._folders = tuple(folders)
        self._cap = Usage(disk_mb * 1024 * 1024, MAX_FILES)
        self._last = Usage()
        self._next_look = 0.0

    @contextmanager
    def watching(self) -> Iterator[Watch]:
        """Watch in the background while a command runs, and look once more after a short one."""
        watch = Watch(self, self._allowance())
        if not self._folders:
            yield watch
            return
        thread = threading.Thread(target=watch.run, name="disk-watch", daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            watch.ended.set()
            thread.join()
            if time.monotonic() >= self._next_look:
                watch.look()

    def measure(self, ended: threading.Event | None = None) -> Usage:
        """Walk the folders, without following links and no further than the cap on entries."""
        began = time.monotonic()
        self._last = _walk(self._folders, self._cap.entries, ended)
        took = time.monotonic() - began
        self._next_look = began + max(1.0, LOOK_SHARE * took)
        return self._last

    def _allowance(self) -> Usage:
        """A sandbox that is over its cap may still run commands that do not grow it, to clean up."""
        return Usage(max(self._cap.size, self._last.size), max(self._cap.entries, self._last.entries))

    def seconds_to_next_look(self) -> float:
        return self._next_look - time.monotonic()


class Watch:
    """One command's watch; ``full`` turns True when the command grew the folders beyond the cap."""

    def __init__(self, meter: DiskMeter, allowance: Usage) -> None:
        self.full = False
        self.ended = threading.Event()
        self._meter = meter
        self._allowance = allowance

    def run(self) -> None:
        pause = FIRST_LOOK
        while not self.full and not self.ended.wait(pause):
            self.look(self.ended)
            pause = max(FIRST_LOOK, self._meter.seconds_to_next_look())

    def look(self, ended: threading.Event | None = None) -> None:
        self.full = self.full or self._meter.measure(ended).exceeds(self._allowance)


def _walk(folders: Iterable[Path], max_entries: int, ended: threading.Event | None) -> Usage:
    size = entries = 0
    linked: set[tuple[int, int]] = set()
    stack = [str(folder) for folder in folders]
    while stack and entries <= max_entries and not (ended and ended.is_set()):
        try:
            with os.scandir(stack.pop()) as listing:
                for entry in listing:
                    entries += 1
                    size += _own_bytes(entry, linked)
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    if entries > max_entries:
                        break
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # nested so deeply that it cannot be counted: over the cap
                return Usage(size, max_entries + 1)
    return Usage(size, entries)


def _own_bytes(entry: os.DirEntry[str], linked: set[tuple[int, int]]) -> int:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # deleted meanwhile
        return 0
    if status.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
        identity = (status.st_dev, status.st_ino)
        if identity in linked:
            return 0
        linked.add(identity)
    return status.st_blocks * 512
