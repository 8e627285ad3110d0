"""Recompute every number and digest of a pulled results folder, and name what differs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import fsum
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from evaluator import stages
from evaluator.report import TaskReport
from evaluator.rubric import load_rubric
from evaluator.trace import EndReason
from hf_datasets.arrow import CASES, DEFAULT_STATUS, RUNS, PublishedRun, cases_table, run_row
from hf_datasets.publish import MAX_TRACE_BYTES
from hf_datasets.records import CaseRecord, RecordError, RunRecord, RunStatus, case_records, load_record
from hf_datasets.results.corrections import Truth, newest
from hf_datasets.results.layout import CASES_PARTS, RECORDS, RUNS_PARTS, STATUS, run_of_record
from hf_datasets.results.signatures import record_files, unsigned
from hf_datasets.results.tables import read_parts, shortened
from tasks.schema import Track

_TOLERANCE = 1e-9
_MEANS = {Track.SEGMENTATION, Track.ENHANCEMENT, Track.SYNTHESIS, Track.VQA}
"""Tracks whose headline is the mean of their cases."""


@dataclass
class Verified:
    """What a look at a results folder found.

    ``differences`` has a line for each thing that does not follow from the records, ``of_run`` those of each run by its
    id; ``notes`` says what could not be checked and why.
    """

    runs: int = 0
    cases: int = 0
    reports: int = 0
    traces: int = 0
    signatures: int = 0
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    of_run: dict[str, list[str]] = field(default_factory=dict)

    def differs(self, run_id: str, lines: Iterable[str]) -> None:
        """Note what does not follow from the records of a run."""
        for line in lines:
            self.differences.append(line)
            self.of_run.setdefault(run_id, []).append(line)


def verify(folder: Path, allowed_signers: Path | None = None) -> Verified:
    """Hold the tables, totals and published files of a folder against its records.

    With ``allowed_signers`` (OpenSSH's file) every record must be signed by one of them.

    Raises
    ------
    NotADirectoryError
        It is no folder that `hf_datasets.results.pull` made.
    """
    if not (folder / RECORDS).is_dir():
        raise NotADirectoryError(f"{folder} holds no {RECORDS}/; expected a folder made by 'pull'")
    found = Verified()
    if allowed_signers:
        missing = unsigned(folder, allowed_signers)
        found.signatures = len(record_files(folder)) - len(missing)
        for name, why in missing.items():
            found.differs(run_of_record(name) or "", [f"{name}: {why}"])
    truths = _truths(folder, found)
    runs, cases = read_parts(folder / RUNS_PARTS, RUNS), read_parts(folder / CASES_PARTS, CASES)
    found.differences += [*runs.problems, *cases.problems]
    found.runs, found.cases = len(runs.table), len(cases.table)
    rows = _by_run(runs.table, found)
    cases_of = _grouped(cases.table)
    for run_id, records in truths.items():
        found.differs(run_id, _row_differences(folder, run_id, records, rows.pop(run_id, None)))
        for truth in records:
            found.differs(run_id, _total_differences(truth.record, found))
        current = newest(records)[-1]
        of_run = cases_of.pop((run_id, current.sha256), [])
        found.differs(run_id, _case_differences(current, of_run))
        found.differs(run_id, _file_differences(folder, current, of_run, found))
    for run_id in rows:
        found.differs(run_id, [f"{RUNS_PARTS}: {run_id} has a row and no record"])
    for (run_id, digest), left in cases_of.items():
        line = f"{CASES_PARTS}: {len(left)} cases of {run_id} belong to no current record ({digest[:8]})"
        found.differs(run_id, [line])
    found.notes = sorted(set(found.notes))
    return found


def _truths(folder: Path, found: Verified) -> dict[str, list[Truth]]:
    """The records of each run, in the order of their paths."""
    truths: dict[str, list[Truth]] = {}
    for path in sorted((folder / RECORDS).glob("*/*.json")):
        name = path.relative_to(folder).as_posix()
        run_id = run_of_record(name)
        if run_id is None:
            found.differences.append(f"{shortened(name)} is no name of a record")
            continue
        try:
            record = load_record(path)
        except RecordError as error:
            found.differs(run_id, [str(error).removeprefix(f"{folder}/")])
            continue
        if run_id != record.run_id:
            found.differs(run_id, [f"{name}: is the record of {record.run_id}"])
            continue
        truths.setdefault(record.run_id, []).append(Truth(record, sha256(path.read_bytes()).hexdigest()))
    return truths


def _by_run(table: pa.Table, found: Verified) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if rows.setdefault(row["run_id"], row) is not row:
            found.differs(row["run_id"], [f"{RUNS_PARTS}: {row['run_id']} has more than one row"])
    return rows


def _grouped(table: pa.Table) -> dict[tuple[str, str], list[dict[str, Any]]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        groups.setdefault((row["run_id"], row["record_sha256"] or ""), []).append(row)
    return groups


def _row_differences(
    folder: Path, run_id: str, records: list[Truth], row: dict[str, Any] | None
) -> Iterator[str]:
    """A run has one row, of the record that no other one supersedes, with its values."""
    if row is None:
        yield f"{RUNS_PARTS}: {run_id} has a record and no row"
        return
    last = newest(records)
    current = next((truth for truth in last if truth.sha256 == row["record_sha256"]), None)
    if current is None:
        yield f"{RUNS_PARTS}: {run_id} is the row of {str(row['record_sha256'])[:8]}, expected {last[-1].sha256[:8]}"
        return
    status = _status(folder, current)
    expected = run_row(PublishedRun(current.record, current.sha256, status))
    for name, value in expected.items():
        if row[name] != value:
            yield f"{RUNS_PARTS}: {run_id}: {name} is {row[name]!r:.80}, the record gives {value!r:.80}"


def _status(folder: Path, truth: Truth) -> str:
    """What the status file says of this very record."""
    path = folder / STATUS / f"{truth.record.run_id}.json"
    try:
        status = RunStatus.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return DEFAULT_STATUS
    return status.status if status.record_sha256 == truth.sha256 else DEFAULT_STATUS


def _total_differences(record: RunRecord, found: Verified) -> Iterator[str]:
    """Stages from items, totals from stages; a policy end is zero throughout."""
    if record.task_score is None or record.s4 is None or record.s5 is None:
        expected: dict[str, float | None] = {"agentic": None, "overall": None}
    elif record.end_reason is EndReason.POLICY:
        names = ("overall", "agentic", "task_score", "s1", "s2", "s3", "s4", "s5")
        expected = dict.fromkeys(names, 0.0)
    else:
        agentic = stages.agentic(record.s1, record.s2, record.s3, record.s4, record.s5)
        expected = {"agentic": agentic, "overall": stages.overall(agentic, record.task_score)}
        expected |= _stages_of_items(record, found)
    for name, value in expected.items():
        if not _same(getattr(record, name), value):
            yield f"{RECORDS}: {record.run_id}: {name} is {getattr(record, name)}, recomputed it is {value}"


def _stages_of_items(record: RunRecord, found: Verified) -> dict[str, float | None]:
    rubric = load_rubric(record.track)
    if not record.items or rubric.sha256 != record.rubric_sha256:
        if record.items:
            found.notes.append(
                "some runs were judged by another version of the rubric: S1 to S3 not recomputed"
            )
        return {}
    weights = {item.id: item.weight for item in rubric.items}
    means: dict[str, float | None] = {}
    for stage in ("S1", "S2", "S3"):
        applies = [item for item in record.items if item.stage == stage and item.applies]
        values = [weights.get(item.id, 1.0) * item.value for item in applies if item.value is not None]
        scored = applies and len(values) == len(applies)
        weight = fsum(weights.get(item.id, 1.0) for item in applies)
        means[stage.lower()] = min(1.0, fsum(values) / weight) if scored else None
    return means


def _case_differences(truth: Truth, cases: list[dict[str, Any]]) -> Iterator[str]:
    """Counts and, where the headline is a mean of cases, the task score follow from the rows of cases."""
    record = truth.record
    if record.report_sha256 is None:
        if cases:
            yield f"{CASES_PARTS}: {record.run_id} has {len(cases)} cases, and its record names no report"
        return
    scored = sum(case["status"] == "scored" for case in cases)
    expected: dict[str, float] = {"n_cases": len(cases), "n_scored": scored}
    if cases and record.end_reason is not EndReason.POLICY:
        expected["completion"] = scored / len(cases)
        if record.track in _MEANS:
            expected["task_score_ungated"] = min(1.0, fsum(case["score"] for case in cases) / len(cases))
    for name, value in expected.items():
        if not _same(getattr(record, name), value):
            yield f"{CASES_PARTS}: {record.run_id}: {name} is {getattr(record, name)}, its cases give {value}"
    if len({case["case_id"] for case in cases}) != len(cases):
        yield f"{CASES_PARTS}: {record.run_id} has a case twice"


def _file_differences(
    folder: Path, truth: Truth, cases: list[dict[str, Any]], found: Verified
) -> Iterator[str]:
    """Published files are the ones that the record names, where redaction left them as they were."""
    record = truth.record
    report = folder / "details" / record.run_id / "report.json"
    if report.is_file():
        content = report.read_bytes()
        if sha256(content).hexdigest() == record.report_sha256:
            found.reports += 1
            yield from _report_differences(truth, content, cases)
        else:
            yield f"details/{record.run_id}/report.json: is not the report that the record names"
    trace = folder / "traces" / f"{record.run_id}.jsonl.zst"
    if trace.is_file():
        digest = _unpacked_digest(trace)
        if digest is None:
            yield f"traces/{trace.name}: cannot be unpacked"
        elif digest == record.trace_sha256:
            found.traces += 1
        else:
            found.notes.append("some traces were redacted: their digests are those of the originals")


def _report_differences(truth: Truth, content: bytes, cases: list[dict[str, Any]]) -> Iterator[str]:
    record = truth.record
    try:
        report = TaskReport.model_validate_json(content)
    except ValidationError as error:
        yield f"details/{record.run_id}/report.json: {error.errors()[0]['msg']}"
        return
    if record.end_reason is not EndReason.POLICY:
        expected = {
            "s4": stages.s4(report), "s5": stages.s5(report), "task_score": report.task_score, "skill": report.skill
        }  # fmt: skip
        for name, value in expected.items():
            if not _same(getattr(record, name), value):
                yield f"{RECORDS}: {record.run_id}: {name} is {getattr(record, name)}, the report gives {value}"
    if json.dumps(dict(record.metrics), sort_keys=True) != json.dumps(report.aggregates, sort_keys=True):
        yield f"{RECORDS}: {record.run_id}: metrics are not the report's"
    rows = _rows(case_records(record, report), truth.sha256)
    if sorted(rows, key=_case_id) != sorted(cases, key=_case_id):
        yield f"{CASES_PARTS}: {record.run_id}: its rows are not the cases of its report"


def _rows(cases: tuple[CaseRecord, ...], digest: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cases_table([(case, digest) for case in cases]).to_pylist()
    return rows


def _case_id(row: dict[str, Any]) -> str:
    return str(row["case_id"])


def _unpacked_digest(path: Path) -> str | None:
    """SHA-256 of what a packed trace holds, read in pieces; None where it is damaged or larger than any of ours."""
    import zstandard

    digest, size = sha256(), 0
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
                if size > MAX_TRACE_BYTES:  # a few kilobytes can unpack to terabytes
                    return None
    except (zstandard.ZstdError, OSError):
        return None
    return digest.hexdigest()


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _TOLERANCE
