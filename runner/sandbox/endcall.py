"""End all processes of one call. Its text is run *inside* a sandbox, by ``python3 -c``, as the agent's uid.

A call's processes carry its mark in their environment, wherever they stand in the process tree. Those of earlier calls are
spared; a process that hides its mark is not.
"""

import os
import signal
import sys
import time

PATIENCE = 2.0
"""Seconds of one-by-one killing after which everything of this uid is killed at once, earlier calls included."""


def is_victim(pid: int, variable: bytes, call: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            status = file.read()
        if b"\nState:\tZ" in status or b"\nUid:\t%d\t" % os.getuid() not in status:
            return False
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
    except OSError:
        return True
    return not is_earlier(environ, variable, call)


def is_earlier(environ: bytes, variable: bytes, call: bytes) -> bool:
    secret, _, number = call.partition(b".")
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == variable:
            other_secret, _, other_number = value.partition(b".")
            return other_secret == secret and other_number.isdigit() and int(other_number) < int(number)
    return False


def victims(variable: bytes, call: bytes) -> list[int]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    spared = (1, os.getpid())  # the first process cannot be killed from inside
    return [pid for pid in pids if pid not in spared and is_victim(pid, variable, call)]


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def end_call(variable: bytes, call: bytes) -> None:
    """Stop, then kill: what is stopped cannot fork, so that a fork bomb does not outrun the killing."""
    began = time.monotonic()
    while found := victims(variable, call):
        if time.monotonic() - began > PATIENCE:
            os.kill(-1, signal.SIGKILL)
        send(found, signal.SIGSTOP)
        send(victims(variable, call), signal.SIGKILL)
        time.sleep(0.005)


if __name__ == "__main__":
    end_call(sys.argv[1].encode(), sys.argv[2].encode())
