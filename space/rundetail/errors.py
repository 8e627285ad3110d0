"""Error codes with the reasons and events they rest on, found anew from trace and report as the run's sealing did."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from evaluator.errors import detect_errors
from evaluator.fired import TITLES, FiredCode
from evaluator.judge.material import Assignment, material_of
from evaluator.report import TaskReport
from evaluator.trace import TraceError, read_trace
from hf_datasets.records import RunRecord
from space.markup import chip, el, join, note, size, table
from space.palette import PALETTE
from space.rundetail.items import event_links
from space.rundetail.overview import code_title
from space.rundetail.parts import judgement_of, report_of, task_of, why_missing
from space.snapshot import RunDetail

MAX_TRACE = 64 << 20
"""Bytes of a trace that is read as a whole to find the evidence."""


class NoEvidence(Exception):
    """The codes stand in the record, but what they rest on cannot be shown; one sentence."""


def errors(run: RunDetail) -> Markup:
    """Codes of the record; where trace and report are at hand, why they fired."""
    record = run.record
    if not record.error_codes:
        return note("No error code fired. Codes are diagnostic and never scored.")
    try:
        fired = _fired(run)
    except NoEvidence as why:
        return join([note(str(why), "warning"), _names(record)])
    colours = dict(PALETTE.codes)
    rows = [
        [
            el("span", chip(code.name, "amb-code"), style=f"--code:{colours[code.code]}"),
            TITLES[code.code],
            code.stage,
            code.reason,
            event_links(run.run_id, code.events),
            code.found_by,
        ]
        for code in fired
    ]
    heads = ("code", "kind", "stage", "because", "evidence", "found by")
    return table(heads, rows, caption="Error codes and what they rest on", class_="amb-wide")


def _names(record: RunRecord) -> Markup:
    rows = [[chip(code, "amb-code"), code_title(code)] for code in record.error_codes]
    return table(("code", "kind"), rows, caption="Error codes of the record")


def _fired(run: RunDetail) -> tuple[FiredCode, ...]:
    report, judged, trace = report_of(run), judgement_of(run), run.file("trace.jsonl")
    if report.value is None:
        raise NoEvidence(report.missing)
    if trace is None:
        raise NoEvidence(why_missing(run, "uncompressed trace"))
    info = trace.stat()
    if info.st_size > MAX_TRACE:
        raise NoEvidence(
            f"The trace has {size(info.st_size)}; evidence is looked up in at most {size(MAX_TRACE)}."
        )
    found = _detected(run.record, trace, report.value)
    return (*found, *(judged.value.tags if judged.value else ()))


def _detected(record: RunRecord, trace: Path, report: TaskReport) -> tuple[FiredCode, ...]:
    task = task_of(record)
    if task is None:
        raise NoEvidence(f"This version of the project does not know the task {record.task}.")
    try:
        events = read_trace(trace)
    except (TraceError, OSError) as error:
        raise NoEvidence(f"The trace cannot be read: {error}") from None
    assignment = Assignment.of(task, record.tier, record.n_cases)
    material = material_of(assignment, events, trace.parent / "submission", gpus=record.gpus)
    return detect_errors(material.events, material.evidence, report)
