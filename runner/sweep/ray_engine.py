"""The Ray engine: slots of many machines. Ray schedules; here stands only what a cell needs and how it comes back.

No file system is shared: a worker runs the cell in a place of its own and sends the run folder back through Ray's
object store; the driver checks it against its record and puts it in place. A machine that goes away ends its attempts
as ``worker_lost``, and the driver of the sweep gives them again, elsewhere.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hf_datasets.failures import Cause
from runner.cell import is_done, locked, set_aside
from runner.errors import Busy, EnvironmentProblem, words_of
from runner.execute import agent_has_finished
from runner.sweep import ray_task
from runner.sweep.carry import Damaged, arriving, packed, put_beside, put_over, require_sealed, unpack
from runner.sweep.engine import AttemptEnd, Job, Needs
from runner.sweep.jobs import DETAIL, interrupted
from runner.sweep.ray_task import Parcel

RUN_JOB = "runner.sweep.jobs:run_job"
DOCKER = "docker"
"""Custom resource of machines with a Docker engine; its amount is how many cells may use it at a time."""
DATA = "data:"
"""Prefix of the custom resource of a machine that holds staged data, followed by ``RELEASE/TASK``."""
A_LITTLE = 0.001
"""Of a resource that is there or not, and never used up."""
_OF_ANOTHER_MACHINE = (Cause.ENGINE_GONE, Cause.DISK_FULL, Cause.INTERRUPTED)
"""Obstacles that nobody waits for here: the attempt is made again, elsewhere, within bounds."""
LOOK_SECONDS = 2.0
"""How old a look at the cluster may be."""


@dataclass(frozen=True)
class _Running:
    job: Job
    stream: Any
    goes_on: bool
    """The job went on with the run folder that lies at the driver."""


class RayEngine:
    """Slots of a Ray cluster; see ``runner.sweep.engine.Engine``.

    Parameters
    ----------
    address : str, optional
        Of the cluster (``auto``, or ``HOST:PORT``); without one, a cluster of this machine alone is started.
    needs : Needs
        What one cell takes; says how many slots there are.
    slots : int, optional
        How many cells are given to Ray at a time. By default as many as the present machines hold; more than that
        wait in Ray, and are what its autoscaler starts machines for.
    work : str
        ``module:function`` that workers call for each job.
    """

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        needs: Needs = Needs(),  # noqa: B008  (frozen)
        slots: int | None = None,
        work: str = RUN_JOB,
    ) -> None:
        self._address = address
        self._needs = needs
        self._slots = slots
        self._work = work
        self._running: dict[Any, _Running] = {}
        self._not_given: list[AttemptEnd] = []
        self._nodes: list[dict[str, float]] = []
        self._looked = 0.0

    def start(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise EnvironmentProblem("the Ray engine needs Ray: pip install 'automedbench[ray]'") from None
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self._address is None:
                ray.init(include_dashboard=False, **quiet)
            else:
                ray.init(address=self._address, **quiet)
        except Exception as error:  # Ray raises that very class when a machine is too slow
            place = f"at {self._address}" if self._address else "could be started on this machine"
            raise EnvironmentProblem(f"no Ray cluster {place}: {words_of(error)}") from None
        self._task = ray.remote(max_retries=0, num_returns="streaming")(_on_a_worker)
        if self._slots is None and self.slots < 1:
            ray.shutdown()
            raise EnvironmentProblem(
                f"no machine of the Ray cluster holds a cell, which takes {_words(self._resources(self._needs))}; "
                "start one with these resources (see docs/sweeps-ray.md), or give --slots where machines are started "
                "on demand"
            )

    @property
    def slots(self) -> int:
        if self._slots is not None:
            return self._slots
        wanted = self._resources(self._needs)
        return sum(_fits(node, wanted) for node in self._cluster())

    def free(self) -> int:
        return max(0, self.slots - len(self._running))

    def give(self, job: Job) -> None:
        try:
            self._give(job)
        except (Busy, OSError) as error:
            self._not_given.append(interrupted(job, words_of(error), _cause_here(error)))

    def _give(self, job: Job) -> None:
        import ray

        folder = job.cell.folder(job.options.runs)
        pieces, attempts = None, 0
        with locked(folder):
            goes_on = job.steps[0] != "run" or (not is_done(folder) and agent_has_finished(folder))
            if goes_on:
                pieces = [ray.put(piece) for piece in packed(folder)]
            else:
                attempts = set_aside(folder) - 1
        wanted = self._resources(job.needs)
        task = self._task.options(
            num_cpus=wanted.pop("CPU"),
            num_gpus=wanted.pop("GPU", 0),
            memory=wanted.pop("memory", None),
            resources=wanted,
            name=job.id,
        )
        stream = task.remote(job, Parcel(attempts, _files_of(job), self._work), pieces)
        self._running[stream] = _Running(job, stream, goes_on)

    def ended(self, timeout: float) -> Sequence[AttemptEnd]:
        import ray

        if self._not_given:
            ends, self._not_given = self._not_given, []
            return ends
        if not self._running:
            time.sleep(timeout)
            return []
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [self._receive(self._running.pop(stream)) for stream in ready]

    def close(self, patience: float) -> None:
        import ray

        if not ray.is_initialized():
            return
        try:
            give_up = time.monotonic() + patience
            for stream in self._running:
                ray.cancel(stream, force=False)  # the worker breaks off, and stops its sandbox
            while self._running and time.monotonic() < give_up and not _is_idle():
                time.sleep(LOOK_SECONDS / 10)
            self._running.clear()
        finally:
            ray.shutdown()

    # --- what a cell needs, and what there is ---------------------------------------------------------------

    def _resources(self, needs: Needs) -> dict[str, float]:
        """What Ray is asked for. Data that some machine names are read there alone; others are taken to be anywhere."""
        wanted: dict[str, float] = {"CPU": needs.cpus}
        if needs.gpus:
            wanted["GPU"] = needs.gpus
        if needs.memory_mb:
            wanted["memory"] = needs.memory_mb * 1024 * 1024
        if needs.docker:
            wanted[DOCKER] = 1
        place = DATA + needs.data
        if needs.data and any(place in node for node in self._cluster()):
            wanted[place] = A_LITTLE
        return wanted

    def _cluster(self) -> list[dict[str, float]]:
        """Resources of each machine that lives; after the end, of those that last did."""
        import ray

        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS and ray.is_initialized():
            self._nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            self._looked = now
        return self._nodes

    # --- what came back -------------------------------------------------------------------------------------

    def _receive(self, running: _Running) -> AttemptEnd:
        import ray
        from ray.exceptions import RayError, RayTaskError, TaskCancelledError

        job = running.job
        try:
            end: AttemptEnd = ray.get(next(running.stream))
            folder = job.cell.folder(job.options.runs)
            with locked(folder), arriving(folder) as place:
                if _carry_over(running.stream, place):
                    if end.record_sha256 is not None:
                        require_sealed(place, end.record_sha256)
                    (put_over if running.goes_on else put_beside)(place, folder)
            return replace(end, cause=Cause.INFRA_ERROR) if end.cause in _OF_ANOTHER_MACHINE else end
        except TaskCancelledError:
            return interrupted(job, "stopped by the driver")
        except RayTaskError as error:
            return interrupted(job, f"on the worker: {words_of(error.cause or error)}"[:DETAIL], Cause.FAULT)
        except (RayError, Damaged) as error:
            return interrupted(job, f"lost on the way: {words_of(error)}"[:DETAIL], Cause.WORKER_LOST)
        except (Busy, OSError) as error:
            return interrupted(job, words_of(error)[:DETAIL], _cause_here(error))


def _is_idle() -> bool:
    """Whether no task runs on the cluster. A cancelled one counts as ended at once, so its resources are looked at."""
    import ray

    return bool(ray.available_resources().get("CPU", 0) >= ray.cluster_resources().get("CPU", 0))


def _cause_here(error: Exception) -> Cause:
    """What an error on the driver's machine means for an attempt."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Cause.DISK_FULL if full else Cause.INFRA_ERROR


