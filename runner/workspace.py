"""What changed in the agent's workspace during a call, seen from the host without opening or following
anything.

The workspace is a stranger's: folders are opened relative to their parent and never through a link, files
are only looked at with ``lstat``, and the walk is bounded. Nothing here reads a file, so an access time
after the last change means that the agent read it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evaluator.judge.plan import PLAN_PICTURE, PLAN_TEXT
from evaluator.judge.weights import is_weight_like
from evaluator.trace import FileChange, Files
from runner.trace import plain
from tasks.schema import OUTPUT_ROOT

MAX_ENTRIES = 50_000
MAX_DEPTH = 32
LISTED_CHANGES = 40
LISTED_CASES = 20
LISTED_PATH = 240
HOME = "home"
"""Caches and installed packages; not the agent's work. Only files that could be weights are looked for."""
MAX_HOME_ENTRIES = 20_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class _Look:
    """The files of one walk, by path in the workspace. ``whole`` is False when the bound ended it."""

    most: int
    files: dict[str, os.stat_result] = field(default_factory=dict)
    entries: int = 0
    whole: bool = True


class WorkspaceWatch:
    """Compares the workspace before and after each call.

    Parameters
    ----------
    root : Path
        The workspace on the host.
    case_ids : sequence of str
        The manifest's cases.
    filenames : sequence of str
        Files that make a case complete, in ``outputs/<case>/``.
    max_entries : int
        Bound of one walk; beyond it deletions are not reported and the rest is not seen.
    """

    def __init__(
        self, root: Path, case_ids: Sequence[str], filenames: Sequence[str], max_entries: int = MAX_ENTRIES
    ) -> None:
        self._root = root
        self._max_entries = max_entries
        self._expected = {case: [f"{OUTPUT_ROOT}/{case}/{name}" for name in filenames] for case in case_ids}
        self._read: set[str] = set()
        self._weights_read: set[str] = set()
        self._last = self._walk()
        self._complete = self._complete_cases(self._last)

    def look(self, turn: int, call: str) -> Files:
        """The event for what changed since the last look."""
        now = self._walk()
        complete = self._complete_cases(now)
        changes = sorted(self._changes(now), key=_importance)
        new = sorted(complete.keys() - self._complete.keys(), key=lambda case: (complete[case], case))
        read, weights = self._newly_read(now), self._newly_read_weights(now)
        self._last, self._complete = now, complete
        return Files(
            turn=turn,
            call=call,
            changes=tuple(changes[:LISTED_CHANGES]),
            more=max(0, len(changes) - LISTED_CHANGES),
            new_cases=tuple(new[:LISTED_CASES]),
            new_cases_total=len(new),
            read_cases=tuple(read[:LISTED_CASES]),
            read_weights=tuple(plain(path)[:LISTED_PATH] for path in weights[:LISTED_CASES]),
            complete_cases=len(complete),
        )

    def _changes(self, now: _Look) -> Iterator[FileChange]:
        before = self._last.files
        for path, seen in now.files.items():
            old = before.get(path)
            if old is None:
                yield _change(path, seen, "created")
            elif _content(old) != _content(seen):
                yield _change(path, seen, "changed")
        if now.whole:
            for path in before.keys() - now.files.keys():
                yield _change(path, before[path], "deleted")

    def _complete_cases(self, look: _Look) -> dict[str, int]:
        """Complete cases and when the last of their files was modified."""
        complete = {}
        for case, paths in self._expected.items():
            found = [look.files.get(path) for path in paths]
            times = [seen.st_mtime_ns for seen in found if seen is not None and stat.S_ISREG(seen.st_mode)]
            if len(times) == len(paths):
                complete[case] = max(times)
        return complete

    def _newly_read(self, now: _Look) -> list[str]:
        read = []
        for case, paths in self._expected.items():
            if case in self._read:
                continue
            if any((seen := now.files.get(path)) is not None and _is_read(seen) for path in paths):
                read.append(case)
        self._read.update(read)
        return read

    def _newly_read_weights(self, now: _Look) -> list[str]:
        read = [
            path
            for path, seen in now.files.items()
            if path not in self._weights_read
            and stat.S_ISREG(seen.st_mode)
            and is_weight_like(path, seen.st_size)
            and _is_read(seen)
        ]
        self._weights_read.update(read)
        return sorted(read)

    def _walk(self) -> _Look:
        look = _Look(most=self._max_entries)
        with _opened(str(self._root)) as root:
            if root is not None:
                self._walk_folder(root, "", look, depth=0)
                self._walk_home(root, look)
        return look

    def _walk_home(self, root: int, look: _Look) -> None:
        """Add the weights below home, under a bound of its own: caches must not hide the agent's work."""
        home = _Look(most=MAX_HOME_ENTRIES)
        with _opened(HOME, root) as folder:
            if folder is not None:
                self._walk_folder(folder, f"{HOME}/", home, depth=1)
        look.files |= {path: seen for path, seen in home.files.items() if is_weight_like(path, seen.st_size)}
        look.whole = look.whole and home.whole

    def _walk_folder(self, folder: int, prefix: str, look: _Look, depth: int) -> None:
        subfolders = []
        with os.scandir(folder) as entries:
            for entry in entries:
                look.entries += 1
                if look.entries > look.most:
                    look.whole = False
                    return
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone since the listing
                if stat.S_ISDIR(info.st_mode):
                    subfolders.append(entry.name)
                else:
                    look.files[prefix + entry.name] = info
        # Outputs first: they are what must not fall behind the bound.
        for name in sorted(subfolders, key=lambda name: (name != OUTPUT_ROOT, name)):
            if depth == MAX_DEPTH or (not prefix and name == HOME):
                continue
            with _opened(name, folder) as subfolder:
                if subfolder is not None:
                    self._walk_folder(subfolder, f"{prefix}{name}/", look, depth + 1)
            if not look.whole:
                return


@contextmanager
def _opened(path: str, parent: int | None = None) -> Iterator[int | None]:
    """A folder's descriptor; None when it is gone, became a link or cannot be entered."""
    try:
        descriptor = os.open(path, _FOLDER, dir_fd=parent)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _importance(change: FileChange) -> tuple[bool, bool, str]:
    """What must not fall behind the bound comes first: the plan, then weights."""
    is_plan = change.path in (PLAN_TEXT, PLAN_PICTURE)
    return (not is_plan, not is_weight_like(change.path, change.size), change.path)


def _content(seen: os.stat_result) -> tuple[int, int, int]:
    """What is different when a file was written or replaced."""
    return (seen.st_size, seen.st_ino, seen.st_mtime_ns)


def _is_read(seen: os.stat_result) -> bool:
    """Read since its last change. Needs a mount with ``relatime``; with ``noatime`` it is never true."""
    return seen.st_atime_ns > max(seen.st_mtime_ns, seen.st_ctime_ns)


def _change(path: str, seen: os.stat_result, change: Literal["created", "changed", "deleted"]) -> FileChange:
    return FileChange(path=plain(path)[:LISTED_PATH], size=seen.st_size, change=change)
