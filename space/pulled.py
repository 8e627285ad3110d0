"""Runs of pulled results as run folders, put together when one is opened: the pages know only one layout."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from hf_datasets.archives import ArchiveError
from hf_datasets.publish import CELL, JUDGEMENT
from hf_datasets.records import RecordError, parse_record
from hf_datasets.results.layout import RECORDS, run_of_record
from hf_datasets.run_folders import RECORD, REPORT
from space.snapshot import RunDetail

_MOST_TRACE_BYTES = 256 * 1024 * 1024
_MOST_OUTPUT_BYTES = 1024 * 1024 * 1024
_DONE = ".complete"


class PulledRuns:
    """Opens a run of a pulled folder; what it puts together goes with it.

    ``digests`` says which of a run's records counts: the one that its row is of. ``fetch`` gives, for a run id, the
    folder where the files beside its record lie: details, pictures, trace, outputs.
    """

    def __init__(self, folder: Path, digests: Mapping[str, str], fetch: Callable[[str], Path]) -> None:
        self._fetch = fetch
        self._cache = tempfile.TemporaryDirectory(prefix="automedbench-space-")
        self._locks: dict[str, threading.Lock] = {}
        self._digests = digests
        self._records: dict[str, list[Path]] = {}
        for path in folder.glob(f"{RECORDS}/[0-9]*/*.json"):
            if run_id := run_of_record(path.relative_to(folder).as_posix()):
                self._records.setdefault(run_id, []).append(path)

    def open(self, run_id: str) -> RunDetail | None:
        try:
            contents = [path.read_bytes() for path in self._records.get(run_id, ())]
            wanted = self._digests.get(run_id)
            content = next(one for one in contents if sha256(one).hexdigest() == wanted)
            record = parse_record(content, run_id)
        except (OSError, StopIteration, RecordError):
            return None
        # Fetching may take long: who opens another run does not wait for it.
        with self._locks.setdefault(run_id, threading.Lock()):
            return RunDetail(record, self._run_folder(run_id, content), self)

    def _run_folder(self, run_id: str, record: bytes) -> Path:
        target = Path(self._cache.name, run_id)
        if (target / _DONE).is_file():
            return target
        folder = self._fetch(run_id)
        target.mkdir(parents=True, exist_ok=True)
        (target / RECORD).write_bytes(record)
        for name in (CELL, REPORT, JUDGEMENT):
            if (source := folder / "details" / run_id / name).is_file():
                shutil.copyfile(source, target / name)
        if (pictures := folder / "previews" / run_id).is_dir():
            shutil.copytree(pictures, target / "previews", dirs_exist_ok=True)
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
        unpack_outputs(source, target, most_bytes=_MOST_OUTPUT_BYTES)
    except (ArchiveError, OSError):
        shutil.rmtree(target, ignore_errors=True)
