"""Where untrusted code runs: one contract, two back ends, and never a run without one of them."""

from __future__ import annotations

from typing import Literal

from runner.sandbox.base import (
    Availability,
    Backend,
    ExecResult,
    Mount,
    Protection,
    Sandbox,
    SandboxDead,
    SandboxSpec,
    SandboxUnavailable,
)

__all__ = [
    "Availability",
    "Backend",
    "BackendName",
    "ExecResult",
    "Mount",
    "Protection",
    "Sandbox",
    "SandboxDead",
    "SandboxSpec",
    "SandboxUnavailable",
    "all_backends",
    "choose_backend",
]

BackendName = Literal["auto", "docker", "bubblewrap"]


def all_backends() -> tuple[Backend, ...]:
    """Every back end there is, the preferred one first, whether it works here or not."""
    from runner.sandbox.bubblewrap import BubblewrapBackend
    from runner.sandbox.docker import DockerBackend

    return DockerBackend(), BubblewrapBackend()


def choose_backend(name: BackendName = "auto") -> Backend:
    """The back end of this name, or with ``auto`` the first that works on this machine.

    Raises
    ------
    SandboxUnavailable
        It does not work here; the message says what to install or to start.
    """
    reasons = []
    for backend in all_backends():
        if name in ("auto", backend.name):
            availability = backend.available()
            if availability.ok:
                return backend
            reasons.append(f"{backend.name}: {availability.detail}")
    if not reasons:
        raise SandboxUnavailable(f"no sandbox is called {name!r}; choose auto, docker or bubblewrap")
    raise SandboxUnavailable("no sandbox works here. " + "; ".join(reasons))
