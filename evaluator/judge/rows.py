"""The lines of a run's notebook: one for every event that says something, numbered as in the trace.

A line's head is the host's own and is always kept. What the agent wrote or its commands printed hangs below it as
quotations, which may be shortened. What the agent said about its work is in neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.judge.attempts import Attempt, CallKey
from evaluator.judge.evidence import Evidence
from evaluator.judge.plan import PLAN_PICTURE, PLAN_TEXT
from evaluator.judge.quoting import clipped, masked, name, visible
from evaluator.rubric import EvidenceKind
from evaluator.trace import (
    Elided,
    End,
    Event,
    Exec,
    FileChange,
    Files,
    LimitHit,
    ProviderError,
    Reply,
    Submit,
    ToolError,
)

_QUOTED_CHARS = 8000
_LISTED_CHANGES = 5


@dataclass(frozen=True)
class Quote:
    """Text of the agent's making. ``weight``: its claim on room, against other quotes; ``head_share``: of a text
    that is cut, how much is kept from its beginning.
    """

    label: str
    text: str
    weight: float
    head_share: float = 0.6


@dataclass(frozen=True)
class Row:
    """One event. ``key`` rows are never merged with others."""

    seq: int
    turn: int
    head: str
    kinds: frozenset[EvidenceKind] = frozenset()
    quotes: tuple[Quote, ...] = ()
    key: bool = False
    failed: bool = False


def rows_of(events: Sequence[Event], evidence: Evidence, names: Sequence[str] = ()) -> tuple[Row, ...]:
    """All rows of a trace, in order."""
    return tuple(_Reader(evidence, names).rows(events))


class _Reader:
    def __init__(self, evidence: Evidence, names: Sequence[str]) -> None:
        self._evidence = evidence
        self._names = names
        self._attempts = {attempt.seq: attempt for attempt in evidence.attempts}
        self._codes: dict[CallKey, str] = {}
        self._seen: set[str] = set()

    def rows(self, events: Sequence[Event]) -> Iterator[Row]:
        for event in events:
            if isinstance(event, Reply):
                self._codes |= {(event.turn, call.id): call.arguments for call in event.calls}
            if isinstance(event, Exec):
                yield self._exec(event)
            elif isinstance(event, Files):
                if _says_something(event):
                    yield self._files(event)
            elif row := _plain_row(event):
                yield row

    def _exec(self, event: Exec) -> Row:
        attempt = self._attempts[event.seq]
        head = (
            f"E{event.seq} turn {event.turn}: {event.language}, {_ending(event)}, {event.output_bytes} bytes"
        )
        if attempt.failed:
            head += f"; failed ({attempt.failure}), {_repair(attempt)}"
        weight = self._weight(attempt)
        code = self._quote("code", _code(self._codes.get((event.turn, event.call), "")), weight / 2)
        # What went wrong stands at the end of an output.
        output = self._quote("output", event.output, weight, 0.2 if attempt.failed else 0.6)
        return Row(
            seq=event.seq,
            turn=event.turn,
            head=head,
            kinds=frozenset({"commands", "outputs"}),
            quotes=tuple(quote for quote in (code, output) if quote.text),
            failed=attempt.failed,
        )

    def _quote(self, label: str, text: str, weight: float, head_share: float = 0.6) -> Quote:
        text = visible(masked(clipped(text.rstrip(), _QUOTED_CHARS, head_share), self._names))
        # What was spelled out has grown.
        return Quote(label, clipped(text, _QUOTED_CHARS, head_share), weight, head_share)

    def _weight(self, attempt: Attempt) -> float:
        """Failures and the look at the pilot say most, then what came before any case."""
        first, batch = self._evidence.first_case, self._evidence.batch
        if first and attempt.seq > first.seq:
            is_validation = batch is None or attempt.seq < batch.seq
            return 3.0 if is_validation or attempt.failed else 1.0
        return 3.0 if attempt.failed else 2.0

    def _files(self, event: Files) -> Row:
        parts = []
        if event.changes:
            listed = ", ".join(map(_change, event.changes[:_LISTED_CHANGES]))
            more = len(event.changes) - _LISTED_CHANGES + event.more
            parts.append(listed + (f" and {more} more" if more > 0 else ""))
        if event.new_cases_total:
            parts.append(f"complete now: {_cases(event.new_cases, event.new_cases_total)}")
            parts.append(f"{event.complete_cases} of {self._evidence.cases} cases complete")
        if event.read_cases:
            parts.append(f"outputs read back: {', '.join(event.read_cases)}")
        if event.read_weights:
            parts.append(f"weights read: {', '.join(map(name, event.read_weights[:3]))}")
        is_first = not self._seen.issuperset(event.new_cases)
        self._seen.update(event.new_cases)
        kinds = _kinds(event)
        return Row(
            seq=event.seq,
            turn=event.turn,
            head=f"E{event.seq} turn {event.turn}: files: {'; '.join(parts)}",
            kinds=kinds,
            key=is_first or bool(event.read_cases or event.read_weights or kinds & {"plan", "picture"}),
        )


def _plain_row(event: Event) -> Row | None:
    """The row of an event that the host alone speaks of; None for one that says nothing about the work."""
    key, turn = False, getattr(event, "turn", 0)
    match event:
        case Reply(calls=()):
            head = "a reply without a call"
        case ToolError():
            head = f"a call was not run: {event.kind}"
        case ProviderError():
            head = "the model's provider failed"
        case Elided():
            head = "old outputs left the agent's view"
        case Submit():
            key, taken = True, "accepted" if event.accepted else "refused"
            head = f"submit_results, {event.missing_total} expected files missing: {taken}"
        case LimitHit():
            key, head = True, f"the limit of {event.limit} was reached"
        case End():
            key, turn, head = True, event.turns, f"the run ended: {event.reason.value}"
        case _:
            return None
    return Row(event.seq, turn, f"E{event.seq} turn {turn}: {head}", key=key)


def _says_something(event: Files) -> bool:
    return bool(
        event.changes or event.new_cases_total or event.read_cases or event.read_weights or event.more
    )


def _kinds(event: Files) -> frozenset[EvidenceKind]:
    changed = {change.path for change in event.changes if change.change != "deleted"}
    kinds: set[EvidenceKind] = {"files"}
    if event.new_cases_total or event.read_cases:
        kinds.add("cases")
    if PLAN_TEXT in changed:
        kinds.add("plan")
    if PLAN_PICTURE in changed:
        kinds.add("picture")
    return frozenset(kinds)


def _change(change: FileChange) -> str:
    return f"{change.change} {name(change.path)} ({change.size} bytes)"


def _cases(listed: Sequence[str], total: int) -> str:
    more = total - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more > 0 else "")


def _ending(event: Exec) -> str:
    if event.timed_out:
        return f"stopped at the deadline after {event.seconds:.0f} s"
    ending = f"exit {'unknown' if event.exit_code is None else event.exit_code} after {event.seconds:.1f} s"
    return ending + (" (out of memory)" if event.oom else "") + (" (disk full)" if event.disk_full else "")


def _repair(attempt: Attempt) -> str:
    if attempt.fixed_by is not None:
        return f"put right by E{attempt.fixed_by}"
    return f"not put right in {attempt.retries} further tries of its kind"


def _code(arguments: str) -> str:
    try:
        return str(json.loads(arguments)["code"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return arguments
