"""How a sweep stands, from its lock, its ledger and what a living driver last said: the same numbers for every view."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from runner.errors import UsageProblem
from runner.sweep.folder import SweepFolder
from runner.sweep.ledger import Book, read_book

STALE_SECONDS = 15.0


@dataclass(frozen=True)
class Status:
    """Counts of cells, of failures by cause, and of what was spent.

    ``driver`` is what a living driver said last (``live.json``), or None. ``per_hour`` and ``eta_seconds`` follow from
    the ends of this ledger; None while there are none.
    """

    name: str
    lock: str
    planned: int
    done: int
    running: int
    missing: int
    attempts: int
    failures: dict[str, int]
    ends: dict[str, int]
    tokens_in: int
    tokens_out: int
    usd: float
    open_requests: int
    per_hour: float | None
    eta_seconds: float | None
    agents: dict[str, dict[str, float]]
    state: str
    why: str
    driver: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def status_of(folder: SweepFolder) -> Status:
    """Read it all from the folder.

    Raises
    ------
    UsageProblem
        The folder is not locked, or a file of it is damaged.
    """
    try:
        raw = folder.lock.read_bytes()
        lock = json.loads(raw)
        planned = list(_planned(lock))
    except FileNotFoundError:
        raise UsageProblem(
            f"{folder.root} is no locked sweep; run 'python -m runner sweep lock SWEEP.yaml' first"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UsageProblem(f"{folder.lock} is damaged; put back the newest of {folder.locks}") from None
    book = read_book(folder.ledger)
    return make_status(lock["name"], raw_id(raw), planned, book, read_live(folder), read_stale(folder))


def raw_id(raw: bytes) -> str:
    """The lock's id, from its bytes."""
    import hashlib

    return hashlib.sha256(raw).hexdigest()[:12]


def read_stale(folder: SweepFolder) -> frozenset[str]:
    """Cells whose records were not of the locked inputs when the lock was made."""
    try:
        return frozenset(json.loads(folder.stale.read_bytes()))
    except (OSError, ValueError):
        return frozenset()


def make_status(
    name: str,
    lock: str,
    planned: list[str],
    book: Book,
    driver: dict[str, Any] | None,
    stale: frozenset[str] = frozenset(),
) -> Status:
    """The status of a sweep; ``planned`` are the keys of its cells."""
    known = [(key, state) for key in planned if (state := book.cells.get(key)) is not None]
    done = [
        (key, state.done)
        for key, state in known
        if state.done is not None and (key not in stale or state.done_lock == lock)
    ]
    running = driver["running"] if driver else []
    failures: Counter[str] = Counter()
    for _, state in known:
        for cause, number in state.ends.items():
            failures[str(cause)] += number
    spend = book.spend
    rate = _per_hour(book)
    left = len(planned) - len(done)
    return Status(
        name=name,
        lock=lock,
        planned=len(planned),
        done=len(done),
        running=len(running),
        missing=left,
        attempts=sum(state.attempts for state in book.cells.values()),
        failures=dict(failures),
        ends=dict(Counter(str(end.cause) for _, end in done)),
        tokens_in=spend.tokens_in,
        tokens_out=spend.tokens_out,
        usd=round(spend.usd, 6),
        open_requests=spend.open,
        per_hour=rate,
        eta_seconds=None if not rate else round(3600 * left / rate, 1),
        agents=_by_agent(planned, {key for key, _ in done}, book),
        state=driver["state"] if driver else ("done" if not left else "not running"),
        why=driver["why"] if driver else "",
        driver=driver,
    )


def _by_agent(planned: list[str], done: set[str], book: Book) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for key in planned:
        row = rows.setdefault(key.split("/")[2], {"planned": 0, "done": 0, "usd": 0.0, "tokens": 0})
        row["planned"] += 1
        row["done"] += key in done
    for agent, spend in book.spend_by_agent.items():
        if agent in rows:
            rows[agent]["usd"] = round(spend.usd, 6)
            rows[agent]["tokens"] = spend.tokens_in + spend.tokens_out
    return rows


def _per_hour(book: Book) -> float | None:
    """Sealed records per hour over the latest stretch of work."""
    times = book.sealed_at
    if len(times) < 2:
        return None
    seconds = (datetime.fromisoformat(times[-1]) - datetime.fromisoformat(times[0])).total_seconds()
    return round(3600 * (len(times) - 1) / seconds, 2) if seconds > 0 else None


def _planned(lock: dict[str, Any]) -> Iterator[str]:
    for block in lock["blocks"]:
        for repeat in range(block["repeats"]):
            yield f"{block['task']}/{block['tier']}/{block['agent']}/r{repeat:02d}"


# --- live.json ---


def read_live(folder: SweepFolder) -> dict[str, Any] | None:
    """What the driver last said; None when it is not alive, or said nothing for a while."""
    try:
        live: dict[str, Any] = json.loads(folder.live.read_bytes())
        age = (datetime.now(UTC) - datetime.fromisoformat(live["at"])).total_seconds()
    except (OSError, ValueError, KeyError):
        return None
    return live if age < STALE_SECONDS and live["state"] != "done" else None
