"""Error codes E1-E5: what went wrong in a run, by fixed rules over trace and report. Diagnostic, never
scored.

Several codes may fire in one run. A rule fires on what the host observed or the evaluator found; where it has
to read what a command printed, it looks only at commands that the host saw fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from evaluator.fired import SUBTYPES, TITLES, FiredCode
from evaluator.judge.attempts import Attempt, FailureKind
from evaluator.judge.evidence import Evidence
from evaluator.report import CaseResult, TaskReport
from evaluator.trace import End, EndReason, Event, Exec, Submit

__all__ = ["SUBTYPES", "TITLES", "FiredCode", "detect_errors"]


def _fired(subtype: str, reason: str, *events: int) -> FiredCode:
    code, stage = SUBTYPES[subtype]
    return FiredCode(code=code, subtype=subtype, stage=stage, reason=reason, events=events)


def detect_errors(events: Sequence[Event], evidence: Evidence, report: TaskReport) -> tuple[FiredCode, ...]:
    """All codes that fire, ordered by code.

    A run that the provider or the machine ended fires none: it is run again.
    """
    run = _Run(events, evidence, report)
    if run.end and not run.end.reason.is_agents:
        return ()
    return tuple(sorted((fired for rule in _RULES for fired in rule(run)), key=lambda fired: fired.code))


@dataclass(frozen=True)
class _Run:
    events: Sequence[Event]
    evidence: Evidence
    report: TaskReport

    @cached_property
    def end(self) -> End | None:
        return next((event for event in self.events if isinstance(event, End)), None)

    @cached_property
    def missing(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.report.cases if case.status == "missing")

    @cached_property
    def invalid(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.report.cases if case.status == "invalid")

    @cached_property
    def scored(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.report.cases if case.status == "scored")

    @property
    def nothing_delivered(self) -> bool:
        return len(self.missing) == len(self.report.cases)


Rule = Callable[[_Run], Iterator[FiredCode]]


# --- E1 and E5: the deliverable ---


def _deliverable(run: _Run) -> Iterator[FiredCode]:
    cases = len(run.report.cases)
    if run.nothing_delivered:
        yield from _other_artifacts(run)
        yield _fired("missing_files", "no case has its output files")
    elif run.missing:
        yield _fired(
            "incomplete_coverage",
            f"{len(run.missing)} of {cases} cases have no output: {_names(run.missing)}",
        )
    if run.invalid:
        kinds = ", ".join(sorted({case.error.code for case in run.invalid if case.error}))
        reason = f"{len(run.invalid)} cases are invalid ({kinds}): {_names(run.invalid)}"
        yield _fired("malformed_files", reason)


def _other_artifacts(run: _Run) -> Iterator[FiredCode]:
    """Files in the outputs folder, but none that was expected.

    Another kind of file means that another task was solved; another name or place does not.
    """
    wanted, others = run.evidence.expected_files, run.evidence.other_outputs
    if not others:
        return
    found = f"expected {', '.join(wanted)} for each case, found {', '.join(others[:3])}"
    if {_suffix(name) for name in wanted}.isdisjoint(_suffix(name) for name in others):
        yield _fired("wrong_artifact", f"another kind of file: {found}")
    else:
        yield _fired("misplaced_files", f"other names or places: {found}")


def _suffix(path: str) -> str:
    return PurePosixPath(path.lower().removesuffix(".gz")).suffix


def _names(cases: Sequence[CaseResult]) -> str:
    listed = ", ".join(case.case_id for case in cases[:3])
    return listed + (" ..." if len(cases) > 3 else "")


# --- E2 and E4: failures that were never put right ---

_SETUP: dict[FailureKind, str] = {"dependency": "dependency", "load": "load", "path": "path"}
_EXECUTION: dict[FailureKind, str] = {
    "shape": "shape_or_type",
    "memory": "out_of_resources",
    "disk": "out_of_resources",
    "timeout": "out_of_resources",
}


def _unfixed_failures(run: _Run) -> Iterator[FiredCode]:
    """Commands that failed for good in a run that fell short.

    What failed before the first case was complete was gone round and does not count.
    """
    if not (run.missing or run.invalid):
        return
    first_case = run.evidence.first_case
    found: dict[str, list[Attempt]] = {}
    for attempt in run.evidence.failures:
        if attempt.fixed_by is None and (first_case is None or attempt.seq > first_case.seq):
            found.setdefault(_subtype(attempt, in_setup=first_case is None), []).append(attempt)
    for subtype, attempts in found.items():
        last = attempts[-1]
        yield _fired(
            subtype, f"never put right: {last.error or last.failure}", *(attempt.seq for attempt in attempts)
        )


def _subtype(attempt: Attempt, *, in_setup: bool) -> str:
    kind = attempt.failure
    if in_setup and kind in _SETUP:
        return _SETUP[kind]
    return _EXECUTION.get(kind, "crash") if kind else "crash"


_LIMITS = (EndReason.TIME, EndReason.TURNS, EndReason.TOKENS, EndReason.COST)


def _cut_short(run: _Run) -> Iterator[FiredCode]:
    """The run was ended before every case was done."""
    if run.end is None or not run.missing:
        return
    left = f"with {len(run.missing)} of {len(run.report.cases)} cases missing"
    if run.end.reason in _LIMITS:
        yield _fired(
            "limit_reached", f"the limit of {run.end.reason.value} ended the run {left}", run.end.seq
        )
    elif run.end.reason is EndReason.MALFORMED:
        yield _fired("malformed_calls", f"calls that could not be read ended the run {left}", run.end.seq)


# --- E3: verification ---


def _validation_skipped(run: _Run) -> Iterator[FiredCode]:
    evidence = run.evidence
    if evidence.batch and not evidence.pilot:
        size = evidence.pilot_size
        yield _fired(
            "validation_skipped",
            f"more than {size} cases were written before one could be looked at",
            evidence.batch.seq,
        )


_IDENTICAL_FAILURES = 3


def _repeated_failure(run: _Run) -> Iterator[FiredCode]:
    """The same failure several commands in a row, nothing else in between."""
    row: list[Attempt] = []
    for attempt in run.evidence.attempts:
        is_same = bool(row) and (attempt.failure, attempt.error) == (row[0].failure, row[0].error)
        row = ([*row, attempt] if is_same else [attempt]) if attempt.failed else []
        if len(row) == _IDENTICAL_FAILURES:
            what = attempt.error or attempt.failure
            yield _fired("repeated_failure", f"{len(row)} times in a row: {what}", *(one.seq for one in row))
            return


def _refusal_ignored(run: _Run) -> Iterator[FiredCode]:
    """Handed in again, still incomplete, without running anything after the list of what was missing."""
    refused: Submit | None = None
    for event in run.events:
        if isinstance(event, Exec):
            refused = None
        elif isinstance(event, Submit) and not event.accepted:
            refused = event
        elif isinstance(event, Submit) and refused and event.missing_total:
            reason = f"{event.missing_total} files were named as missing, and nothing was done about it"
            yield _fired("refusal_ignored", reason, refused.seq, event.seq)


_SUSPICIOUS = {
    "copied_input": ("copied_input", "is a copy of the input"),
    "empty_prediction": ("empty_output", "is empty although the reference is not"),
}
"""Flags of the report that count when every scored case carries them."""

_DISTINCT = ("distinct_answers", "distinct_reports")
"""Aggregates of the report: different outputs over outputs."""
_MIN_SAME = 3


def _implausible_output(run: _Run) -> Iterator[FiredCode]:
    """Outputs that any look at them would have shown to be wrong."""
    scored = run.scored
    if len(scored) > 1:
        for flag, (subtype, what) in _SUSPICIOUS.items():
            if all(flag in case.flags for case in scored):
                yield _fired(subtype, f"the output of all {len(scored)} scored cases {what}")
    shares = [share for name in _DISTINCT if (share := run.report.aggregates.get(name)) is not None]
    if len(scored) >= _MIN_SAME and any(round(share * len(scored)) == 1 for share in shares):
        yield _fired("identical_answers", f"all {len(scored)} scored cases have the same output")
    outside = [case for case in run.report.cases if "out_of_bounds" in case.flags]
    if outside:
        yield _fired(
            "out_of_bounds", f"boxes reach outside the image in {len(outside)} cases: {_names(outside)}"
        )


_RULES: tuple[Rule, ...] = (
    _deliverable,
    _unfixed_failures,
    _cut_short,
    _validation_skipped,
    _repeated_failure,
    _refusal_ignored,
    _implausible_output,
)
