"""The ledger ``attempts.jsonl``: every attempt's start and its end, one JSON object a line, append-only.

    {"event": "started", "key", "attempt", "at", "lock", "steps", "engine"}
    {"event": "ended", "key", "attempt", "at", "lock", "cause", "detail", "run_id", "record_sha256",
     "spend": {...} (the fields of ``engine.Spend``), "seconds", "own_seconds", "host"}

The start is on disk before a worker hears of the attempt. An attempt without an end is one whose driver died; the next
driver ends it from what lies in the run folder. ``lock`` names the lock in force, by 12 digits.
"""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hf_datasets.failures import Cause
from runner.errors import UsageProblem
from runner.sweep.engine import AttemptEnd, Job, Spend


@dataclass
class CellState:
    """What the ledger says of one cell.

    ``attempts`` counts physical attempts; ``open`` is the one that has no end yet, with its steps and its lock.
    ``done`` is the last end with a sealed record, ``done_lock`` the lock it was made under. ``ends`` counts the ends
    without one, since then.
    """

    attempts: int = 0
    open: int | None = None
    open_steps: tuple[str, ...] = ()
    open_lock: str = ""
    last: AttemptEnd | None = None
    done: AttemptEnd | None = None
    done_lock: str = ""
    ends: dict[Cause, int] = field(default_factory=dict)


@dataclass
class Book:
    """The whole ledger, read: cells by key, and the totals over all attempts."""

    cells: dict[str, CellState] = field(default_factory=dict)
    spend: Spend = field(default_factory=Spend)
    spend_by_agent: dict[str, Spend] = field(default_factory=dict)
    own_seconds: float = 0.0
    sealed_at: deque[str] = field(default_factory=lambda: deque(maxlen=200))
    """When the latest records were sealed."""

    def cell(self, key: str) -> CellState:
        return self.cells.setdefault(key, CellState())

    def add(self, line: dict[str, Any]) -> None:
        """Book one line."""
        state = self.cell(line["key"])
        if line["event"] == "started":
            state.attempts = max(state.attempts, line["attempt"])
            state.open, state.open_lock = line["attempt"], line["lock"]
            state.open_steps = tuple(line["steps"])
            return
        end = _end_of(line)
        if state.open == end.attempt:
            state.open = None
        state.last = end
        if end.record_sha256 is not None:
            state.done, state.done_lock = end, line["lock"]
            state.ends = {}
            self.sealed_at.append(line["at"])
        else:
            state.ends[end.cause] = state.ends.get(end.cause, 0) + 1
        agent = end.key.split("/")[2]
        self.spend = plus(self.spend, end.spend)
        self.spend_by_agent[agent] = plus(self.spend_by_agent.get(agent, Spend()), end.spend)
        self.own_seconds += end.own_seconds


def plus(one: Spend, other: Spend) -> Spend:
    """The sum of two spends."""
    return Spend(*(getattr(one, part.name) + getattr(other, part.name) for part in fields(Spend)))


def read_book(path: Path) -> Book:
    """Read a ledger; an empty one where there is none.

    Raises
    ------
    UsageProblem
        A line before the last is damaged.
    """
    book = Book()
    for line in iter_ledger(path):
        book.add(line)
    return book


def iter_ledger(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a ledger as dictionaries. A line that a full disk or a kill cut short is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if _is_line(raw):
                yield json.loads(raw)
            elif raw.endswith(b"\n") and not raw.endswith(CUT):
                raise UsageProblem(f"{path}:{number} is no line of a ledger; put back the file from a copy")


def _is_line(raw: bytes) -> bool:
    try:
        return json.loads(raw)["event"] in ("started", "ended")
    except (ValueError, KeyError, TypeError):
        return False


CUT = b"#cut\n"
"""Closes a line that its writer could not finish."""


class Ledger:
    """The only writer of one ledger; whoever makes it holds the driver's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.book = read_book(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if last := path.read_bytes().rpartition(b"\n")[2]:
            os.write(self._file, b"\n" if _is_line(last) else CUT)

    def started(self, job: Job, lock: str, engine: str) -> None:
        """Note an attempt before it starts.

        Raises
        ------
        OSError
            The disk is full; nothing was noted.
        """
        self._append(
            {
                "event": "started",
                "key": job.key,
                "attempt": job.attempt,
                "at": _now(),
                "lock": lock,
                "steps": list(job.steps),
                "engine": engine,
            }
        )

    def ended(self, end: AttemptEnd, lock: str) -> None:
        """Note how an attempt ended; raises as :meth:`started`."""
        self._append({"event": "ended", **asdict(end), "at": _now(), "lock": lock})

    def close(self) -> None:
        os.close(self._file)

    def _append(self, line: dict[str, Any]) -> None:
        raw = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        before = os.fstat(self._file).st_size
        try:
            if os.write(self._file, raw) != len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise
        self.book.add(line)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _end_of(line: dict[str, Any]) -> AttemptEnd:
    return AttemptEnd(
        key=line["key"],
        attempt=line["attempt"],
        cause=Cause(line["cause"]),
        detail=line["detail"],
        run_id=line["run_id"],
        record_sha256=line["record_sha256"],
        spend=Spend(**line["spend"]),
        seconds=line["seconds"],
        own_seconds=line["own_seconds"],
        host=line["host"],
    )
