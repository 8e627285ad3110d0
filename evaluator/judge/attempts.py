"""The commands of a run: which failed, how, and whether the same kind of command succeeded afterwards.

Whether a command failed is the host's knowledge (exit code, deadline, memory, disk). What kind of failure it
was is read from what the command printed; an agent can print anything, so kinds feed the error codes, which
are never scored, and no rubric item.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evaluator.trace import Event, Exec, Reply

MAX_RETRIES = 5
"""Within how many further tries of the same kind a failure must be put right."""

FailureKind = Literal["dependency", "load", "path", "shape", "memory", "disk", "timeout", "crash"]

CallKey = tuple[int, str]
"""Turn and call id: some providers number their calls anew in every turn."""


@dataclass(frozen=True)
class Moment:
    """The call in which the host saw something, by the sequence number of the event that showed it."""

    seq: int
    turn: int
    call: str

    @property
    def key(self) -> CallKey:
        return (self.turn, self.call)

    def is_before(self, other: Moment | None) -> bool:
        """Whether this was an earlier call; what happens within one call has no order that the host can vouch
        for.
        """
        return other is None or (self.seq < other.seq and self.key != other.key)

    def was_answered_before(self, other: Moment | None) -> bool:
        """Whether the agent had seen the answer to this call when it asked for the other: an earlier turn."""
        return other is None or self.turn < other.turn


@dataclass(frozen=True)
class Attempt:
    """One executed command.

    ``fixed_by`` is the event of the same kind of command that succeeded within ``MAX_RETRIES`` tries after a
    failure; ``retries`` counts those tries.
    """

    seq: int
    turn: int
    call: str
    language: str
    exit_code: int | None
    printed: bool
    failure: FailureKind | None = None
    error: str = ""
    fixed_by: int | None = None
    retries: int = 0

    @property
    def moment(self) -> Moment:
        return Moment(self.seq, self.turn, self.call)

    @property
    def failed(self) -> bool:
        return self.failure is not None


def attempts_of(events: Iterable[Event]) -> tuple[Attempt, ...]:
    """All executed commands in order, each failure linked to its repair."""
    codes: dict[CallKey, str] = {}
    attempts: list[Attempt] = []
    words: list[frozenset[str]] = []
    for event in events:
        if isinstance(event, Reply):
            codes |= {(event.turn, call.id): call.arguments for call in event.calls}
        elif isinstance(event, Exec):
            attempts.append(_attempt(event))
            words.append(_words(codes.get((event.turn, event.call), "")))
    return tuple(
        _with_repair(attempt, index, attempts, words) if attempt.failed else attempt
        for index, attempt in enumerate(attempts)
    )


def _attempt(event: Exec) -> Attempt:
    failed = event.exit_code != 0 or event.timed_out or event.oom or event.disk_full
    error = _error_line(event.output) if failed else ""
    return Attempt(
        seq=event.seq,
        turn=event.turn,
        call=event.call,
        language=event.language,
        exit_code=event.exit_code,
        printed=not event.output.isspace() and event.output != "",
        failure=_kind(event, error) if failed else None,
        error=error,
    )


# --- repair ----------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_COMMON = frozenset(keyword.kwlist) | {"print", "echo", "python", "python3", "bash", "code", "language"}
_SAME_KIND = 0.6
_CODE_READ = 20_000


def _words(arguments: str) -> frozenset[str]:
    try:
        code = json.loads(arguments)["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code = arguments
    return frozenset(_WORD.findall(str(code)[:_CODE_READ])) - _COMMON


def _with_repair(
    failed: Attempt, index: int, attempts: Sequence[Attempt], words: Sequence[frozenset[str]]
) -> Attempt:
    retries = 0
    for later in range(index + 1, len(attempts)):
        if not _same_kind(words[index], words[later], failed.language == attempts[later].language):
            continue
        retries += 1
        if not attempts[later].failed:
            return replace(failed, fixed_by=attempts[later].seq, retries=retries)
        if retries == MAX_RETRIES:
            break
    return replace(failed, retries=retries)


def _same_kind(failed: frozenset[str], later: frozenset[str], same_language: bool) -> bool:
    """Whether the later command speaks of most of what the failed one spoke of."""
    if not failed:
        return same_language and not later
    return len(failed & later) >= _SAME_KIND * len(failed)


# --- kinds of failure ------------------------------------------------------------------------------------

_TAIL = 4000
_ERROR_CHARS = 300
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|NotFound)\b")
_WEIGHT_NAME = re.compile(r"\.(?:pt|pth|ckpt|safetensors|onnx|h5|gguf|bin)\b|checkpoint|weights", re.I)
_SIGNS: dict[FailureKind, tuple[str, ...]] = {
    "dependency": (
        "ModuleNotFoundError",
        "ImportError",
        "No module named",
        "No matching distribution",
        "Could not find a version",
        "ResolutionImpossible",
        "command not found",
        "is not installed",
    ),
    "load": (
        "CUDA",
        "cuDNN",
        "OutOfMemoryError",
        "loading state_dict",
        "HTTPError",
        "ConnectionError",
        "Max retries exceeded",
        "resolve host",
        "name resolution",
        "couldn't connect",
        "gated repo",
        "Client Error",
    ),
    "path": ("FileNotFoundError", "No such file", "NotADirectoryError", "IsADirectoryError", "Permission"),
    "memory": ("MemoryError", "Unable to allocate"),
    "shape": ("shape", "broadcast", "size mismatch", "dimension", "TypeError", "dtype", "IndexError"),
}
"""Parts of error lines, looked for in this order, whatever their case."""


def _kind(event: Exec, error: str) -> FailureKind:
    if event.oom:
        return "memory"
    if event.disk_full:
        return "disk"
    if event.timed_out or event.exit_code is None:
        return "timeout"
    for kind, signs in _SIGNS.items():
        if any(sign.lower() in error.lower() for sign in signs):
            return "load" if kind == "path" and _WEIGHT_NAME.search(error) else kind
    return "crash"


def _error_line(output: str) -> str:
    """The last line that names an exception, else the last line that says anything."""
    lines = [line.strip() for line in output[-_TAIL:].splitlines() if line.strip()]
    named = [line for line in lines if _EXCEPTION.match(line)]
    return (named or lines or [""])[-1][:_ERROR_CHARS]
