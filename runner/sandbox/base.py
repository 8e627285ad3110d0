"""The contract of a sandbox: start, exec with a deadline and bounded output, put and get, stop.

Both back ends (``docker``, ``bubblewrap``) are held to the list of behaviours in
``tests/runner/sandbox/test_conformance.py``. What one cannot give it declares in ``Backend.protections``, and
``python -m runner doctor`` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

Network = Literal["none", "open"]
Role = Literal["agent", "evaluator"]

AGENT_UID = 10001
"""Uid of everything the agent starts when the runner is root; otherwise the runner's own uid is used."""

OUTPUT_HEAD = 32 * 1024
OUTPUT_TAIL = 32 * 1024


class SandboxUnavailable(Exception):
    """No sandbox can be had on this machine; the message names what to install. Exit code 3."""


class SandboxDead(Exception):
    """The sandbox ended while it was in use; the message says what is known (exit code, last words)."""


@dataclass(frozen=True)
class Mount:
    """A host path shown inside at ``target``; read-only unless ``writable``."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class SandboxSpec:
    """What to isolate, and how tightly. Sizes in MiB, times in seconds."""

    role: Role
    run_id: str
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/workspace"
    network: Network = "none"
    memory_mb: int = 8192
    pids: int = 512
    cpus: float = 2.0
    disk_mb: int = 20_000
    lease_seconds: int = 7200
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExecResult:
    """How one command ended.

    ``output`` holds the first and the last bytes of merged stdout and stderr, with a marker line between them when
    ``dropped_bytes`` > 0. ``exit_code`` is None when the deadline or the disk cap ended it.
    """

    exit_code: int | None
    output: bytes
    total_bytes: int
    dropped_bytes: int
    seconds: float
    timed_out: bool = False
    oom: bool = False
    disk_full: bool = False


class Sandbox(Protocol):
    """One isolated place that lives from ``start`` to ``stop``. Also a context manager."""

    spec: SandboxSpec

    def start(self) -> None:
        """Start it; writable mounts then belong to the uid inside, and an agent finds its ``HOME`` made."""
        ...

    def exec(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> ExecResult:
        """Run ``argv`` as the agent's uid and wait for it, at most ``deadline`` seconds.

        At the deadline the command and everything it started, ``setsid`` children included, is killed; background
        jobs of earlier calls go on. A missing program gives exit code 127.

        Raises
        ------
        SandboxDead
            The sandbox itself is gone.
        """
        ...

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write files, paths absolute inside the sandbox, below a writable mount, owned by the agent's uid."""
        ...

    def get(self, path: str, limit: int = 16 * 1024 * 1024) -> bytes:
        """Read a regular file below a mount without following links.

        Raises
        ------
        FileNotFoundError
            There is none.
        ValueError
            It is not a regular file, leads through a link, is larger than ``limit`` bytes, or not below a mount.
        """
        ...

    def alive(self) -> bool: ...

    def stop(self) -> None:
        """End it and everything in it; idempotent; nothing is left when it returns."""
        ...

    def __enter__(self) -> Sandbox: ...

    def __exit__(self, *exc: object) -> None: ...


@dataclass(frozen=True)
class Protection:
    """One promise of a back end: ``full``, ``partial`` (the note says how far) or ``none``."""

    name: str
    level: Literal["full", "partial", "none"]
    note: str = ""


@dataclass(frozen=True)
class Availability:
    """Whether a back end works here, and if not, why and what to install."""

    ok: bool
    detail: str


class Backend(Protocol):
    """A kind of sandbox."""

    name: str

    def available(self) -> Availability: ...

    def protections(self) -> tuple[Protection, ...]: ...

    def create(self, spec: SandboxSpec) -> Sandbox: ...

    def environment_digest(self, role: Role) -> str:
        """Digest of what the sandbox is made of: the image's id, or that of the package folder."""
        ...

    def reap(self) -> list[str]:
        """Remove what dead runners left behind, touch nothing of living ones, and name what was removed."""
        ...
