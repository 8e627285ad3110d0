"""End all processes of one call. This file's text is also run *inside* a sandbox, as the agent's uid.

A call's processes carry its mark in their environment, wherever they stand in the process tree. Those of
earlier calls are spared; a process that hides its mark is not.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PATIENCE = 2.0
"""Seconds after which, inside, everything of this uid is killed, earlier calls included."""


def end_call(variable: str, call: str, candidates: Callable[[], list[int]], patience: float) -> bool:
    """Stop all candidates, kill those of the call and let the others go on; whether the call has ended.

    What is stopped cannot fork, so that a fork bomb does not outrun the killing; and it has let go of its
    memory's lock, without which its environment cannot be read and that a busy fork bomb holds for minutes.
    """
    give_up = time.monotonic() + patience
    while True:
        pids = candidates()
        send(signal.SIGSTOP, pids)
        victims = [pid for pid in pids if time.monotonic() < give_up and belongs(pid, variable, call)]
        send(signal.SIGKILL, victims)
        if not victims or time.monotonic() > give_up:
            send(signal.SIGCONT, pids)
            return not victims and time.monotonic() < give_up
        time.sleep(0.005)


def belongs(pid: int, variable: str, call: str) -> bool:
    """Whether a process is of this call, or does not say of which."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return not is_earlier(environ, variable.encode(), call.encode())


def is_earlier(environ: bytes, variable: bytes, call: bytes) -> bool:
    """Whether an environment carries the mark of a call of the same sandbox before this one."""
    secret, _, number = call.partition(b".")
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == variable:
            other_secret, _, other_number = value.partition(b".")
            return other_secret == secret and other_number.isdigit() and int(other_number) < int(number)
    return False


def uid_of(pid: int) -> int | None:
    """Real uid of a running process; None for one that is gone or only waits to be buried."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return None
    return None if b"\nState:\tZ" in status else int(status.partition(b"\nUid:\t")[2].split()[0])


def own_processes() -> list[int]:
    """Pids of this uid, but for this process and the first one, which cannot be killed from inside."""
    pids = (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())
    return [pid for pid in pids if pid not in (1, os.getpid()) and uid_of(pid) == os.getuid()]


def send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


if __name__ == "__main__" and not end_call(sys.argv[1], sys.argv[2], own_processes, PATIENCE):
    os.kill(-1, signal.SIGKILL)
