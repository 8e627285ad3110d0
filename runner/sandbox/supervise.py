"""Wait for one command: collect its output, hold it to its deadline and to the disk cap. Every back end uses it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol

from runner.sandbox.base import ExecResult, SandboxDead
from runner.sandbox.disk import DiskMeter
from runner.sandbox.output import BoundedOutput

TICK = 0.1
"""Longest wait for output before the deadline and the disk are looked at again, in seconds."""

GRACE = 2.0
"""How long the output of a killed command is still read."""


class Command(Protocol):
    """A command that was started in a sandbox."""

    def read(self, timeout: float) -> bytes | None:
        """Output that came within ``timeout`` seconds, perhaps none; None once the command ended and all was read."""
        ...

    def kill(self) -> None:
        """End everything the command started, and return when it is gone."""
        ...

    def finish(self) -> int:
        """Let go of the command, which has ended, and return its exit code (128 + n for signal n)."""
        ...

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the sandbox for memory while the command ran."""
        ...


def supervise(
    command: Command,
    *,
    deadline: float,
    disk: DiskMeter,
    on_output: Callable[[bytes], None] | None,
) -> ExecResult:
    """Run a started command to its end, at most ``deadline`` seconds.

    Whatever interrupts the wait (a signal, an error in ``on_output``) kills the command before it goes on.
    """
    output = BoundedOutput()
    began = time.monotonic()
    with disk.watching() as watch:
        try:
            ended_by = _pump(command, began + deadline, lambda: watch.full, output, on_output)
        except SandboxDead:
            raise
        except BaseException:
            command.kill()
            command.finish()
            raise
        exit_code = command.finish()
    kept, dropped = output.finish()
    return ExecResult(
        exit_code=None if ended_by else exit_code,
        output=kept,
        total_bytes=output.total,
        dropped_bytes=dropped,
        seconds=time.monotonic() - began,
        timed_out=ended_by == "deadline",
        oom=command.ran_out_of_memory(),
        disk_full=watch.full,
    )


def _pump(
    command: Command,
    deadline: float,
    disk_full: Callable[[], bool],
    output: BoundedOutput,
    on_output: Callable[[bytes], None] | None,
) -> Literal["deadline", "disk"] | None:
    ended_by: Literal["deadline", "disk"] | None = None
    last_read = float("inf")
    while time.monotonic() < last_read:
        chunk = command.read(max(0.0, min(TICK, deadline - time.monotonic())) if ended_by is None else TICK)
        if chunk is None:
            break
        if chunk:
            output.feed(chunk)
            if on_output:
                on_output(chunk)
        if ended_by is None and (disk_full() or time.monotonic() >= deadline):
            ended_by = "disk" if disk_full() else "deadline"
            command.kill()
            last_read = time.monotonic() + GRACE
    return ended_by
