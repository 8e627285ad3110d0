"""Where results come from: a folder of runs, a folder that was pulled, or a results dataset on the Hub."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from hf_datasets.records import RecordError
from hf_datasets.results.layout import RUNS_PARTS, own_paths
from hf_datasets.results.read import read_results
from hf_datasets.run_folders import RECORD, finished, read_record
from space.boards import with_boards
from space.frames import frame_of, row_of, shaped
from space.snapshot import RunDetail, Snapshot

if TYPE_CHECKING:
    from hf_datasets.hub import Hub

DEMO = Path(__file__).parent / "demo.zip"
"""Real runs of the scripted agent on phantoms (benchmarks/demo_archive.py)."""
_REPO = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


class SourceError(Exception):
    """The results cannot be read; one line that says what was expected and what was found."""


class Source(Protocol):
    """Anything that can be read into a snapshot, again and again."""

    def read(self) -> Snapshot:
        """Raises ``SourceError`` where there is nothing to read; a single bad record is a line in ``problems``."""
        ...


def source_of(name: str | None) -> Source:
    """What ``--results`` names: a folder, or ``owner/name`` of a dataset with ``@revision`` where one is wanted.

    Without a name, ``runs`` where a finished run lies in it, else the bundled demonstration.

    Raises
    ------
    SourceError
        It is neither.
    """
    if name is None:
        runs = Path("runs")
        return FolderSource(runs) if any(True for _ in finished(runs)) else DemoSource()
    folder = Path(name)
    if folder.is_dir():
        return PulledSource(folder) if (folder / RUNS_PARTS).is_dir() else FolderSource(folder)
    if (asked := _REPO.fullmatch(name)) and not folder.exists():
        from hf_datasets.hub import Hub

        return HubSource(Hub(asked["repo"]), asked["revision"])
    raise SourceError(
        f"--results {name}: expected a folder of runs, or OWNER/NAME[@SHA] of a dataset; found neither"
    )


@dataclass(frozen=True)
class _Read:
    """What one file held when it had this stamp."""

    stamp: tuple[int, int]
    row: tuple[Any, ...] | None = None
    problem: str = ""


class FolderSource:
    """All finished run folders below a folder. A record is parsed once for each of its states."""

    def __init__(self, folder: Path, *, is_demo: bool = False) -> None:
        self.folder = folder
        self._is_demo = is_demo
        self._files: dict[Path, _Read] = {}
        self._last: Snapshot | None = None
        self._known: dict[Any, Any] = {}

    def read(self) -> Snapshot:
        if not self.folder.is_dir():
            raise SourceError(f"no results: {self.folder} is not a folder")
        began = datetime.now(UTC)
        files = {folder: self._run(folder) for folder in finished(self.folder)}
        if self._last and files == self._files:
            return replace(self._last, loaded_at=began)
        self._files = files
        self._last = self._snapshot(began)
        return self._last

    def _snapshot(self, began: datetime) -> Snapshot:
        problems = [read.problem for read in self._files.values() if read.row is None]
        folders = [folder for folder, read in self._files.items() if read.row is not None]
        frame = frame_of([read.row for read in self._files.values() if read.row is not None])
        frame, repeated = _once_a_run(frame.assign(folder=folders))
        places = dict(zip(frame["run_id"], frame.pop("folder"), strict=True))

        def open_run(run_id: str) -> RunDetail | None:
            return self._opened(places.get(run_id))

        name = "the bundled demonstration" if self._is_demo else str(self.folder)
        return _snapshot(name, frame, (*problems, *repeated), open_run, began, is_demo=self._is_demo)

    def _opened(self, folder: Path | None) -> RunDetail | None:
        """A method, so that a snapshot keeps its source, and with it a folder that was unpacked for it."""
        if folder is None:
            return None
        try:
            record, _ = read_record(folder)
        except RecordError:
            return None
        return RunDetail(record, folder)

    def _run(self, folder: Path) -> _Read:
        try:
            status = (folder / RECORD).stat()
        except OSError as error:
            return _Read((0, 0), problem=f"{folder / RECORD}: {error.strerror}")
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._files.get(folder)
        if known and known.stamp == stamp:
            return known
        try:
            record, content = read_record(folder)
        except RecordError as error:
            return _Read(stamp, problem=str(error))
        row = row_of(record, sha256(content).hexdigest())
        # Thousands of runs name the same tasks, digests and models: each text is kept once.
        return _Read(
            stamp,
            tuple(self._known.setdefault(value, value) if isinstance(value, str) else value for value in row),
        )


class DemoSource(FolderSource):
    """The bundled demonstration, unpacked for as long as the process lives."""

    def __init__(self) -> None:
        self._unpacked = tempfile.TemporaryDirectory(prefix="automedbench-demo-")
        with zipfile.ZipFile(DEMO) as archive:
            archive.extractall(self._unpacked.name)
        super().__init__(Path(self._unpacked.name), is_demo=True)


class PulledSource:
    """A folder as ``hf_datasets.results.pull`` lays it out."""

    def __init__(
        self, folder: Path, name: str | None = None, fetch: Callable[[str], Path] | None = None
    ) -> None:
        """``fetch``: see ``PulledRuns``; by default the files beside the records were pulled with them."""
        self.folder = folder
        self._name = name or str(folder)
        self._fetch = fetch or (lambda _: folder)

    def read(self) -> Snapshot:
        from space.pulled import PulledRuns

        began = datetime.now(UTC)
        try:
            results = read_results(self.folder)
        except OSError as error:
            raise SourceError(f"no results: {error}") from None
        frame = results.runs.drop(columns="folder")
        digests = dict(zip(frame["run_id"], frame["record_sha256"], strict=True))
        runs = PulledRuns(self.folder, digests, self._fetch)
        return _snapshot(self._name, frame, results.problems, runs.open, began)


class HubSource:
    """A results dataset on the Hub; a new commit is pulled when the results are read again."""

    def __init__(self, hub: Hub, revision: str | None = None) -> None:
        self._hub, self._revision = hub, revision
        self._folder = tempfile.TemporaryDirectory(prefix="automedbench-results-")
        self._good = 0
        """Number of the pull that is shown; one that failed is tried again in the same place."""
        self._last: tuple[str, Snapshot] | None = None

    def read(self) -> Snapshot:
        from hf_datasets.hub import HubError

        try:
            if self._last and self._hub.head((), self._revision).sha == self._last[0]:
                return replace(self._last[1], loaded_at=datetime.now(UTC))
            sha, data = self._pulled()
        except (HubError, OSError) as error:
            raise SourceError(f"{self._hub.repo}: {error}") from None
        self._last = sha, data
        return data

    def _pulled(self) -> tuple[str, Snapshot]:
        """Pull records and tables into a folder of their own, for what was shown until now is opened from its; let the
        one before go. Traces and pictures are many: those of a run are fetched when it is opened.
        """
        from hf_datasets.hub import HubError
        from hf_datasets.results.pull import pull

        shutil.rmtree(self._place(self._good - 1), ignore_errors=True)
        pulled = pull(self._hub, self._place(self._good + 1), revision=self._revision, files=False)

        def fetch(run_id: str) -> Path:
            """The run's own files; without a network, those that were fetched before."""
            try:
                return self._hub.snapshot([f"{start}*" for start in own_paths(run_id)], pulled.sha)
            except HubError:
                return pulled.folder

        data = PulledSource(pulled.folder, f"{self._hub.repo}@{pulled.sha[:12]}", fetch).read()
        self._good += 1
        return pulled.sha, replace(data, problems=(*pulled.problems, *data.problems))

    def _place(self, number: int) -> Path:
        return Path(self._folder.name, f"pull-{number}")


def _snapshot(
    source: str,
    frame: pd.DataFrame,
    problems: tuple[str, ...],
    open_run: Callable[[str], RunDetail | None],
    began: datetime,
    *,
    is_demo: bool = False,
) -> Snapshot:
    runs, items = shaped(frame)
    return Snapshot(source, with_boards(runs), items, tuple(problems), open_run, began, is_demo=is_demo)


def _once_a_run(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A run of which several copies lie there counts once; a record that another one corrects does not count."""
    frame = frame[~frame["record_sha256"].isin(set(frame["supersedes"].dropna()))]
    again = frame.duplicated("run_id")
    problems = [
        f"{folder}: {run_id} is there already; this copy is not counted"
        for folder, run_id in zip(frame.loc[again, "folder"], frame.loc[again, "run_id"], strict=True)
    ]
    return frame[~again].reset_index(drop=True), problems
