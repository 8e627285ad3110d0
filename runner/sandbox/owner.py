"""Who a sandbox belongs to, written so that any later process can tell whether that runner still lives."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """One runner process. A pid alone is reused; with boot, start time and pid namespace it is unique."""

    boot_id: str
    pid: int
    start_time: str
    pid_namespace: str

    def __str__(self) -> str:
        return f"{self.boot_id}:{self.pid}:{self.start_time}:{self.pid_namespace}"

    @classmethod
    def current(cls) -> Owner:
        return cls(boot_id(), os.getpid(), _start_time(os.getpid()) or "0", _pid_namespace())

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner a label names, or None when the text is not one of ours."""
        parts = text.split(":")
        if len(parts) != 4 or not parts[1].isdigit():
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])

    def from_this_boot(self) -> bool:
        return self.boot_id == boot_id()

    def is_dead(self) -> bool:
        """Whether this runner provably ended: a pid of another pid namespace or another boot proves nothing."""
        if not self.from_this_boot() or self.pid_namespace != _pid_namespace():
            return False
        return _start_time(self.pid) != self.start_time


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink()).removeprefix("pid:").strip("[]")


def _start_time(pid: int) -> str | None:
    """Clock ticks since boot at which the process started; None when it is gone or only a zombie is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]
