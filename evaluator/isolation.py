"""Run one function on many hostile items, each in a child process that may die without harm to the others.

Every item gets the same limits at any degree of parallelism, so its answer does not depend on how many ran
at once: processor time and address space are limits of the child. The parent watches only the sum: when the
children together pass the memory of one, the youngest is stopped and starts again once it has the room alone.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NoReturn, TypeVar

Item = TypeVar("Item")

_PAGE = os.sysconf("SC_PAGE_SIZE")
_POLL_SECONDS = 0.05
_END = b"\0"
_MAX_ANSWER = 64 << 20


@dataclass(frozen=True)
class Budget:
    """What one item may use. Work is bounded by processor time; ``wall_seconds`` ends a child that waits."""

    cpu_seconds: int = 60
    wall_seconds: float = 240.0
    memory_mb: int = 1536


@dataclass(frozen=True)
class Death:
    """An item without an answer: it passed its budget, was ended by a signal, or raised an exception."""

    kind: Literal["limit", "crash", "error"]
    message: str


def map_isolated(
    work: Callable[[Item], str], items: Sequence[Item], budget: Budget, jobs: int
) -> list[str | Death]:
    """``work`` of each item, in the order of the items; its answer must not contain NUL characters.

    Must be called from a process with one thread, since every child is a fork of it.
    """
    pool = _Pool(work, items, budget, jobs)
    try:
        return pool.run()
    finally:
        pool.stop_all()


@dataclass
class _Child:
    index: int
    pid: int
    pipe: int
    started: float
    answer: bytearray


class _Pool(Generic[Item]):
    def __init__(self, work: Callable[[Item], str], items: Sequence[Item], budget: Budget, jobs: int) -> None:
        self._work = work
        self._items = items
        self._budget = budget
        self._jobs = max(1, jobs)
        self._waiting = deque(range(len(items)))
        self._alone: deque[int] = deque()
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._results: list[str | Death] = [Death("error", "never ran")] * len(items)
        self._own_memory = _resident(os.getpid())

    def run(self) -> list[str | Death]:
        while self._waiting or self._alone or self._children:
            self._start_more()
            for key, _ in self._selector.select(_POLL_SECONDS):
                self._read(key.data)
            self._enforce_wall()
            self._enforce_memory()
        return self._results

    def stop_all(self) -> None:
        for child in list(self._children.values()):
            self._stop(child)
        self._selector.close()

    def _start_more(self) -> None:
        while self._waiting and len(self._children) < self._jobs:
            self._start(self._waiting.popleft())
        if self._alone and not self._children:
            self._start(self._alone.popleft())

    def _start(self, index: int) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _be_child(lambda: self._work(self._items[index]), writing, self._budget)
        os.close(writing)
        child = _Child(index, pid, reading, time.monotonic(), bytearray())
        self._children[pid] = child
        self._selector.register(reading, selectors.EVENT_READ, child)

    def _read(self, child: _Child) -> None:
        data = os.read(child.pipe, 1 << 16)
        child.answer += data
        if not data:
            status = self._stop(child)
            self._results[child.index] = _result(bytes(child.answer), status)
        elif len(child.answer) > _MAX_ANSWER:
            self._stop(child)
            self._results[child.index] = Death("limit", f"its result passed {_MAX_ANSWER} bytes")

    def _enforce_wall(self) -> None:
        for child in list(self._children.values()):
            if time.monotonic() - child.started > self._budget.wall_seconds:
                self._stop(child)
                self._results[child.index] = Death("limit", f"no end after {self._budget.wall_seconds:g} s")

    def _enforce_memory(self) -> None:
        while len(self._children) > 1 and self._memory_in_use() > self._budget.memory_mb << 20:
            youngest = max(self._children.values(), key=lambda child: child.started)
            self._stop(youngest)
            self._alone.append(youngest.index)

    def _memory_in_use(self) -> int:
        return sum(max(0, _resident(pid) - self._own_memory) for pid in self._children)

    def _stop(self, child: _Child) -> int:
        """Kill the child if it still lives; its wait status, which an exiting child keeps."""
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        del self._children[child.pid]
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        return os.waitpid(child.pid, 0)[1]


def _result(answer: bytes, status: int) -> str | Death:
    if answer.endswith(_END):
        kind, text = answer[:1], answer[1:-1].decode("utf-8", "replace")
        if kind == b"=":
            return text
        return Death("limit" if kind == b"m" else "error", text)
    if not os.WIFSIGNALED(status):
        return Death("crash", f"the process ended with exit code {os.waitstatus_to_exitcode(status)}")
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name
    if number == signal.SIGXCPU:
        return Death("limit", "it used up its processor time")
    if number == signal.SIGKILL:
        return Death("limit", "the process was killed, most likely for want of memory")
    return Death("crash", f"the process was ended by {name}")


def _be_child(call: Callable[[], str], pipe: int, budget: Budget) -> NoReturn:
    """Work under the limits, write the answer and leave without running anything of the parent's."""
    try:
        _limit_myself(budget)
        _write_all(pipe, _answer(call, budget))
    finally:
        os._exit(0)


def _limit_myself(budget: Budget) -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    faulthandler.disable()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    address_space = _address_space() + (budget.memory_mb << 20)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (budget.cpu_seconds, budget.cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


def _answer(call: Callable[[], str], budget: Budget) -> bytes:
    try:
        return b"=" + call().encode() + _END
    except MemoryError:
        return b"m" + f"it needs more than {budget.memory_mb} MiB".encode() + _END
    except Exception as error:  # whatever a case provokes in us must stay with this case
        text = " ".join(f"{type(error).__name__}: {error}".split()).replace("\0", "")
        return b"!" + text[:500].encode("utf-8", "replace") + _END


def _write_all(pipe: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


def _resident(pid: int) -> int:
    return _statm(pid)[1] * _PAGE


def _address_space() -> int:
    return _statm(os.getpid())[0] * _PAGE


def _statm(pid: int) -> list[int]:
    """Address space and resident set, in pages; zeros once the process is gone."""
    try:
        return [int(field) for field in Path(f"/proc/{pid}/statm").read_text().split()[:2]]
    except OSError:
        return [0, 0]