def _on_a_worker(job: Job, parcel: Parcel, pieces: list[Any] | None) -> Iterator[AttemptEnd | bytes]:
    """The task. Pieces are fetched one by one, so that a large folder is never in memory as a whole."""
    import ray

    folder = None if pieces is None else (ray.get(piece) for piece in pieces)
    yield from ray_task.attempt(job, parcel, folder, ray.get_gpu_ids())


def _carry_over(stream: Iterable[Any], place: Path) -> bool:
    """Unpack what follows the end; False when there is no folder."""
    import ray

    pieces = (ray.get(reference) for reference in stream)
    first = next(pieces, None)
    if first is None:
        return False
    unpack(_chained(first, pieces), place)
    return True


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _files_of(job: Job) -> dict[str, bytes]:
    """Content of the files that the options name; the worker's machine need not have them."""
    paths = {"agents_file": job.options.agents_file, "judges_file": job.options.judges_file}
    return {option: path.read_bytes() for option, path in paths.items() if path is not None}


def _fits(node: Mapping[str, float], wanted: Mapping[str, float]) -> int:
    """How often ``wanted`` fits on a machine."""
    return min(int(node.get(name, 0.0) / amount + 1e-9) for name, amount in wanted.items() if amount > 0)


def _words(wanted: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in wanted.items())
