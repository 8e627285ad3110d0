"""Which OCI runtime runs the containers, and whose kernel they then use."""

from __future__ import annotations

import os

from runner.sandbox.base import Protection

VARIABLE = "AUTOMEDBENCH_DOCKER_RUNTIME"
OWN_KERNEL = ("runsc", "kata")
"""Beginnings of the names of runtimes that put a kernel of their own between a container and the host's."""


def runtime() -> str | None:
    """The runtime that the operator chose for all sandboxes; None: the engine's default."""
    return os.environ.get(VARIABLE, "").strip() or None


def kernel_protection() -> Protection:
    name = runtime()
    if name and name.startswith(OWN_KERNEL):
        return Protection("kernel", "full", f"another one than the host's, by {name}")
    return Protection(
        "kernel", "partial", f"the host's; {VARIABLE}=runsc (gVisor) or kata puts another one in between"
    )
