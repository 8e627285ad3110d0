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
from pathlib import Path

import psutil
import pytest

from hf_datasets.records import load_record
from runner.sweep.ledger import iter_ledger
from runner.sweep.report.write import write_report

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.bubblewrap]

REPOSITORY = Path(__file__).parents[3]
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "3",
    "OMP_NUM_THREADS": "1",
}
SWEEP = """
name: three-machines
agents: [noop]
tasks: [vqa-rad-task]
repeats: {repeats}
sandbox: bubblewrap
network: none
limits: {{cpus: 1, memory_mb: 512}}
retry_seconds: 0.1
"""
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
        for name, value in (ENVIRONMENT | {"AUTOMEDBENCH_SCRATCH": str(place / "scratch")}).items():
            patch.setenv(name, value)
        node = {"num_cpus": 1, "memory": 2**30, "object_store_memory": 80 * 2**20}
        made = Cluster()
        try:
            made.workers = [added(made, **node, include_dashboard=False) for _ in range(3)][1:]
            made.wait_for_nodes(timeout=120)
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def sweep(place):
    """``sweep("run", ...)`` calls the command on the locked sweep; ``sweep.start`` does not wait for it."""

    class Sweep:
        def __init__(self, name: str, repeats: int) -> None:
            self.root = place / name / "three-machines"
            self.file = place / f"{name}.yaml"
            self.file.write_text(SWEEP.format(repeats=repeats))
            self("lock", self.file, "--sweeps", place / name)

        def __call__(self, command, *rest) -> str:
            process = self.start(command, *rest)
            out, err = process.communicate(timeout=240)
            assert process.returncode == 0, err
            return out

        def start(self, command, *rest):
            data = [] if command == "status" else ["--data", place / "data"]
            arguments = [sys.executable, "-m", "runner", "sweep", command, *map(str, [*rest, *data])]
            return subprocess.Popen(
                arguments, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=os.environ | ENVIRONMENT,
            )  # fmt: skip

        def ends(self) -> list[dict]:
            return [line for line in iter_ledger(self.root / "attempts.jsonl") if line["event"] == "ended"]

        def wait_for_records(self, number: int, process: subprocess.Popen) -> None:
            give_up = time.monotonic() + 180
            while sum(end["record_sha256"] is not None for end in self.ends()) < number:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < give_up
                time.sleep(0.1)

    return Sweep


def comparable(folder: Path) -> dict[str, object]:
    """All that may not depend on where and when a run was made."""
    record = load_record(folder / "record.json").model_dump(mode="json")
    names = ("report.json", "judgement.json", "brief.md", "submission/manifest.json")
    return {name: value for name, value in record.items() if name not in OF_THE_RUN} | {
        name: (folder / name).read_bytes() for name in names
    }


def test_a_lost_machine_and_a_killed_driver_cost_nothing_but_time(cluster, place, sweep, usable):
    usable("bubblewrap")
    on_ray = sweep("ray", repeats=20)
    drive = ("run", on_ray.root, "--engine", "ray", "--address", cluster.address, "--quiet")

    driver = on_ray.start(*drive)
    on_ray.wait_for_records(6, driver)
    cluster.remove_node(cluster.workers[0], allow_graceful=False)
    on_ray.wait_for_records(14, driver)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert len(list(on_ray.root.glob("runs/*/*/*/r??/record.json"))) < 40
    on_ray(*drive)

    records = [load_record(path) for path in on_ray.root.glob("runs/*/*/*/r??/record.json")]
    assert len(records) == 40
    assert len({record.run_id for record in records}) == 40
    causes = Counter(end["cause"] for end in on_ray.ends())
    assert causes["submitted"] == 40
    assert causes["worker_lost"] >= 1
    assert causes["interrupted"] >= 1
    assert set(causes) == {"submitted", "worker_lost", "interrupted"}
    started = [line for line in iter_ledger(on_ray.root / "attempts.jsonl") if line["event"] == "started"]
    assert len(started) == sum(causes.values())

    leftovers = [path for path in on_ray.root.rglob(".*") if path.name != ".driver.lock"]
    assert leftovers == []
    assert [path for path in (place / "scratch").iterdir() if path.is_dir()] == []
    assert not [
        one for one in psutil.process_iter(["cmdline"]) if str(place / "scratch") in str(one.info["cmdline"])
    ]

    assert "40 of 40 planned runs are scored" in write_report(on_ray.root)[1].read_text()
    locally = sweep("local", repeats=1)
    locally("run", locally.root, "--slots", "2", "--quiet")
    for tier in ("lite", "standard"):
        expected = comparable(locally.root / "runs/vqa-rad-task" / tier / "noop/r00")
        for folder in on_ray.root.glob(f"runs/*/{tier}/*/r??"):
            assert comparable(folder) == expected


def test_machines_that_hold_no_cell_are_refused_before_anything_is_given(cluster, place, sweep):
    with (place / "needy.yaml").open("w") as file:
        file.write(
            SWEEP.format(repeats=1)
            .replace("name: three-machines", "name: needy")
            .replace("cpus: 1", "cpus: 9")
        )
    made = sweep("needy-local", repeats=1)
    made("lock", place / "needy.yaml", "--sweeps", place / "needy")
    process = made.start(
        "run", place / "needy" / "needy", "--engine", "ray", "--address", cluster.address, "--quiet"
    )
    _, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "9 CPU" in err
    assert len(err.strip().splitlines()) == 1
