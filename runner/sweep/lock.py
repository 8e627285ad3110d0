"""The lock of a sweep: its plan and the digests of everything a result depends on, frozen before money is spent."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluator.files import write_atomic
from runner.agents import require_agent
from runner.agents.profiles import EndpointProfile
from runner.cell import Cell, read_form
from runner.errors import UsageProblem
from runner.execute import Options
from runner.sandbox import choose_backend
from runner.sweep.folder import SweepFolder
from runner.sweep.form import Block, SweepForm, blocks_of, cells_of
from runner.sweep.freeze import Freezer, code_part
from runner.sweep.inputs import Decision, Inputs, decide
from runner.sweep.ledger import Book
from tasks.names import Tier
from tasks.schema import Limits, Strict


class TaskLock(Strict):
    """Of one task: digests, and what a plan needs of it."""

    task_sha256: str
    manifest_sha256: str
    settings_sha256: str
    n_cases: int
    limits: Limits
    briefs: dict[Tier, str]


class AgentLock(Strict):
    """Of one agent; ``model`` None where no model is behind it."""

    profile_sha256: str
    model: str | None


class Environments(Strict):
    agent: str
    evaluator: str


class CodeLock(Strict):
    run: str
    grade: str
    judge: str


class Lock(Strict):
    """``lock.json``.

    ``form`` with ``sandbox`` resolved to what was found. ``accepted`` are earlier digests that count as the present
    ones, by the input's name: records made with them are kept although that input changed since.
    """

    schema_version: Literal[1] = 1
    name: str
    revision: int
    created_at: datetime
    supersedes: str | None
    form: SweepForm
    blocks: tuple[Block, ...]
    tasks: dict[str, TaskLock]
    agents: dict[str, AgentLock]
    environments: Environments
    code: CodeLock
    judge_sha256: str
    accepted: dict[str, tuple[str, ...]] = Field(default={})

    def cells(self) -> Iterator[Cell]:
        """Every planned cell, in the order of running."""
        return cells_of(self.blocks, self.form.release)

    def keys(self) -> list[str]:
        return [cell.key for cell in self.cells()]

    def inputs(self, cell: Cell) -> Inputs | None:
        """The cell's digests; None where this lock does not plan its task or agent."""
        task, agent = self.tasks.get(cell.task), self.agents.get(cell.agent)
        if task is None or agent is None or cell.tier not in task.briefs:
            return None
        return Inputs(
            brief_sha256=task.briefs[cell.tier],
            manifest_sha256=task.manifest_sha256,
            agent_sha256=agent.profile_sha256,
            agent_environment=self.environments.agent,
            settings_sha256=task.settings_sha256,
            code_run=self.code.run,
            task_sha256=task.task_sha256,
            evaluator_environment=self.environments.evaluator,
            code_grade=self.code.grade,
            judge_sha256=self.judge_sha256,
            code_judge=self.code.judge,
        )

    def content(self) -> dict[str, Any]:
        """What makes one lock differ from another."""
        return self.model_dump(mode="json", exclude={"revision", "created_at", "supersedes", "accepted"})


def options_of(form: SweepForm, runs: Path, data: Path) -> Options:
    """The options of every run of the sweep."""
    return Options(
        runs=runs,
        data=data,
        sandbox=form.sandbox,
        network=form.network,
        watch_training=form.watch_training,
        limits=dict(form.limits),
        agents_file=form.agents_file,
        judge=form.judge,
        judges_file=form.judges_file,
    )


def freeze(form: SweepForm, data: Path, before: Lock | None = None, accept: Iterable[str] = ()) -> Lock:
    """The lock of a sweep on this machine now.

    Raises
    ------
    UsageProblem, EnvironmentProblem, SandboxUnavailable
        As :class:`runner.sweep.freeze.Freezer`; ``accept`` names no input.
    """
    form = form.model_copy(update={"sandbox": choose_backend(form.sandbox).name})
    freezer = Freezer(options_of(form, Path(), data), form.release, form.gpus)
    blocks = blocks_of(form)
    agent, evaluator = freezer.environments()
    lock = Lock(
        name=form.name,
        revision=1 if before is None else before.revision + 1,
        created_at=datetime.now(UTC),
        supersedes=None,
        form=form,
        blocks=blocks,
        tasks={task: _task(freezer, task, form.tiers) for task in dict.fromkeys(b.task for b in blocks)},
        agents={name: _agent(freezer, form, name) for name in form.agents},
        environments=Environments(agent=agent, evaluator=evaluator),
        code=CodeLock(**{part: code_part(part) for part in ("run", "grade", "judge")}),
        judge_sha256=freezer.judge(),
    )
    return lock.model_copy(update={"accepted": _accepted(lock, before, tuple(accept))})


