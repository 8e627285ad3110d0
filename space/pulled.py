"""Runs of pulled results as run folders, put together when one is opened: the pages know only one layout."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from hf_datasets.archives import ArchiveError
from hf_datasets.records import RecordError, parse_record
from hf_datasets.results.layout import RECORDS, run_of_record
from hf_datasets.run_folders import RECORD
from space.snapshot import RunDetail

_MOST_TRACE_BYTES = 256 * 1024 * 1024
_DONE = ".complete"


class PulledRuns:
    """Opens a run of a pulled folder; what it puts together goes with it.

    ``fetch`` gives, for a run id, the folder where the files beside its record lie: details, pictures, trace, outputs.
    """

    def __init__(self, folder: Path, fetch: Callable[[str], Path]) -> None:
        self._fetch = fetch
        self._cache = tempfile.TemporaryDirectory(prefix="automedbench-space-")
        self._lock = threading.Lock()
        # A correction's name sorts after the record that it corrects, so that the newest one stays.
        found = sorted(folder.glob(f"{RECORDS}/[0-9]*/*.json"))
        names = {path: run_of_record(path.relative_to(folder).as_posix()) for path in found}
        self._records = {run_id: path for path, run_id in names.items() if run_id}

    def open(self, run_id: str) -> RunDetail | None:
        path = self._records.get(run_id)
        if path is None:
            return None
        try:
            record = parse_record(path.read_bytes(), str(path))
        except (OSError, RecordError):
            return None
        with self._lock:
            return RunDetail(record, self._run_folder(run_id, path))

    def _run_folder(self, run_id: str, record: Path) -> Path:
        target = Path(self._cache.name, run_id)
        if (target / _DONE).is_file():
            return target
        folder = self._fetch(run_id)
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(record, target / RECORD)
        for name in ("details", "previews"):
            source = folder / name / run_id
            if source.is_dir():
                shutil.copytree(source, target if name == "details" else target / name, dirs_exist_ok=True)
        _unpack_trace(folder / "traces" / f"{run_id}.jsonl.zst", target / "trace.jsonl")
        _unpack_outputs(folder / "outputs" / f"{run_id}.tar.zst", target / "submission")
        (target / _DONE).touch()
        return target


def _unpack_trace(source: Path, target: Path) -> None:
    """A trace that does not unpack is a run without one."""
    if not source.is_file():
        return
    import zstandard

    try:
        with source.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            content = reader.read(_MOST_TRACE_BYTES)
    except (OSError, zstandard.ZstdError):
        return
    target.write_bytes(content)


def _unpack_outputs(source: Path, target: Path) -> None:
    if not source.is_file():
        return
    from hf_datasets.outputs import unpack_outputs

    try:
        unpack_outputs(source, target)
    except (ArchiveError, OSError):
        shutil.rmtree(target, ignore_errors=True)
