"""A worker process of the local engine: imports once, then does one job after the other until its driver is gone.

    python -m runner.sweep.worker CONNECTION LIFELINE MODULE:FUNCTION GPUS [DEVICE ...]

``CONNECTION`` and ``LIFELINE`` are descriptors that the driver made. Nothing ever comes down the lifeline: its end is
the driver's end, and then the job is broken off, the sandbox stopped, and the process ends.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from runner.stop import Stopped, listen

LAST_SECONDS = 20.0
"""What breaking off may take when the driver is gone."""


def main(arguments: list[str]) -> int:
    connection = Connection(int(arguments[0]))
    lifeline = int(arguments[1])
    listen()
    threading.Thread(target=_end_with_driver, args=(lifeline,), daemon=True).start()
    try:
        _serve(connection, arguments[2], int(arguments[3]), arguments[4:])
    except Stopped as stopped:
        return stopped.exit_code
    except (EOFError, OSError):
        pass  # the driver is gone
    return 0


def _serve(connection: Connection, work: str, gpus: int, devices: list[str]) -> None:
    from dataclasses import replace

    from runner.sweep.engine import Job
    from runner.sweep.jobs import interrupted
    from runner.sweep.leases import Leases

    module, _, function = work.partition(":")
    run_job = getattr(importlib.import_module(module), function)
    with Leases() as leases:
        mine = leases.take(gpus, devices) if gpus else ()
        connection.send("ready")
        while True:
            job: Job = connection.recv()
            job = replace(job, options=replace(job.options, gpus=mine))
            try:
                end = run_job(job)
            except Stopped as stopped:
                _last_words(connection, interrupted(job, f"stopped by {stopped}"))
                raise
            connection.send(end)


def _last_words(connection: Connection, end: object) -> None:
    try:
        connection.send(end)
    except OSError:
        return  # nobody listens; the next driver reads it from the folder


def _end_with_driver(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