def _task(freezer: Freezer, task: str, tiers: tuple[Tier, ...]) -> TaskLock:
    facts = freezer.task(task)
    return TaskLock(
        task_sha256=facts.task_sha256,
        manifest_sha256=facts.manifest_sha256,
        settings_sha256=freezer.settings(task),
        n_cases=facts.n_cases,
        limits=facts.limits,
        briefs={tier: facts.briefs[tier] for tier in tiers},
    )


def _agent(freezer: Freezer, form: SweepForm, name: str) -> AgentLock:
    profile = require_agent(name, form.agents_file)
    model = profile.model if isinstance(profile, EndpointProfile) else None
    return AgentLock(profile_sha256=freezer.agent(name), model=model)


ACCEPTABLE = {
    "code_run": ("code", "run"),
    "code_grade": ("code", "grade"),
    "code_judge": ("code", "judge"),
    "agent_environment": ("environments", "agent"),
    "evaluator_environment": ("environments", "evaluator"),
}
"""Inputs whose change a person may declare to be without effect on results; nothing about the question itself."""


def _accepted(lock: Lock, before: Lock | None, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    if strangers := sorted(set(names) - ACCEPTABLE.keys()):
        raise UsageProblem(f"--accept {strangers[0]}: expected one of {', '.join(sorted(ACCEPTABLE))}")
    if before is None:
        return {}
    accepted = {}
    for name, (part, field) in ACCEPTABLE.items():
        earlier, now = getattr(getattr(before, part), field), getattr(getattr(lock, part), field)
        kept = before.accepted.get(name, ())
        if earlier == now and kept:
            accepted[name] = kept
        elif earlier != now and name in names:
            accepted[name] = tuple(dict.fromkeys((*kept, earlier)))
    return accepted


# --- on disk ---


def load_lock(folder: SweepFolder) -> Lock:
    """The lock in force.

    Raises
    ------
    UsageProblem
        There is none, or it is damaged.
    """
    if not folder.lock.is_file():
        raise UsageProblem(f"{folder.root} is not locked: run 'python -m runner sweep lock SWEEP.yaml' first")
    return read_form(folder.lock, Lock)


def lock_id(folder: SweepFolder) -> str:
    """Twelve digits that name the lock in force, as ledger and ``locks/`` do."""
    return hashlib.sha256(folder.lock.read_bytes()).hexdigest()[:12]


def store(folder: SweepFolder, lock: Lock, stale: Iterable[str] = ()) -> str:
    """Put a lock in force and keep it for good; its id. ``stale`` are cells whose records are not of its inputs."""
    if folder.lock.is_file():
        lock = lock.model_copy(update={"supersedes": lock_id(folder)})
    text = lock.model_dump_json(indent=1) + "\n"
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder.locks.mkdir(parents=True, exist_ok=True)
    write_atomic(folder.locks / f"{name}.json", text)
    write_atomic(folder.stale, json.dumps(list(stale)) + "\n")
    write_atomic(folder.lock, text)
    return name


class Locks:
    """Every lock that records may have been made under, read when first asked for."""

    def __init__(self, folder: SweepFolder) -> None:
        self._folder = folder
        self._known: dict[str, Lock] = {}

    def get(self, name: str) -> Lock:
        if name not in self._known:
            self._known[name] = read_form(self._folder.locks / f"{name}.json", Lock)
        return self._known[name]


# --- what an amended plan means for each cell ---


@dataclass(frozen=True)
class Standing:
    """What one cell needs to stand for a lock, and which of its inputs changed."""

    cell: Cell
    decision: Decision
    changed: tuple[str, ...] = ()


def standings(lock: Lock, locks: Locks, book: Book) -> Iterator[Standing]:
    """For each planned cell: reuse, rejudge, regrade or run."""
    for cell in lock.cells():
        yield standing(cell, lock, locks, book)


def standing(cell: Cell, lock: Lock, locks: Locks, book: Book) -> Standing:
    state = book.cells.get(cell.key)
    now = lock.inputs(cell)
    assert now is not None
    if state is None or state.done is None:
        return Standing(cell, "run")
    before = locks.get(state.done_lock).inputs(cell)
    if before is None:
        return Standing(cell, "run")
    before = replace(
        before,
        **{name: getattr(now, name) for name, old in lock.accepted.items() if getattr(before, name) in old},
    )
    return Standing(cell, decide(now, before), now.changed(before))


def count_decisions(found: Iterable[Standing]) -> dict[Decision, int]:
    """How many cells need what."""
    return dict(Counter(one.decision for one in found))


def stale_keys(found: Iterable[Standing], book: Book) -> list[str]:
    """Cells that have a record, but not one that stands for the lock."""
    return [
        one.cell.key
        for one in found
        if one.decision != "reuse" and (state := book.cells.get(one.cell.key)) is not None and state.done
    ]
