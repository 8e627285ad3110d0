"""Write ``trace.jsonl``: append-only, hash-chained, one event a line. ``evaluator.trace`` reads it.

Every line names the hash of the line before, so that a line cannot be changed, dropped or put in between
without the next one telling. The last line has no next one: whoever seals the run keeps the digest of the
whole file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from evaluator.trace import End, Event

SYNC_SECONDS = 1.0

# JSON escapes C0 itself. The rest of what can move a cursor, end a line or turn the reading direction is
# escaped here, so that a trace can be shown in a terminal without being rendered by it.
_INVISIBLE = (
    range(0x7F, 0xA0),
    range(0x200B, 0x2010),
    range(0x2028, 0x202F),
    range(0x2066, 0x206A),
    range(0xFEFF, 0xFF00),
)
_ESCAPES = {code: f"\\u{code:04x}" for codes in _INVISIBLE for code in codes}


def plain(text: str) -> str:
    """``text`` without lone surrogates, which no UTF-8 file can hold; each becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def line_hash(line: bytes) -> str:
    """What the next line's ``prev`` must hold: 32 hex digits over the line without its newline."""
    return hashlib.sha256(line.removesuffix(b"\n")).hexdigest()[:32]


class TraceWriter:
    """The only writer of one trace.

    Parameters
    ----------
    path : Path
        A file that must not exist yet: a new attempt writes a new trace.
    clock : callable
        Seconds, monotonic; ``t`` of an event counts from the writer's creation.

    Raises
    ------
    FileExistsError
        There is a trace already.
    OSError
        From :meth:`append`, when the disk is full; the file then still ends with a whole line.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._clock = clock
        self._started = self._synced = clock()
        self._size = 0
        self._count = 0
        self._previous = ""

    def append(self, event: Event) -> Event:
        """Write ``event`` with its place in the chain and return it as written."""
        now = self._clock()
        placed = event.model_copy(
            update={"seq": self._count, "t": round(now - self._started, 3), "prev": self._previous}
        )
        line = _line(placed)
        self._write(line)
        self._previous = line_hash(line)
        self._count += 1
        if isinstance(event, End) or now - self._synced >= SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = now
        return placed

    def _write(self, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _line(event: Event) -> bytes:
    head = {"type": event.type, "seq": event.seq, "t": event.t, "prev": event.prev}
    body = {**head, **event.model_dump(mode="json", exclude_defaults=True)}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES).encode() + b"\n"


def verify_chain(path: Path) -> int | None:
    """Number of the first line (from 1) that does not follow from the one before; None when all do.

    A last line without its newline is what a killed runner leaves and is not looked at.
    """
    previous = ""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                event = json.loads(line)
                follows = event["prev"] == previous and event["seq"] == number - 1
            except (ValueError, KeyError, TypeError, RecursionError):
                return number
            if not follows:
                return number
            previous = line_hash(line)
    return None
