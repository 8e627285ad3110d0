"""``downloads.jsonl``: every request that an agent made through the proxy, one JSON object a line, append-only."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from runner.egress.rules import Rule
from runner.errors import UsageProblem
from runner.trace import plain
from tasks.schema import Strict

MOST_LINES = 20_000
LONGEST = 400
LABELS_ASKED_FOR = "label_source_asked"
"""Flag of a run that asked for a place where its task's data and labels lie, and was refused."""

Count = Annotated[int, Field(ge=0)]


class Download(Strict):
    """One request. ``path`` is None where TLS hides it; bytes are those that passed, headers of HTTP included."""

    t: float = Field(description="Seconds since the run's proxy was opened, at the request's end")
    method: str
    host: str = Field(description="'package-index' for an index that the operator named")
    port: int
    path: str | None = None
    verdict: Literal["allowed", "refused", "failed"]
    rule: Rule
    reason: str = ""
    sent: Count = 0
    received: Count = 0
    seconds: float = 0.0
    more: Count = Field(
        default=0, description="In the last lines alone: requests of one verdict and rule that are not listed"
    )


class Ledger:
    """The only writer of one run's log. The file appears with the first request; threads may share it.

    A run may make more requests than are worth keeping: after ``most`` lines they are only counted, those of each
    verdict and rule for themselves, so that nothing hides behind a crowd of others.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.monotonic, most: int = MOST_LINES
    ) -> None:
        self._path = path
        self._clock = clock
        self._began = clock()
        self._most = most
        self._lines = 0
        self._unlisted: dict[tuple[str, Rule], Download] = {}
        self._descriptor = -1
        self._open = True
        self._lock = threading.Lock()

    def clock(self) -> float:
        """Seconds since the ledger was made."""
        return self._clock() - self._began

    def write(self, entry: Download) -> None:
        with self._lock:
            if not self._open:
                return
            if self._lines < self._most:
                self._append(_clipped(entry))
            else:
                kind = entry.verdict, entry.rule
                self._unlisted[kind] = _added(self._unlisted.get(kind), _clipped(entry))

    def close(self) -> None:
        """Write what was only counted, and let nothing more be written."""
        with self._lock:
            for entry in self._unlisted.values():
                self._append(entry)
            self._unlisted = {}
            self._open = False
            if self._descriptor >= 0:
                os.fsync(self._descriptor)
                os.close(self._descriptor)
                self._descriptor = -1

    def _append(self, entry: Download) -> None:
        if self._descriptor < 0:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o644)
        size = os.fstat(self._descriptor).st_size
        rest = memoryview(entry.model_dump_json(exclude_defaults=True).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, size)  # the file ends with a whole line, full disk or not
            raise
        self._lines += 1


def read_ledger(path: Path) -> Iterator[Download]:
    """The requests of a log; none where there is no file. A last line that a killed runner cut is left out.

    Raises
    ------
    UsageProblem
        A line before the last is no request.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield Download.model_validate_json(line)
            except ValidationError as error:
                if not line.endswith(b"\n"):
                    return
                raise UsageProblem(f"{path}:{number} is damaged: {error.errors()[0]['msg']}") from None


@dataclass(frozen=True)
class Downloads:
    """What a run's log comes to: requests that left the sandbox, bytes that came in, signs of a search for labels."""

    requests: int = 0
    received: int = 0
    flags: tuple[str, ...] = ()


def downloads_of(path: Path) -> Downloads:
    """The sum of a log; of nothing where there is none."""
    requests, received, flags = 0, 0, set()
    for entry in read_ledger(path):
        if entry.verdict == "allowed":
            requests += max(1, entry.more)
        if entry.verdict != "refused":
            received += entry.received
        if entry.rule == "labels":
            flags.add(LABELS_ASKED_FOR)
    return Downloads(requests, received, tuple(sorted(flags)))


def _clipped(entry: Download) -> Download:
    path = None if entry.path is None else plain(entry.path)[:LONGEST]
    texts = {name: plain(getattr(entry, name))[:LONGEST] for name in ("method", "host", "reason")}
    return entry.model_copy(update={**texts, "path": path})


def _added(total: Download | None, entry: Download) -> Download:
    """The line that stands for all the requests of one kind beyond the bound."""
    if total is None:
        return entry.model_copy(update={"more": 1, "path": None, "reason": "and further requests"})
    return total.model_copy(
        update={
            "t": entry.t,
            "more": total.more + 1,
            "sent": total.sent + entry.sent,
            "received": total.received + entry.received,
        }
    )
