"""Run folders as the runner leaves them, read without trusting what lies in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from evaluator.report import TaskReport
from evaluator.untrusted import MEGABYTE, Refused, read_bytes
from hf_datasets.records import CaseRecord, RecordError, RunRecord, case_records, parse_record
from tasks.schema import first_problem

RECORD, REPORT = "record.json", "report.json"
MAX_RECORD_BYTES, MAX_REPORT_BYTES = MEGABYTE, 64 * MEGABYTE

_RUN_FILES = {RECORD, "cell.json", "unscored.json"}
_ATTEMPT = re.compile(r".*\.attempt[0-9]+")


def run_folders(root: Path) -> Iterator[Path]:
    """Folders of runs below ``root``, in the order of their names; what lies inside of a run is not looked at."""
    for folder, below, files in os.walk(root):
        if _RUN_FILES & set(files):
            below.clear()
            yield Path(folder)
        below[:] = sorted(name for name in below if not name.startswith(".") and not _ATTEMPT.fullmatch(name))


def finished(root: Path) -> Iterator[Path]:
    """The run folders below ``root`` that hold a sealed record."""
    return (folder for folder in run_folders(root) if (folder / RECORD).is_file())


def read_record(folder: Path) -> tuple[RunRecord, bytes]:
    """The record of a run folder, and its bytes.

    Raises
    ------
    RecordError
        It cannot be read, or breaks the schema; one line that names the file.
    """
    path = folder / RECORD
    content = _read(path, MAX_RECORD_BYTES)
    return parse_record(content, str(path)), content


def read_cases(folder: Path, record: RunRecord) -> tuple[CaseRecord, ...]:
    """The cases of a run, from the report that its record names; none for a run without a report.

    Raises
    ------
    RecordError
        The report cannot be read, or is another one.
    """
    if record.report_sha256 is None:
        return ()
    path = folder / REPORT
    content = _read(path, MAX_REPORT_BYTES)
    if sha256(content).hexdigest() != record.report_sha256:
        raise RecordError(f"{path}: is not the report that the record names (its SHA-256 is another)")
    try:
        return case_records(record, TaskReport.model_validate_json(content))
    except ValidationError as error:
        raise RecordError(f"{path}: {first_problem(error)}") from None


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        return read_bytes(path, max_bytes)
    except Refused as refused:
        raise RecordError(f"{path}: {refused.message}") from None
