"""Where results come from: a folder of runs, or a results dataset on the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hf_datasets.records import RecordError, RunRecord, load_record
from space.boards import with_boards
from space.frames import item_frame, items_of, row_of, run_frame
from space.snapshot import RunDetail, Snapshot


class SourceError(Exception):
    """The results cannot be read; one line that says what was expected and what was found."""


class Source(Protocol):
    """Anything that can be read into a snapshot, again and again."""

    def read(self) -> Snapshot:
        """Raises ``SourceError`` where there is nothing to read; a single bad record is a line in ``problems``."""
        ...


@dataclass(frozen=True)
class _Read:
    """What one file held when it had this stamp."""

    stamp: tuple[int, int]
    row: dict[str, Any] | None = None
    items: tuple[tuple[str, str, str, float | None], ...] = ()
    problem: str = ""


class FolderSource:
    """All ``record.json`` below a folder. A file is parsed once for each of its states."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, _Read] = {}

    def read(self) -> Snapshot:
        if not self.folder.is_dir():
            raise SourceError(f"no results: {self.folder} is not a folder")
        self._files = {path: self._file(path) for path in _records(self.folder)}
        paths: dict[str, Path] = {}
        rows: list[dict[str, Any]] = []
        items: list[tuple[str, str, str, float | None]] = []
        problems: list[str] = []
        for path, read in self._files.items():
            if read.row is None:
                problems.append(read.problem)
            elif (run_id := read.row["run_id"]) in paths:
                problems.append(f"{path}: {run_id} is there already; this copy is not counted")
            else:
                paths[run_id] = path
                rows.append(read.row)
                items.extend(read.items)
        return Snapshot(
            source=str(self.folder),
            runs=with_boards(run_frame(rows)),
            items=item_frame(items),
            problems=tuple(problems),
            open_run=lambda run_id: _opened(paths.get(run_id)),
        )

    def _file(self, path: Path) -> _Read:
        try:
            status = path.stat()
        except OSError as error:
            return _Read((0, 0), problem=f"{path}: {error.strerror}")
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._files.get(path)
        return known if known and known.stamp == stamp else _parsed(path, stamp)


def _records(folder: Path) -> Iterator[Path]:
    """Every record below a folder, sorted; earlier attempts that were set aside have none that counts."""
    return iter(sorted(folder.glob("**/record.json")))


def _parsed(path: Path, stamp: tuple[int, int]) -> _Read:
    try:
        record = load_record(path)
    except RecordError as error:
        return _Read(stamp, problem=str(error))
    return _Read(stamp, row_of(record), tuple(items_of(record)))


def _opened(path: Path | None) -> RunDetail | None:
    if path is None:
        return None
    record: RunRecord
    try:
        record = load_record(path)
    except RecordError:
        return None
    return RunDetail(record, path.parent)
