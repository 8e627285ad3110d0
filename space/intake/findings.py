"""What there is to say about a record before it is sent, each finding by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from typing import Literal

from pydantic import ValidationError

from evaluator.stages import agentic, overall
from hf_datasets.records import RunRecord
from space.intake.upload import MAX_RECORD, Found, Upload
from tasks.registry import TaskError, load_task, task_digest
from tasks.schema import Redistribution, Release, Task

Weight = Literal["error", "warning", "note"]
MAX_FIELDS = 20
TOLERANCE = 1e-6

_DIGEST_FIELDS = {
    "cell.json": "cell_sha256",
    "report.json": "report_sha256",
    "judgement.json": "judgement_sha256",
    "trace.jsonl": "trace_sha256",
    "submission/manifest.json": "submission_sha256",
}


@dataclass(frozen=True)
class Finding:
    """``name`` is stable and snake_case; an ``error`` keeps the record from being accepted."""

    weight: Weight
    name: str
    text: str


@dataclass(frozen=True)
class Checked:
    """A run of the upload; ``record`` None: its record breaks the schema."""

    place: str
    record: RunRecord | None
    findings: tuple[Finding, ...]

    @property
    def is_good(self) -> bool:
        return not any(finding.weight == "error" for finding in self.findings)


def check_upload(upload: Upload, known: frozenset[str] = frozenset()) -> tuple[Checked, ...]:
    """Every run of an upload; ``known``: ids of the runs that the results hold already."""
    seen: set[str] = set()
    checked = []
    for found in upload.runs:
        one = check_run(found, known)
        if one.record is not None and one.record.run_id in seen:
            twice = Finding(
                "error", "twice", f"the run {one.record.run_id} stands twice in the upload; send one of them"
            )
            one = Checked(one.place, one.record, (*one.findings, twice))
        if one.record is not None:
            seen.add(one.record.run_id)
        checked.append(one)
    return tuple(checked)


def check_run(found: Found, known: frozenset[str] = frozenset()) -> Checked:
    """One run: its record against the schema and against itself, its files against the record's digests."""
    content = found.record or b""
    if len(content) > MAX_RECORD:
        return Checked(found.place, None, (Finding("error", "too_large", "record.json has more than 1 MB"),))
    try:
        record = RunRecord.model_validate_json(content)
    except ValidationError as error:
        return Checked(found.place, None, tuple(_broken(error)))
    return Checked(found.place, record, tuple(_findings(record, found, known)))


def _broken(error: ValidationError) -> Iterator[Finding]:
    """Every field that breaks the schema, by its name."""
    faults = error.errors(include_input=False, include_url=False)
    for fault in faults[:MAX_FIELDS]:
        where = ".".join(map(str, fault["loc"])) or "record"
        name = "schema_version" if where == "schema_version" else "schema"
        hint = "; this Space knows version 1" if name == "schema_version" else ""
        yield Finding("error", name, f"{where[:200]}: {fault['msg'][:300]}{hint}")
    if len(faults) > MAX_FIELDS:
        yield Finding("error", "schema", f"and {len(faults) - MAX_FIELDS} more fields")


def _findings(record: RunRecord, found: Found, known: frozenset[str]) -> Iterator[Finding]:
    yield from _totals(record)
    yield from _counts(record)
    yield from _task(record)
    yield from _digests(record, found)
    if record.run_id in known:
        yield Finding("warning", "known", "these results hold a run of this id already")
    if not record.end_reason.is_agents:
        yield Finding("warning", "not_counted", f"ended with {record.end_reason.value}: run the cell again")
    if record.release is Release.PHANTOM:
        yield Finding("note", "phantom", "made on phantoms: good for a try, no result of the benchmark")
    if record.judge is None:
        yield Finding("note", "unjudged", "no judge has scored it: AGENTIC and OVERALL stay empty")
    if record.flags:
        yield Finding("note", "flags", f"signs of contamination: {', '.join(record.flags)[:300]}")


def _totals(record: RunRecord) -> Iterator[Finding]:
    if record.s4 is None or record.s5 is None:
        return
    how = agentic(record.s1, record.s2, record.s3, record.s4, record.s5)
    if not _same(how, record.agentic):
        yield Finding("error", "agentic", f"AGENTIC is {record.agentic}, the weighted stages give {how}")
    total = overall(record.agentic, record.task_score)
    if not _same(total, record.overall):
        yield Finding(
            "error", "overall", f"OVERALL is {record.overall}, half AGENTIC and half TASK give {total}"
        )


def _same(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return isclose(ours, theirs, abs_tol=TOLERANCE)


def _counts(record: RunRecord) -> Iterator[Finding]:
    if record.n_scored > record.n_cases:
        yield Finding("error", "counts", f"{record.n_scored} cases scored of {record.n_cases}")
    elif record.n_cases and record.completion is not None:
        share = record.n_scored / record.n_cases
        if not _same(share, record.completion):
            yield Finding(
                "error", "completion", f"completion is {record.completion:g}, the counts give {share:g}"
            )
    if record.finished_at < record.started_at:
        yield Finding("error", "times", "the run finished before it started")


def _task(record: RunRecord) -> Iterator[Finding]:
    try:
        task = load_task(record.task)
    except TaskError:
        yield Finding("error", "unknown_task", f"this version has no task {record.task}")
        return
    if record.track != task.track:
        yield Finding("error", "track", f"track is {record.track.value}, the task's is {task.track.value}")
    if record.metric != task.metric.headline:
        yield Finding(
            "error", "metric", f"metric is {record.metric}, the task's headline is {task.metric.headline}"
        )
    if record.task_sha256 != task_digest(task.id):
        text = "made with another version of the task: it will stand on a board of its own"
        yield Finding("warning", "task_version", text)
    yield from _terms(record, task)


def _terms(record: RunRecord, task: Task) -> Iterator[Finding]:
    if any(getattr(record.limits, name) != value for name, value in task.limits.model_dump().items()):
        yield Finding(
            "warning", "limits", "the limits are not the task's own: it will stand on a board of its own"
        )
    if record.release is not Release.PHANTOM and task.source.redistribution is not Redistribution.ALLOWED:
        terms = task.source.redistribution.value
        text = f"redistribution is {terms}: traces and pictures of this run are left out when it is published"
        yield Finding("note", "terms", text)


def _digests(record: RunRecord, found: Found) -> Iterator[Finding]:
    for name, digest in found.digests.items():
        said = getattr(record, _DIGEST_FIELDS[name])
        if said is not None and said != digest:
            yield Finding(
                "error", "digest", f"{name} is not the file that the record names (its SHA-256 is another)"
            )
    absent = sorted(set(_DIGEST_FIELDS) - set(found.digests))
    if absent and len(absent) < len(_DIGEST_FIELDS):
        yield Finding("note", "absent", f"not in the upload: {', '.join(absent)}")
