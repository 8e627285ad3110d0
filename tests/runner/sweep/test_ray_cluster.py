"""A sweep on a cluster of three machines: one goes away in the middle, the driver is killed, and nothing is lost.

The machines are three Ray nodes of this one; each runs cells in a sandbox and sends run folders back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import fields
from pathlib import Path

import psutil
import pytest

from hf_datasets.records import load_record
from runner.cell import Cell
from runner.errors import EnvironmentProblem
from runner.execute import Options
from runner.sweep.engine import Job, Needs
from runner.sweep.folder import SweepFolder
from runner.sweep.form import SweepForm
from runner.sweep.inputs import Inputs
from runner.sweep.ledger import iter_ledger
from runner.sweep.lock import freeze, store
from runner.sweep.ray_engine import RayEngine
from runner.sweep.report.write import write_report
from tasks.names import Release, Tier

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.bubblewrap]

REPOSITORY = Path(__file__).parents[3]
PATHS = os.pathsep.join(map(str, (REPOSITORY, Path(__file__).parent)))
"""Where the nodes' workers find the project and ``ray_parts``."""
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "3",
    "OMP_NUM_THREADS": "1",
}
OF_THE_RUN = {
    "run_id", "repeat", "attempt", "started_at", "finished_at", "seconds_working", "seconds_wall", "stages",
    "cell_sha256", "trace_sha256",
}  # fmt: skip
"""Fields of a record that name the run, hold times, or are digests of files that do."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where everything of this module lies; also what its worker processes are known by."""
    return tmp_path_factory.mktemp("cluster")


def added(cluster, **node):
    """One more node. Ray gives one that is slow to start on a busy machine up for good; then another is started."""
    for _ in range(4):
        with contextlib.suppress(Exception):
            return cluster.add_node(wait=False, **node)
    raise AssertionError("no Ray node started")


@pytest.fixture(scope="module")
def cluster(place):
    """Three nodes with a CPU each, that may be killed one by one."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        here = {"AUTOMEDBENCH_SCRATCH": str(place / "scratch"), "PYTHONPATH": PATHS}
        for name, value in (ENVIRONMENT | here).items():
            patch.setenv(name, value)
        node = {"num_cpus": 1, "memory": 2**30, "object_store_memory": 80 * 2**20}
        made = Cluster()
        try:
            made.workers = [added(made, **node, include_dashboard=False) for _ in range(3)][1:]
            made.wait_for_nodes(timeout=120)
            yield made
        finally:
            made.shutdown()


class Locked:
    """A locked sweep, driven by processes of their own."""

    def __init__(self, place: Path, name: str, repeats: int) -> None:
        self.folder, self.data = SweepFolder(place / name), place / "data"
        form = SweepForm(
            name=name, agents=("noop",), tasks=("vqa-rad-task",), repeats=repeats, sandbox="bubblewrap",
            network="none", limits={"cpus": 1, "memory_mb": 512}, retry_seconds=0.1,
        )  # fmt: skip
        store(self.folder, freeze(form, self.data))

    def start(self, *options) -> subprocess.Popen:
        arguments = [
            "-m",
            "runner",
            "sweep",
            "run",
            self.folder.root,
            "--data",
            self.data,
            "--quiet",
            *options,
        ]
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)], cwd=REPOSITORY, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=os.environ | ENVIRONMENT,
        )  # fmt: skip

    def run(self, *options) -> None:
        process = self.start(*options)
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, out + err

    def lines(self, event: str) -> list[dict]:
        return [line for line in iter_ledger(self.folder.ledger) if line["event"] == event]

    def wait_for_records(self, number: int, process: subprocess.Popen) -> None:
        give_up = time.monotonic() + 180
        while sum(end["record_sha256"] is not None for end in self.lines("ended")) < number:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.1)

    def records(self, tier: str = "*") -> list[Path]:
        return sorted(self.folder.runs.glob(f"*/{tier}/*/r??/record.json"))


def comparable(folder: Path) -> dict[str, object]:
    """All that may not depend on where and when a run was made."""
    record = load_record(folder / "record.json").model_dump(mode="json")
    names = ("report.json", "judgement.json", "brief.md", "submission/manifest.json")
    return {name: value for name, value in record.items() if name not in OF_THE_RUN} | {
        name: (folder / name).read_bytes() for name in names
    }


def test_a_lost_machine_and_a_killed_driver_cost_nothing_but_time(cluster, place, usable):
    usable("bubblewrap")
    sweep = Locked(place, "on-ray", repeats=20)
    on_ray = ("--engine", "ray", "--address", cluster.address)

    driver = sweep.start(*on_ray)
    sweep.wait_for_records(6, driver)
    cluster.remove_node(cluster.workers[0], allow_graceful=False)
    sweep.wait_for_records(14, driver)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert len(sweep.records()) < 40
    sweep.run(*on_ray)

    assert len({load_record(path).run_id for path in sweep.records()}) == 40
    causes = Counter(end["cause"] for end in sweep.lines("ended"))
    assert set(causes) == {"submitted", "worker_lost", "interrupted"}
    assert causes["submitted"] == len(sweep.records()) == 40
    assert len(sweep.lines("started")) == sum(causes.values())

    scratch = place / "scratch"
    assert [path for path in sweep.folder.root.rglob(".*") if path.name != ".driver.lock"] == []
    assert [path for path in scratch.iterdir() if path.is_dir()] == []
    commands = [str(process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(scratch) in command]
    assert "40 of 40 planned runs are scored" in write_report(sweep.folder.root)[1].read_text()

    locally = Locked(place, "locally", repeats=1)
    locally.run("--slots", "2")
    for tier in ("lite", "standard"):
        [expected] = [comparable(path.parent) for path in locally.records(tier)]
        assert [path for path in sweep.records(tier) if comparable(path.parent) != expected] == []


def test_a_cluster_that_holds_no_cell_is_refused_before_anything_is_given(cluster):
    with pytest.raises(
        EnvironmentProblem, match="no machine of the Ray cluster holds a cell, which takes 9 CPU"
    ):
        RayEngine(cluster.address, needs=Needs(cpus=9)).start()
    assert not ray.is_initialized()


def test_breaking_off_waits_for_the_workers(cluster, tmp_path):
    cell = Cell("vqa-rad-task", Tier.LITE, Release.PHANTOM, "noop")
    inputs = Inputs(**{field.name: "" for field in fields(Inputs)})
    engine = RayEngine(cluster.address, work="ray_parts:wait_to_be_broken_off")
    engine.start()
    engine.give(Job(cell, 1, ("run",), Options(tmp_path / "runs", tmp_path), inputs))
    give_up = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < give_up:
        assert engine.ended(0.1) == []
    engine.close(30.0)
    assert (tmp_path / "broken off").exists()
    assert not ray.is_initialized()
