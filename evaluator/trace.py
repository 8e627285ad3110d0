"""The trace of a run: what the host saw, one JSON object a line, append-only.

The runner writes it (``runner/trace.py``); the judge, the error codes and the Space read it. Nothing here comes from
inside the agent's sandbox except the bytes that the host itself read from it. Times are seconds since the run began.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class EndReason(StrEnum):
    """Why a run ended. The last two are not the agent's failure and are run again."""

    SUBMITTED = "submitted"
    TIME = "time"
    TURNS = "turns"
    TOKENS = "tokens"
    COST = "cost"
    AGENT_STOP = "agent_stop"
    MALFORMED = "malformed"
    POLICY = "policy"
    PROVIDER_ERROR = "provider_error"
    INFRA_ERROR = "infra_error"

    @property
    def is_agents(self) -> bool:
        return self not in (EndReason.PROVIDER_ERROR, EndReason.INFRA_ERROR)


Tokens = Annotated[int, Field(ge=0)]
Dollars = Annotated[float, Field(ge=0, le=1e9)]


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    seq: int = 0
    t: float = Field(default=0.0, description="Seconds since the run began")
    prev: str = Field(default="", description="SHA-256 (32 hex digits) of the line before; '' on the first")


class Call(BaseModel):
    """A tool call as the model wrote it: ``arguments`` is its raw text, parsed or not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str
    arguments: str
    as_value: bool = Field(
        default=False, description="The arguments came as a JSON value instead of a text; shown as JSON"
    )


class Usage(BaseModel):
    """Tokens of one model reply. ``cached`` is the part of ``input`` read from the provider's cache."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Tokens = 0
    output: Tokens = 0
    cached: Tokens = 0


class RunStarted(_Event):
    type: Literal["run"] = "run"
    at: str = Field(description="UTC start, ISO 8601 with microseconds")
    task: str
    tier: str
    release: str
    agent: str
    model: str | None = None
    brief_sha256: str
    cases: int


class Reply(_Event):
    """One turn of the agent: its text and the calls it asked for."""

    type: Literal["reply"] = "reply"
    turn: int
    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    cost_usd: Dollars | None = None
    seconds: float = 0.0
    waited: float = Field(
        default=0.0, description="Seconds of provider back-off inside this turn; not working time"
    )
    finish: str = ""


class Exec(_Event):
    """One finished ``execute_code``. ``output`` is merged stdout and stderr, head and tail kept."""

    type: Literal["exec"] = "exec"
    turn: int
    call: str
    language: str
    exit_code: int | None = Field(description="None when the deadline ended it")
    seconds: float
    output: str
    output_bytes: int
    dropped_bytes: int = 0
    timed_out: bool = False
    oom: bool = False
    disk_full: bool = False


class FileChange(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    change: Literal["created", "changed", "deleted"]


class Files(_Event):
    """What changed in the workspace during a call, seen by the host with ``lstat``.

    ``new_cases``: cases whose expected outputs became complete in this call, in order of their modification time (at
    most 20 listed, ``new_cases_total`` counts all). ``read_cases``: cases whose outputs were first read after they had
    been written, seen from the access time (at most 20). ``read_weights``: files that could be a model's weights and
    were first read after they had been written (at most 20). ``deleted`` paths are listed like others. ``more``:
    changes beyond the 40 listed; the plan's files and weights come first.
    """

    type: Literal["files"] = "files"
    turn: int
    call: str
    changes: tuple[FileChange, ...] = ()
    more: int = 0
    new_cases: tuple[str, ...] = ()
    new_cases_total: int = 0
    read_cases: tuple[str, ...] = ()
    read_weights: tuple[str, ...] = ()
    complete_cases: int = Field(default=0, description="Complete cases after this call")


class ToolError(_Event):
    """A call that was answered with an error instead of being run."""

    type: Literal["tool_error"] = "tool_error"
    turn: int
    call: str
    kind: Literal[
        "bad_json", "not_object", "unknown_tool", "duplicate_id", "bad_arguments", "too_large", "cut_off"
    ]
    message: str


class ProviderError(_Event):
    type: Literal["provider_error"] = "provider_error"
    turn: int
    attempt: int
    status: int | None = None
    message: str
    wait: float = Field(default=0.0, description="Seconds waited before the next try; 0 when there is none")


class Elided(_Event):
    """Tool outputs left out of the history sent to the model; the trace keeps them."""

    type: Literal["elided"] = "elided"
    turn: int
    calls: tuple[str, ...]


class Submit(_Event):
    """A ``submit_results`` call. The first incomplete one is refused with what is missing; the next is final."""

    type: Literal["submit"] = "submit"
    turn: int
    call: str
    summary: str
    missing: tuple[str, ...] = Field(default=(), description="At most 50 listed")
    missing_total: int = 0
    accepted: bool


class PolicySign(_Event):
    """What was seen of training, and what followed. ``noted`` decides nothing; ``ended`` comes right before the end."""

    type: Literal["policy"] = "policy"
    turn: int
    call: str
    sign: Literal["gradient_steps", "training_code", "gpu_pattern"]
    action: Literal["noted", "warned", "ended"]
    detail: str = ""


class LimitHit(_Event):
    type: Literal["limit"] = "limit"
    limit: Literal["time", "turns", "tokens", "cost"]
    used: float
    allowed: float


class End(_Event):
    type: Literal["end"] = "end"
    reason: EndReason
    detail: str = ""
    turns: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = None
    working_seconds: float = 0.0
    wall_seconds: float = 0.0


Event = Annotated[
    RunStarted
    | Reply
    | Exec
    | Files
    | ToolError
    | ProviderError
    | Elided
    | Submit
    | PolicySign
    | LimitHit
    | End,
    Field(discriminator="type"),
]

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


class TraceError(Exception):
    """A line in the middle of a trace cannot be read."""


def iter_trace(path: Path) -> Iterator[Event]:
    """Yield the events of a trace file. A last line that was cut by a killed runner is left out.

    Raises
    ------
    TraceError
        A line before the last is not an event.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield _ADAPTER.validate_json(line)
            except ValidationError as error:
                if not line.endswith(b"\n"):
                    return
                raise TraceError(f"{path}:{number}: {error.errors()[0]['msg']}") from None


def read_trace(path: Path) -> list[Event]:
    return list(iter_trace(path))
