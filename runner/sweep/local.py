"""The local engine: one long-lived worker process for each slot of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

from hf_datasets.failures import Cause
from runner.errors import EnvironmentProblem
from runner.provenance import gpus, hardware
from runner.sweep.engine import AttemptEnd, Job
from runner.sweep.jobs import interrupted

RUN_JOB = "runner.sweep.jobs:run_job"
START_SECONDS = 120.0
FALSE_STARTS = 10
"""So many workers may die in a row before they are ready; then something is wrong with the machine."""
ROOT = Path(__file__).resolve().parents[2]


class _Worker:
    """One process and the job that it does."""

    def __init__(self, work: str, gpus_each: int, devices: Sequence[str], log: int) -> None:
        ours, theirs = socket.socketpair()
        end, lifeline = os.pipe()
        descriptors = (theirs.fileno(), end)
        command = [
            *(sys.executable, "-m", "runner.sweep.worker", *map(str, descriptors)),
            *(work, str(gpus_each), *devices),
        ]
        self.process = subprocess.Popen(
            command,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )
        theirs.close()
        os.close(end)
        self._lifeline = lifeline
        self.connection = Connection(ours.detach())
        self.ready = False
        self.job: Job | None = None

    def let_go(self) -> None:
        """Close what is ours; the process is gone or ends by it."""
        self.connection.close()
        os.close(self._lifeline)


class LocalEngine:
    """Slots of this machine; see ``runner.sweep.engine.Engine``.

    Parameters
    ----------
    slots : int, optional
        How many cells run at a time; by default one for each lot of ``gpus_each`` devices, or one for each lot of
        ``cpus_each`` cores.
    gpus_each, cpus_each
        What one cell takes.
    log : Path, optional
        Where workers' own words go.
    work : str
        ``module:function`` that workers call for each job.
    """

    name = "local"

    def __init__(
        self,
        slots: int | None = None,
        gpus_each: int = 0,
        cpus_each: float = 2.0,
        log: Path | None = None,
        work: str = RUN_JOB,
    ) -> None:
        self._devices = [gpu.uuid for gpu in gpus()] if gpus_each else []
        most = len(self._devices) // gpus_each if gpus_each else None
        if slots is None:
            slots = max(1, int(hardware().cpu_count / cpus_each)) if most is None else most
        self.slots = slots if most is None else min(slots, most)
        self._gpus_each = gpus_each
        self._work = work
        self._log_path = log
        self._log = subprocess.DEVNULL
        self._workers: list[_Worker] = []
        self._false_starts = 0

    def start(self) -> None:
        if self.slots < 1:
            raise EnvironmentProblem(
                f"each cell wants {self._gpus_each} GPUs, and this machine has {len(self._devices)}"
            )
        if self._log_path is not None:
            self._log = os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        for _ in range(self.slots):
            self._hire()
        give_up = time.monotonic() + START_SECONDS
        while not any(worker.ready for worker in self._workers):
            self.ended(1.0)
            if time.monotonic() > give_up:
                raise EnvironmentProblem(f"no worker process became ready within {START_SECONDS:.0f} s")

    def free(self) -> int:
        return sum(worker.ready and worker.job is None for worker in self._workers)

    def give(self, job: Job) -> None:
        worker = next(worker for worker in self._workers if worker.ready and worker.job is None)
        worker.job = job
        with contextlib.suppress(OSError):  # a worker that is gone ends the attempt when it is looked at
            worker.connection.send(job)

    def ended(self, timeout: float) -> Sequence[AttemptEnd]:
        by_connection = {worker.connection: worker for worker in self._workers}
        ends = []
        for connection in wait(list(by_connection), timeout):
            assert isinstance(connection, Connection)
            worker = by_connection[connection]
            if (end := self._hear(worker)) is not None:
                ends.append(end)
        return ends

    def close(self, patience: float) -> None:
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.process.send_signal(signal.SIGTERM)
        give_up = time.monotonic() + patience
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.let_go()
        self._workers = []
        if self._log != subprocess.DEVNULL:
            os.close(self._log)
            self._log = subprocess.DEVNULL

    def pids(self) -> list[int]:
        """The worker processes."""
        return [worker.process.pid for worker in self._workers]

    def _hire(self) -> None:
        self._workers.append(_Worker(self._work, self._gpus_each, self._devices, self._log))

    def _hear(self, worker: _Worker) -> AttemptEnd | None:
        try:
            said = worker.connection.recv()
        except (EOFError, OSError):
            return self._lost(worker)
        if said == "ready":
            worker.ready = True
            self._false_starts = 0
            return None
        assert isinstance(said, AttemptEnd)
        worker.job = None
        return said

    def _lost(self, worker: _Worker) -> AttemptEnd | None:
        """Put another worker in the place of one that is gone; the end of its attempt, if it had one."""
        worker.process.kill()
        code = worker.process.wait()
        worker.let_go()
        self._workers.remove(worker)
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= FALSE_STARTS:
                raise EnvironmentProblem(
                    f"{FALSE_STARTS} worker processes in a row ended before they were ready (exit {code}); "
                    f"their words are in {self._log_path}"
                )
        self._hire()
        if worker.job is None:
            return None
        return interrupted(worker.job, f"the worker process ended (exit {code})", Cause.WORKER_LOST)
