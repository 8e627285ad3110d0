"""A session whose subject is not the sandbox: a double stands in for it and does what the test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evaluator.trace import Event, read_trace
from runner.limits import Budget
from runner.sandbox.base import ExecResult
from runner.session import Session
from runner.trace import TraceWriter
from tasks.brief import render
from tasks.registry import load_task
from tasks.schema import Limits, Release, Tier


class ManualClock:
    """Time that passes only when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class ScriptedSandbox:
    """TEST DOUBLE, isolates nothing: hands each piece of code to ``act`` instead of running it."""

    act: Callable[[str], ExecResult | bytes]
    codes: list[str] = field(default_factory=list)
    argvs: list[list[str]] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)

    def exec(self, argv, *, deadline, stdin=None, env=None, cwd=None, on_output=None) -> ExecResult:
        code = stdin.decode()
        self.codes.append(code)
        self.argvs.append(list(argv))
        self.deadlines.append(deadline)
        result = self.act(code)
        if isinstance(result, bytes):
            result = ExecResult(0, result, len(result), 0, 0.1)
        return result


@dataclass
class Stage:
    """A session and everything around it."""

    session: Session
    sandbox: ScriptedSandbox
    budget: Budget
    clock: ManualClock
    workspace: Path
    trace_path: Path
    seen: list[Event]

    def events(self, type_: str | None = None) -> list[Event]:
        events = read_trace(self.trace_path)
        return [event for event in events if type_ in (None, event.type)]

    def write_outputs(self, *cases: str) -> None:
        for case in cases:
            folder = self.workspace / "outputs" / case
            folder.mkdir(parents=True, exist_ok=True)
            for name in self.session.task.output.filenames:
                (folder / name).write_bytes(b"x")


@pytest.fixture
def new_stage(tmp_path):
    """Make a session: ``new_stage(limits={...}, cases=[...], act=...)``."""
    writers = []

    def make(
        *, task="kidney-seg-task", cases=("case-a", "case-b"), limits=None, act=None, clock=None
    ) -> Stage:
        spec = load_task(task)
        bounds = Limits(**(limits or {}))
        place = tmp_path / f"run{len(writers)}"
        workspace = place / "workspace"
        (workspace / "outputs").mkdir(parents=True)
        clock = clock or ManualClock()
        writer = TraceWriter(place / "trace.jsonl", clock)
        writers.append(writer)
        sandbox = ScriptedSandbox(act or (lambda code: f"ran: {code}".encode()))
        seen: list[Event] = []
        budget = Budget(bounds, clock)
        session = Session(
            task=spec,
            brief=render(spec, Tier.LITE, release=Release.PHANTOM, n_cases=len(cases), limits=bounds),
            sandbox=sandbox,
            trace=writer,
            budget=budget,
            workspace=workspace,
            case_ids=cases,
            watch=lambda event, session: seen.append(event),
        )
        return Stage(session, sandbox, budget, clock, workspace, place / "trace.jsonl", seen)

    yield make
    for writer in writers:
        writer.close()
