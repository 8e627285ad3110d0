"""The contract of an engine: it runs jobs through one pure function and says how each attempt ended.

A :class:`Job` is plain data and says everything that a worker needs; ``jobs.run_job(job)`` turns it into an
:class:`AttemptEnd`, which is plain data too. The driver (``driver.py``) decides what runs and what happens after an
end; an engine only knows slots and resources. When an engine reports an end, the cell's run folder lies at
``job.cell.folder(job.options.runs)`` on the driver's machine, whatever way it came there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from hf_datasets.failures import Cause

if TYPE_CHECKING:
    from runner.cell import Cell
    from runner.execute import Options
    from runner.sweep.inputs import Inputs

Step = Literal["run", "regrade", "rejudge"]
Address = str | tuple[str, int]
"""Where the driver's broker listens: the path of a socket, or host and port."""


@dataclass(frozen=True)
class Line:
    """How a worker reaches the driver's broker (limits across cells, progress)."""

    address: Address
    secret: bytes


@dataclass(frozen=True)
class Needs:
    """What one job takes of a machine: whole GPUs, cores, MiB; ``data`` names the staged folder it reads."""

    gpus: int = 0
    cpus: float = 1.0
    memory_mb: int = 0
    docker: bool = False
    data: str = ""


@dataclass(frozen=True)
class Job:
    """One attempt at one cell.

    ``cell.repeat`` is the logical repeat, ``attempt`` the physical attempt, counted from 1 over the life of the
    sweep. ``steps`` are done in order. ``line`` None: no limits across cells, nobody watches.
    """

    cell: Cell
    attempt: int
    steps: tuple[Step, ...]
    options: Options
    inputs: Inputs
    needs: Needs = Needs()
    line: Line | None = None

    @property
    def key(self) -> str:
        """``task/tier/agent/rNN``."""
        return self.cell.key

    @property
    def id(self) -> str:
        """Names this attempt among all of the sweep."""
        return f"{self.key}#{self.attempt}"


@dataclass(frozen=True)
class Spend:
    """What an attempt cost: answers that were paid for, and requests whose answer nobody saw (``open``), with the most
    that those can have cost.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    usd: float = 0.0
    requests: int = 0
    open: int = 0
    open_tokens: int = 0
    open_usd: float = 0.0


@dataclass(frozen=True)
class AttemptEnd:
    """How one attempt ended. ``record_sha256`` is set exactly when a sealed record stands in the run folder.

    ``seconds`` is wall time in the worker, ``own_seconds`` the agent's part of it (its session).
    """

    key: str
    attempt: int
    cause: Cause
    detail: str = ""
    run_id: str | None = None
    record_sha256: str | None = None
    spend: Spend = Spend()
    seconds: float = 0.0
    own_seconds: float = 0.0
    host: str = ""


RunJob = Callable[[Job], AttemptEnd]


class Engine(Protocol):
    """Where jobs run.

    ``slots`` is how many run at a time; it may change while machines come and go.
    """

    name: str

    def start(self) -> None:
        """Make the slots ready.

        Raises
        ------
        EnvironmentProblem
            There are none.
        """
        ...

    @property
    def slots(self) -> int: ...

    def free(self) -> int:
        """How many jobs could be given now."""
        ...

    def give(self, job: Job) -> None:
        """Start a job on a free slot."""
        ...

    def ended(self, timeout: float) -> Sequence[AttemptEnd]:
        """Ends since the last call; waits at most ``timeout`` seconds for the first.

        A worker or machine that went away ends its attempt with ``Cause.WORKER_LOST``; what it spent is added by
        the driver from the run folder's requests.
        """
        ...

    def close(self, patience: float) -> None:
        """End everything, running attempts too, within ``patience`` seconds."""
        ...
