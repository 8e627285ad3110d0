"""The local engine's processes, and GPUs leased by device id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hf_datasets.failures import Cause
from runner import provenance
from runner.cell import Cell, held
from runner.errors import EnvironmentProblem
from runner.execute import Options
from runner.sweep import leases
from runner.sweep.engine import Job
from runner.sweep.inputs import Inputs
from runner.sweep.leases import Leases
from runner.sweep.local import FALSE_STARTS, LocalEngine
from tasks.names import Release, Tier

HERE = Path(__file__).parent
DEVICES = ("GPU-aaaa", "GPU-bbbb")
NOTHING = Inputs(**dict.fromkeys(Inputs.__dataclass_fields__, ""))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """Leases in a folder of the test's own, and workers that find what they shall do."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    yield
    provenance.gpus.cache_clear()
    provenance.hardware.cache_clear()


@pytest.fixture
def devices(monkeypatch, tmp_path):
    """A machine with two devices, as its own program lists them; ``busy`` names one with a process on it."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    busy = tmp_path / "busy"
    busy.write_text("")
    lines = "\\n".join(f"{uuid}, NVIDIA A100" for uuid in DEVICES)
    program.write_text(f'#!/bin/sh\ncase "$1" in *compute*) cat {busy};; *) printf "{lines}\\n";; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    provenance.gpus.cache_clear()
    provenance.hardware.cache_clear()
    return busy


def job(what, repeat=0):
    cell = Cell(what, Tier.LITE, Release.PHANTOM, "noop", repeat)
    return Job(cell, 1, ("run",), Options(Path("/nowhere"), Path("/nowhere")), NOTHING)


@pytest.fixture
def engine(tmp_path):
    made = []

    def make(**settings):
        settings = {"slots": 2, "log": tmp_path / "workers.log", "work": "probe_work:work"} | settings
        made.append(LocalEngine(**settings))
        return made[-1]

    yield make
    for one in made:
        one.close(5)


def all_free(engine):
    give_up = time.monotonic() + 60
    while engine.free() < engine.slots:
        assert time.monotonic() < give_up
        assert not engine.ended(0.1)
    return engine


def ends(engine, number):
    found, give_up = [], time.monotonic() + 60
    while len(found) < number:
        assert time.monotonic() < give_up
        found += engine.ended(0.2)
    return found


def test_workers_live_on_and_one_that_dies_is_replaced(engine):
    made = engine()
    made.start()
    all_free(made)
    made.give(job("slow"))
    made.give(job("slow", 1))
    assert made.free() == 0
    first = {end.host for end in ends(made, 2)}
    assert len(first) == 2
    made.give(job("die"))
    (lost,) = ends(made, 1)
    assert (lost.cause, lost.key) == (Cause.WORKER_LOST, "die/lite/noop/r00")
    assert "exit 7" in lost.detail
    all_free(made)
    made.give(job("slow"))
    made.give(job("slow", 1))
    assert len({end.host for end in ends(made, 2)} - first) == 1


def test_closing_ends_what_hangs_within_its_patience(engine):
    made = engine()
    made.start()
    all_free(made)
    made.give(job("hang"))
    time.sleep(0.3)
    pids = made.pids()
    started = time.monotonic()
    made.close(10)
    assert time.monotonic() - started < 12
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_workers_end_with_a_driver_that_was_killed(tmp_path):
    code = (
        "import sys, time; from runner.sweep.local import LocalEngine; "
        "e = LocalEngine(2, work='probe_work:work'); e.start(); print(*e.pids(), flush=True); time.sleep(600)"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE.parents[2]
    )
    pids = driver.stdout.readline().split()
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    give_up = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < give_up
        time.sleep(0.1)


def test_a_machine_where_no_worker_starts_is_reported(engine):
    made = engine(work="no_such_module:work")
    with pytest.raises(EnvironmentProblem, match=f"{FALSE_STARTS} worker processes in a row"):
        made.start()


def test_each_slot_has_devices_of_its_own(engine, devices):
    del devices
    made = engine(slots=None, gpus_each=1)
    assert made.slots == 2
    made.start()
    all_free(made)
    made.give(job("slow"))
    made.give(job("slow", 1))
    assert sorted(end.detail for end in ends(made, 2)) == list(DEVICES)


def test_too_few_devices(engine, devices):
    del devices
    with pytest.raises(EnvironmentProblem, match="3 GPUs"):
        engine(slots=None, gpus_each=3).start()


def test_a_device_is_leased_once_and_again_when_it_is_let_go(devices):
    del devices
    with Leases() as first, Leases() as second:
        assert first.take(1, DEVICES) == DEVICES[:1]
        assert second.take(1, DEVICES) == DEVICES[1:]
        with Leases() as third, pytest.raises(EnvironmentProblem, match="0 of 2"):
            third.take(1, DEVICES)
    with Leases() as again:
        assert again.take(2, DEVICES) == DEVICES
    assert not list(leases.lease_folder().iterdir())


def test_a_device_that_still_computes_is_not_given_out(devices):
    devices.write_text(f"{DEVICES[0]}\n")
    with Leases() as mine:
        assert mine.take(1, DEVICES, patience=0.1) == DEVICES[1:]


def test_the_lease_of_a_process_that_was_killed_is_free(devices, tmp_path):
    del devices
    code = (
        "import time; from runner.sweep.leases import Leases; l = Leases(); "
        f"print(*l.take(2, {DEVICES!r}), flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE.parents[2]
    )
    assert tuple(holder.stdout.readline().split()) == DEVICES
    with Leases() as mine, pytest.raises(EnvironmentProblem):
        mine.take(1, DEVICES)
    holder.kill()
    holder.communicate()
    with Leases() as mine:
        assert mine.take(2, DEVICES) == DEVICES


def test_a_lock_file_is_gone_afterwards_and_names_its_holder(tmp_path):
    path = tmp_path / "lock"
    with held(path, "me") as holder:
        assert holder is None
        with held(path) as other:
            assert other == "me"
        assert path.exists()
    assert not path.exists()
