"""Where each event of a trace stands in its file, so that a page of a long trace is read without the rest of it."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal

from evaluator.readers.errors import ReadError
from evaluator.readers.gunzip import Gunzip
from evaluator.untrusted import MEGABYTE, open_regular

MAX_FILE_BYTES = 1 << 30
MAX_UNPACKED = 128 << 20
"""Of a compressed trace; what follows is left out and said to be."""
MAX_EVENTS = 300_000
MAX_LINE_BYTES = 16 << 20

Role = Literal["agent", "tool", "host"]
ROLES: tuple[Role, ...] = ("agent", "tool", "host")
_ROLE_OF: dict[str, Role] = {"reply": "agent", "submit": "agent", "exec": "tool", "tool_error": "tool"}
"""Who speaks in an event; everything that is not here is the host's own observation."""

DAMAGED = "damaged"
Event = dict[str, Any]


class TraceUnreadable(Exception):
    """The trace cannot be shown; one line."""


@dataclass(frozen=True)
class TraceIndex:
    """Where the lines start and end, and who speaks in each; ``cut``: the file goes on after the last one."""

    path: Path
    unpacked: IO[bytes] | None
    """The text of a compressed trace; it goes when the index goes."""
    starts: array[int]
    ends: array[int]
    roles: tuple[Role, ...]
    cut: bool

    def __len__(self) -> int:
        return len(self.roles)

    def events(self, places: Sequence[int]) -> list[Event]:
        """The events at these places, in the order given. A line that holds no event is one of type ``damaged``."""
        return [_parsed(line, place) for place, line in self._lines(places)]

    def find(self, roles: Sequence[str] = (), words: str = "") -> list[int]:
        """Places of the events of these roles (of all when none is named) that hold ``words``, case left aside."""
        chosen = [place for place, role in enumerate(self.roles) if not roles or role in roles]
        needle = words.strip().casefold()
        if not needle:
            return chosen
        # Most lines need not be parsed to know that they lack the words.
        escaped = json.dumps(needle, ensure_ascii=False)[1:-1]
        return [
            place
            for place, line in self._lines(chosen)
            if escaped in line.decode("utf-8", "replace").casefold()
            and any(needle in text.casefold() for text in _texts(_parsed(line, place)))
        ]

    def _lines(self, places: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        with _opened(self.path, self.unpacked) as file:
            for place in places:
                file.seek(self.starts[place])
                yield place, file.read(self.ends[place] - self.starts[place])


def index_trace(path: Path) -> TraceIndex:
    """Index a trace; one that has been indexed and did not change since is not read again.

    Raises
    ------
    TraceUnreadable
        There is none, it is not a plain file, or it is larger than a gigabyte.
    """
    try:
        info = path.lstat()
        return _indexed(path, info.st_size, info.st_mtime_ns)
    except ReadError as error:
        raise TraceUnreadable(error.message) from None
    except OSError as error:
        raise TraceUnreadable(f"{path.name}: {error.strerror}") from None


@lru_cache(maxsize=16)
def _indexed(path: Path, size: int, changed: int) -> TraceIndex:  # noqa: ARG001 - they are part of the key
    unpacked = _unpacked(path) if path.suffix == ".gz" else None
    starts, ends = array("q"), array("q")
    roles: list[Role] = []
    start, cut = 0, False
    with _opened(path, unpacked) as file:
        while line := file.readline(MAX_LINE_BYTES):
            if cut := len(roles) == MAX_EVENTS or not line.endswith(b"\n"):
                break
            starts.append(start)
            start += len(line)
            ends.append(start)
            roles.append(_ROLE_OF.get(_parsed(line, len(roles))["type"], "host"))
    return TraceIndex(path, unpacked, starts, ends, tuple(roles), cut)


@contextmanager
def _opened(path: Path, unpacked: IO[bytes] | None) -> Iterator[IO[bytes]]:
    """The trace from its start, by a descriptor of this reader alone."""
    source = Path(unpacked.name) if unpacked else path
    with open_regular(source, MAX_FILE_BYTES) as file:
        yield file


def _unpacked(path: Path) -> IO[bytes]:
    """A temporary file with the text of a compressed trace, at most so much of it."""
    target = tempfile.NamedTemporaryFile(prefix="trace-", suffix=".jsonl")  # noqa: SIM115 - lives as long as the index
    with open_regular(path, MAX_FILE_BYTES) as packed:
        stream = Gunzip(packed, path.name)
        while (piece := stream.read(MEGABYTE)) and target.tell() < MAX_UNPACKED:
            target.write(piece)
    target.flush()
    return target


def _parsed(line: bytes, place: int) -> Event:
    try:
        event = json.loads(line)
        if b"\\u" in line:  # half a pair of surrogates is JSON, and no text that can be sent
            event = json.loads(json.dumps(event, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        text = line[:2000].decode("utf-8", "replace")
        return {"type": DAMAGED, "seq": place, "text": text}
    return event


def _texts(value: object) -> Iterator[str]:
    """Every text in an event, names of fields and hashes left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("prev", "type"):
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
