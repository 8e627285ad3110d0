"""Drive a sweep: give every cell that is not done to the engine, book how it ended, and decide what follows.

All that it knows is in the ledger and in the run folders, so that any later driver goes on where this one was killed.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from evaluator.files import sha256_file
from hf_datasets.failures import Cause, Retry, cause_of, verdict_on
from hf_datasets.records import RecordError, load_record
from runner.cell import RECORD, Cell, is_done, locked
from runner.errors import Busy, EnvironmentProblem
from runner.sweep.broker import Broker
from runner.sweep.control import Wish, wished
from runner.sweep.engine import AttemptEnd, Engine, Job, Needs, Step
from runner.sweep.folder import SweepFolder
from runner.sweep.hurdles import Hurdles
from runner.sweep.inputs import JUDGING
from runner.sweep.jobs import InputsChanged, interrupted, require_record_of
from runner.sweep.ledger import Ledger
from runner.sweep.lock import Lock, Locks, Standing, options_of, standing
from tasks.names import Tier

TICK = 0.25
STOP_SECONDS = 25.0
LONGEST_WAIT = 600.0
LEFTOVER_SECONDS = 40.0
"""How long workers of a driver that was killed may take to break off."""

State = Literal["running", "draining", "stopping", "paused", "done"]


@dataclass
class Todo:
    """A cell that is not done, what has to be done, and how often that failed in this sitting."""

    cell: Cell
    steps: tuple[Step, ...]
    failures: int = 0


@dataclass(frozen=True)
class Setting:
    """What stays the same while a sweep is driven. ``line`` None: no limits across cells."""

    folder: SweepFolder
    lock: Lock
    lock_name: str
    data: Path
    broker: Broker | None = None


@dataclass
class Driver:
    """One sitting of a sweep.

    Attributes
    ----------
    running : dict
        Jobs by key.
    missing : dict
        Why a cell is left missing in this sitting, by key; complete when :meth:`run` has returned.
    stop : int
        0: go on; 1: start nothing more; 2: break off what runs.
    """

    setting: Setting
    engine: Engine
    ledger: Ledger
    hurdles: Hurdles
    tick: Callable[[Driver], None]
    clock: Callable[[], float] = time.monotonic
    running: dict[str, Job] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    stop: int = 0
    state: State = "running"
    why: str = ""
    _todo: deque[Todo] = field(default_factory=deque)
    _later: list[tuple[float, int, Todo]] = field(default_factory=list)
    _doing: dict[str, Todo] = field(default_factory=dict)
    _closed_agents: dict[str, str] = field(default_factory=dict)
    _unbooked: deque[AttemptEnd] = field(default_factory=deque)
    _count: itertools.count[int] = field(default_factory=itertools.count)
    _wish: tuple[float, Wish] = (-1.0, "run")

    def run(self) -> None:
        """Drive until every cell is done or left missing, or somebody stops it."""
        self._end_open_attempts()
        self._plan()
        try:
            while self._goes_on():
                self._obey()
                self._fill()
                for end in self.engine.ended(TICK if self.running or not self._todo else TICK / 5):
                    self._unbooked.append(end)
                self._book()
                self.tick(self)
        finally:
            self._break_off()
        self.state = "done"
        self.tick(self)

    # --- what is to be done ---------------------------------------------------------------------------------

    def _plan(self) -> None:
        locks = Locks(self.setting.folder)
        for cell in self.setting.lock.cells():
            found = standing(cell, self.setting.lock, locks, self.ledger.book)
            if (steps := self._steps(found)) is not None:
                self._todo.append(Todo(cell, steps))

    def _steps(self, found: Standing) -> tuple[Step, ...] | None:
        """What a cell needs; None when its sealed record is there."""
        folder = found.cell.folder(self.setting.folder.runs)
        if found.decision == "run" or not is_done(folder):
            return ("run",)
        if found.decision == "regrade":
            return ("regrade", "rejudge") if set(found.changed) & set(JUDGING) else ("regrade",)
        if found.decision == "rejudge":
            return ("rejudge",)
        done = self.ledger.book.cells[found.cell.key].done
        assert done is not None
        # A record that somebody sealed anew outside the sweep is made again of what is locked; no agent runs.
        return None if sha256_file(folder / RECORD) == done.record_sha256 else ("regrade", "rejudge")

    def _end_open_attempts(self) -> None:
        """Attempts whose driver died: what lies in their folders says how far they came."""
        locks = Locks(self.setting.folder)
        for key, state in list(self.ledger.book.cells.items()):
            if state.open is None:
                continue
            lock = locks.get(state.open_lock)
            cell = _cell_of(key, lock)
            steps: tuple[Step, ...] = ("run",) if state.open_steps == ("run",) else ("regrade",)
            job = _job(self.setting, lock, cell, steps, state.open)
            self._wait_for_leftovers(cell)
            self.ledger.ended(self._found_end(job), state.open_lock)

    def _wait_for_leftovers(self, cell: Cell) -> None:
        folder = cell.folder(self.setting.folder.runs)
        give_up = self.clock() + LEFTOVER_SECONDS
        while True:
            try:
                with locked(folder):
                    return
            except Busy as error:
                if self.clock() > give_up:
                    raise EnvironmentProblem(f"{error} (a worker of an earlier driver)") from None
            time.sleep(0.2)

    # --- the loop -------------------------------------------------------------------------------------------

    def _goes_on(self) -> bool:
        if self.stop >= 2:
            return False
        if self.running or self._unbooked:
            return True
        return self.stop == 0 and bool(self._todo or self._later)

    def _obey(self) -> None:
        now = self.clock()
        if now - self._wish[0] >= TICK:
            self._wish = (now, wished(self.setting.folder))
        if self._wish[1] == "cancel":
            self.stop, self.why = 2, "cancelled"
        while self._later and self._later[0][0] <= now:
            self._todo.append(heapq.heappop(self._later)[2])

    def _fill(self) -> None:
        """Start what can be started."""
        obstacle = "paused by 'sweep pause'" if self._wish[1] == "pause" else self.hurdles.standing()
        if self.stop:
            self.state, self.why = ("stopping" if self.stop > 1 else "draining"), self.why or "stopped"
            return
        if obstacle or self._unbooked:
            self.state, self.why = "paused", obstacle or "the ledger cannot be written"
            return
        self.state, self.why = "running", ""
        for _ in range(self.engine.free()):
            if (todo := self._next()) is None or not self._start(todo):
                return

    def _next(self) -> Todo | None:
        while self._todo:
            todo = self._todo.popleft()
            if (closed := self._closed(todo.cell)) is None:
                return todo
            self.missing[todo.cell.key] = closed
        return None

    def _closed(self, cell: Cell) -> str | None:
        broker = self.setting.broker
        return self._closed_agents.get(cell.agent) or (broker.purses.is_spent(cell.agent) if broker else None)

    def _start(self, todo: Todo) -> bool:
        key = todo.cell.key
        attempt = self.ledger.book.cell(key).attempts + 1
        job = _job(self.setting, self.setting.lock, todo.cell, todo.steps, attempt)
        try:
            self.ledger.started(job, self.setting.lock_name, self.engine.name)
        except OSError:
            self._todo.appendleft(todo)
            self.hurdles.noted(Cause.DISK_FULL)
            return False
        self.running[key], self._doing[key], self.since[key] = job, todo, self.clock()
        self.engine.give(job)
        return True

    # --- ends -----------------------------------------------------------------------------------------------

    def _book(self) -> None:
        while self._unbooked:
            end = self._unbooked[0] = self._as_found(self._unbooked[0])
            try:
                self.ledger.ended(end, self.setting.lock_name)
            except OSError:
                self.hurdles.noted(Cause.DISK_FULL)
                return
            self._unbooked.popleft()
            job, todo = self.running.pop(end.key), self._doing.pop(end.key)
            del self.since[end.key]
            if self.setting.broker is not None:
                self.setting.broker.forget(job.id)
            self._follow(todo, end)

    def _as_found(self, end: AttemptEnd) -> AttemptEnd:
        """A worker that went away may have sealed its record before it could say so."""
        if end.cause not in (Cause.WORKER_LOST, Cause.INTERRUPTED):
            return end
        found = self._found_end(self.running[end.key])
        return end if found.record_sha256 is None else found

    def _follow(self, todo: Todo, end: AttemptEnd) -> None:
        """What the table of failures says about an end."""
        verdict = verdict_on(end.cause)
        if end.record_sha256 is not None:
            self.missing.pop(end.key, None)
        elif verdict.retry is Retry.WHEN_CURED:
            self.hurdles.noted(end.cause)
            self._push(todo, self.setting.lock.form.retry_seconds)
        elif verdict.retry is Retry.BOUNDED:
            self._again_later(todo, end)
        else:
            self.missing[end.key] = f"{end.cause.value}: {end.detail}"
            self._close_what_would_end_alike(todo.cell, end)

    def _again_later(self, todo: Todo, end: AttemptEnd) -> None:
        form = self.setting.lock.form
        todo.failures += 1
        if todo.failures > form.retries:
            self.missing[end.key] = f"{end.cause.value} {todo.failures} times, the last: {end.detail}"
            return
        wait = min(LONGEST_WAIT, form.retry_seconds * 2.0 ** min(todo.failures - 1, 30))
        self._push(todo, wait)

    def _push(self, todo: Todo, wait: float) -> None:
        heapq.heappush(self._later, (self.clock() + wait, next(self._count), todo))

    def _close_what_would_end_alike(self, cell: Cell, end: AttemptEnd) -> None:
        words = f"{end.cause.value}: {end.detail}"
        if end.cause is Cause.PROVIDER_REFUSED:
            self._closed_agents[cell.agent] = words
        elif end.cause is Cause.CHANGED_INPUTS:
            self.stop, self.why = max(self.stop, 1), f"{words}; amend the lock ('sweep lock --amend')"

    def _found_end(self, job: Job) -> AttemptEnd:
        """How an attempt ended of which only the folder tells: with a record that was not there before, or cut off."""
        end = interrupted(job, "the runner ended before it")
        path = job.cell.folder(job.options.runs) / RECORD
        before = self.ledger.book.cell(job.key).done
        try:
            record = load_record(path)
            require_record_of(job.inputs, record)
        except (RecordError, InputsChanged):
            return end
        sealed = sha256_file(path)
        if job.steps != ("run",) or (before is not None and before.record_sha256 == sealed):
            return end
        return replace(
            end,
            cause=cause_of(record),
            detail=record.end_detail,
            run_id=record.run_id,
            record_sha256=sealed,
            own_seconds=record.seconds_wall,
        )

    def _break_off(self) -> None:
        """End what still runs, and book it."""
        self.state = "stopping" if self.running else self.state
        self.tick(self)
        self.engine.close(STOP_SECONDS)
        for key, job in list(self.running.items()):
            booked = any(end.key == key for end in self._unbooked)
            if not booked:
                self._unbooked.append(self._found_end(job))
        with contextlib.suppress(OSError):
            self._book()
        for todo in (*self._todo, *(one for _, _, one in self._later)):
            self.missing.setdefault(todo.cell.key, self.why or "not run")


def _job(setting: Setting, lock: Lock, cell: Cell, steps: tuple[Step, ...], attempt: int) -> Job:
    inputs = lock.inputs(cell)
    assert inputs is not None
    limits = lock.tasks[cell.task].limits
    needs = Needs(
        gpus=lock.form.gpus,
        cpus=limits.cpus,
        memory_mb=limits.memory_mb,
        docker=lock.form.sandbox == "docker",
        data=f"{cell.release.value}/{cell.task}",
    )
    options = options_of(lock.form, setting.folder.runs, setting.data)
    line = setting.broker.line if setting.broker else None
    return Job(cell, attempt, steps, options, inputs, needs, line)


def _cell_of(key: str, lock: Lock) -> Cell:
    task, tier, agent, repeat = key.split("/")
    return Cell(task, Tier(tier), lock.form.release, agent, int(repeat.removeprefix("r")))
