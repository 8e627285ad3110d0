"""What the host saw of a run, reduced to the facts on which items and error codes rest.

Everything comes from the trace, which the host wrote, and from the collected copies of the plan's two files.
What the agent says about its work is no evidence. References, scores, and who the agent is are not looked at.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from evaluator.judge.attempts import Attempt, Moment, attempts_of
from evaluator.judge.inputs import Shape, shows_shape
from evaluator.judge.plan import (
    MIN_CHARS,
    PLAN_TEXT,
    PlanPicture,
    PlanText,
    read_plan_picture,
    read_plan_text,
)
from evaluator.judge.weights import is_weight_like
from evaluator.trace import End, Event, Exec, Files, iter_trace
from tasks.schema import OUTPUT_ROOT, Task

PILOT_SHARE = 20
"""A pilot is at most one case in this many, and at least one."""


@dataclass(frozen=True)
class SeenFile:
    """A file that appeared in the workspace."""

    path: str
    size: int
    at: Moment


@dataclass(frozen=True)
class Evidence:
    """Facts of one run.

    ``first_case``: a case became complete for the first time. ``batch``: more cases than a pilot's were
    complete. ``pilot``: the first case was complete in an earlier turn than the batch, or there was no batch.
    ``inspection``: an output of the pilot was read after it had been written, in an earlier turn than the
    batch, in a call that succeeded and printed something. ``inputs_shown``: a command that succeeded printed
    the shape of a public input, in an earlier call than the first case. ``weights``, ``packages`` and
    ``other_outputs`` (files left in the outputs folder under other names than expected) hold what was listed;
    the trace lists a bounded number of changes a call. ``weights_read``: such a file was first read after it had
    been written, in a call that succeeded. ``gpu``: the sandbox had one.
    """

    cases: int
    pilot_size: int
    attempts: tuple[Attempt, ...]
    plan: PlanText
    picture: PlanPicture
    plan_written: Moment | None
    first_case: Moment | None
    batch: Moment | None
    pilot: Moment | None
    inspection: Moment | None
    inputs_known: bool
    inputs_shown: Moment | None
    weights: tuple[SeenFile, ...]
    weights_read: Moment | None
    packages: tuple[str, ...]
    expected_files: tuple[str, ...]
    other_outputs: tuple[str, ...]
    complete_cases: int
    end: str | None
    gpu: bool

    @property
    def executed(self) -> bool:
        return bool(self.attempts)

    @property
    def failures(self) -> tuple[Attempt, ...]:
        return tuple(attempt for attempt in self.attempts if attempt.failed)

    @property
    def classical(self) -> bool:
        """Whether no file that could be a model's weights appeared in the workspace."""
        return not self.weights

    @cached_property
    def sha256(self) -> str:
        """Digest of all facts, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def collect_evidence(
    trace_path: Path,
    plan_folder: Path,
    task: Task,
    case_ids: Collection[str],
    input_shapes: Iterable[Shape] = (),
    *,
    gpu: bool = False,
) -> Evidence:
    """Read the trace of a run and the collected plan.

    Parameters
    ----------
    trace_path : Path
        ``trace.jsonl``; a last line that was cut is left out.
    plan_folder : Path
        Where the collected ``plan.md`` and ``plan.png`` lie; either may be absent, and anything may lie in
        their place.
    task : Task
        The task that was run.
    case_ids : collection of str
        The manifest's cases; their order does not matter.
    input_shapes : iterable of tuple of int
        Shapes of the public inputs (``inputs.public_shapes``). Without them the host cannot tell whether an
        input was opened.
    gpu : bool
        Whether the agent's sandbox had a GPU.

    Raises
    ------
    TraceError
        A line before the last is not an event.
    """
    events = list(iter_trace(trace_path))
    return evidence_of(events, plan_folder, task.output.filenames, len(case_ids), input_shapes, gpu=gpu)


def evidence_of(
    events: Sequence[Event],
    plan_folder: Path,
    expected_files: tuple[str, ...],
    cases: int,
    input_shapes: Iterable[Shape] = (),
    *,
    gpu: bool = False,
) -> Evidence:
    """The same from a trace that has been read; ``expected_files`` are the names of a case's outputs."""
    files = [event for event in events if isinstance(event, Files)]
    attempts = attempts_of(events)
    first_case = _first(event for event in files if event.complete_cases)
    pilot_size = max(1, cases // PILOT_SHARE)
    batch = _first(event for event in files if event.complete_cases > pilot_size)
    pilot = first_case if first_case and first_case.was_answered_before(batch) else None
    shapes = frozenset(input_shapes)
    return Evidence(
        cases=cases,
        pilot_size=pilot_size,
        attempts=attempts,
        plan=read_plan_text(plan_folder),
        picture=read_plan_picture(plan_folder),
        plan_written=_plan_written(files),
        first_case=first_case,
        batch=batch,
        pilot=pilot,
        inspection=_inspection(files, attempts, batch) if pilot else None,
        inputs_known=bool(shapes),
        inputs_shown=_inputs_shown(events, first_case, shapes) if shapes else None,
        weights=tuple(_weights(files)),
        weights_read=_weights_read(files, attempts),
        packages=tuple(sorted({match[1] for path in _created(files) if (match := _PACKAGE.search(path))})),
        expected_files=expected_files,
        other_outputs=_other_outputs(files, expected_files),
        complete_cases=files[-1].complete_cases if files else 0,
        end=next((event.reason.value for event in events if isinstance(event, End)), None),
        gpu=gpu,
    )


def _moment(event: Files | Exec) -> Moment:
    return Moment(event.seq, event.turn, event.call)


def _first(events: Iterable[Files | Exec]) -> Moment | None:
    return next(map(_moment, events), None)


def _plan_written(files: Sequence[Files]) -> Moment | None:
    """When ``plan.md`` first had the length of a plan; an empty file that is filled in after the results does
    not count.
    """
    return _first(
        event
        for event in files
        for change in event.changes
        if change.path == PLAN_TEXT and change.change != "deleted" and change.size >= MIN_CHARS
    )


def _inspection(files: Sequence[Files], attempts: Sequence[Attempt], batch: Moment | None) -> Moment | None:
    """The first call before the batch that read a pilot's output back, ended well and printed something."""
    showed = {attempt.moment.key for attempt in attempts if not attempt.failed and attempt.printed}
    written: set[str] = set()
    for event in files:
        moment = _moment(event)
        if not moment.was_answered_before(batch):
            return None
        written.update(event.new_cases)
        if moment.key in showed and not written.isdisjoint(event.read_cases):
            return moment
    return None


def _inputs_shown(
    events: Iterable[Event], first_case: Moment | None, shapes: frozenset[Shape]
) -> Moment | None:
    return _first(
        event
        for event in events
        if isinstance(event, Exec)
        and event.exit_code == 0
        and _moment(event).is_before(first_case)
        and shows_shape(event.output, shapes)
    )


_PACKAGE = re.compile(r"/site-packages/([^/]+)\.dist-info/")


def _created(files: Iterable[Files]) -> Iterator[str]:
    return (change.path for event in files for change in event.changes if change.change == "created")


def _weights(files: Iterable[Files]) -> Iterator[SeenFile]:
    for event in files:
        for change in event.changes:
            if change.change != "deleted" and is_weight_like(change.path, change.size):
                yield SeenFile(change.path, change.size, _moment(event))


def _weights_read(files: Iterable[Files], attempts: Iterable[Attempt]) -> Moment | None:
    succeeded = {attempt.moment.key for attempt in attempts if not attempt.failed}
    return _first(event for event in files if event.read_weights and _moment(event).key in succeeded)


def _other_outputs(files: Iterable[Files], expected: Collection[str]) -> tuple[str, ...]:
    left: dict[str, bool] = {}
    for event in files:
        for change in event.changes:
            left[change.path] = change.change != "deleted"
    return tuple(
        sorted(
            path
            for path, exists in left.items()
            if exists and _is_below_outputs(path) and not _is_expected(PurePosixPath(path), expected)
        )
    )


def _is_below_outputs(path: str) -> bool:
    return path.startswith(f"{OUTPUT_ROOT}/")


def _is_expected(path: PurePosixPath, expected: Collection[str]) -> bool:
    return len(path.parts) == 3 and path.name in expected
