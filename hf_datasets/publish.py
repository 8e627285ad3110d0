"""What of a run folder may be published: the record and its cases, and the files that its task allows."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from evaluator.report import TaskReport
from evaluator.untrusted import MEGABYTE, Refused, read_bytes
from hf_datasets.records import CaseRecord, RecordError, RunRecord, case_records, parse_record

RECORD, REPORT = "record.json", "report.json"
MAX_RECORD_BYTES, MAX_REPORT_BYTES = MEGABYTE, 64 * MEGABYTE


class Redactor(Protocol):
    """Takes secrets out of text before it leaves this machine."""

    def text(self, text: str) -> str: ...


@dataclass(frozen=True)
class PublishedFile:
    """One more file of a run, by its path in the results repository."""

    path_in_repo: str
    content: bytes | Path


@dataclass(frozen=True)
class Finding:
    """Why a run may not be published: where it was seen, and what, in words without the thing itself."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Publication:
    """All that is published of one run. With findings nothing of it is; the other runs go on.

    ``record_bytes`` are the bytes of ``record.json``; ``withheld`` says in words what stays here and why.
    """

    record: RunRecord
    record_bytes: bytes
    cases: tuple[CaseRecord, ...]
    files: tuple[PublishedFile, ...] = ()
    withheld: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def publication(folder: Path, redactor: Redactor) -> Publication:  # noqa: ARG001
    """What may be published of a finished run.

    Raises
    ------
    RecordError
        The record or the report cannot be read; one line that names the file.
    """
    record_bytes = _read(folder / RECORD, MAX_RECORD_BYTES)
    record = parse_record(record_bytes, str(folder / RECORD))
    return Publication(
        record=record,
        record_bytes=record_bytes,
        cases=read_cases(folder, record),
        withheld=("previews, submission and trace: only scores are published",),
    )


def read_cases(folder: Path, record: RunRecord) -> tuple[CaseRecord, ...]:
    """The cases of a run, from the report that its record names.

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
        first = error.errors()[0]
        raise RecordError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        return read_bytes(path, max_bytes)
    except Refused as refused:
        raise RecordError(f"{path}: {refused.message}") from None
