"""What both back ends show inside: the uid, the environment, and the mark that tells apart the processes of calls."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence

from runner.sandbox.base import AGENT_UID, SandboxSpec

HOME = "/workspace/home"
SITE = "/opt/site"
"""Where the locked packages are, in images and in bubblewrap alike."""

SOURCE = "/opt/automedbench"
"""Where the evaluator sandbox sees ``tasks`` and ``evaluator``; nothing is there in the agent's."""

CALL_VARIABLE = "AUTOMEDBENCH_CALL"
OWNER_VARIABLE = "AUTOMEDBENCH_OWNER"
LONGEST_WORD = 128 * 1024


def ids() -> tuple[int, int]:
    """Uid and gid of what runs inside: unprivileged ones when the runner is root, else the runner's own."""
    return (AGENT_UID, AGENT_UID) if os.getuid() == 0 else (os.getuid(), os.getgid())


def checked(argv: Sequence[str]) -> list[str]:
    """A command line as the kernel takes it; what is no valid text (a lone surrogate) is replaced.

    Raises
    ------
    ValueError
        It is empty, a word holds a NUL, or is longer than a word of a command line can be.
    """
    words = [word.encode("utf-8", "replace").decode() for word in argv]
    if not words or any("\0" in word for word in words):
        raise ValueError("a command line needs at least one word, and no word may hold a NUL character")
    if any(len(word.encode()) >= LONGEST_WORD for word in words):
        raise ValueError(
            f"no word of a command line may have {LONGEST_WORD} bytes; put it in a file or give it as stdin"
        )
    return words


def environment(spec: SandboxSpec) -> dict[str, str]:
    """Environment of a command, but for PATH; nothing comes from the host's."""
    threads = str(max(1, math.ceil(spec.cpus)))
    return {
        "HOME": HOME if spec.role == "agent" else "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONPATH": SITE if spec.role == "agent" else f"{SOURCE}:{SITE}",
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "Agg",
        "PIP_BREAK_SYSTEM_PACKAGES": "1",  # with an open network, `pip install` may fill the home folder
        "OMP_NUM_THREADS": threads,  # a CPU quota is invisible to thread pools: they would start one per core
        "OPENBLAS_NUM_THREADS": threads,
        **spec.env,
    }


def workdir(spec: SandboxSpec) -> str:
    """Where commands start: the wish of the spec when it lies in a mount, else the one folder that always exists."""
    inside = any(f"{spec.workdir}/".startswith(f"{mount.target.rstrip('/')}/") for mount in spec.mounts)
    return spec.workdir if inside else "/tmp"


def tmp_mb(spec: SandboxSpec) -> int:
    """Size of /tmp, which lives in memory and counts against it."""
    return max(16, spec.memory_mb // 4)


class CallMarks:
    """One mark per call, ``<secret of the sandbox>.<number>``, carried in the environment of all it starts."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(8)
        self._number = 1

    def first(self) -> str:
        """The mark of what must outlive every call."""
        return f"{self._secret}.0"

    def beyond(self) -> str:
        """A mark that no call has and before which only ``first`` comes: to end all calls there were."""
        return f"{self._secret}.1"

    def next(self) -> str:
        self._number += 1
        return f"{self._secret}.{self._number}"
