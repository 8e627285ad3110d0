"""The published sweep of 3,480 runs, with agents that do nothing in sandboxes that are not there: the rest is ours."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.figures import table
from benchmarks.stub_sandbox import use_stub
from tasks.registry import all_tasks

AGENTS = 6
SIZES = (100, 3480)
SLOTS = 2


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for size in SIZES:
            measured = _in_a_process_of_its_own(size, Path(place))
            rows += [
                (
                    f"sweep of {size} runs, {SLOTS} slots",
                    f"{measured['ms_per_run']:.0f} ms a run, {measured['cpu_ms']:.0f} ms of it computing "
                    f"({measured['seconds']:.0f} s in all)",
                    "goal <= 60 ms a run beyond the agent's own time, flat",
                ),
                (f"driver of {size}", f"{measured['rss_mb']:.0f} MB", "goal <= 500 MB"),
                (f"sweep status on {size}", f"{measured['status_seconds']:.2f} s", "goal <= 0.5 s"),
            ]
    table(rows)


def _in_a_process_of_its_own(size: int, place: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.sweep_bench", "one", str(size), str(place)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _one(size: int, place: Path) -> None:
    from runner.sweep.broker import Broker
    from runner.sweep.budget import Purses
    from runner.sweep.control import driving
    from runner.sweep.driver import Driver, Setting
    from runner.sweep.folder import SweepFolder
    from runner.sweep.form import SweepForm
    from runner.sweep.hurdles import Hurdles
    from runner.sweep.ledger import Ledger
    from runner.sweep.live import View
    from runner.sweep.local import LocalEngine
    from runner.sweep.lock import freeze, load_lock, lock_id, store

    use_stub()
    folder, data = SweepFolder(place / f"sweep{size}"), place / "data"
    form = SweepForm.model_validate(_form(size, place))
    folder.runs.mkdir(parents=True)
    store(folder, freeze(form, data))
    lock = load_lock(folder)
    cells = len(lock.keys())
    ledger = Ledger(folder.ledger)
    engine = LocalEngine(SLOTS, log=folder.root / "workers.log", work="benchmarks.stub_sandbox:run_stubbed")
    broker = Broker(Purses(lock.form.budget, ledger.book.spend, {}), lock.form.rates_of)
    with driving(folder), contextlib.closing(broker):
        engine.start()
        while engine.free() < SLOTS:
            engine.ended(0.1)
        setting = Setting(folder, lock, lock_id(folder), data, broker)
        driver = Driver(setting, engine, ledger, Hurdles(folder.runs, None), View(quiet=True, as_json=False))
        started, cpu = time.monotonic(), _cpu_seconds()
        driver.run()
        seconds = time.monotonic() - started
    done = sum(state.done is not None for state in ledger.book.cells.values())
    if done != cells:
        raise SystemExit(f"{done} of {cells} cells are done: {driver.missing}")
    own = ledger.book.own_seconds
    print(
        json.dumps(
            {
                "ms_per_run": 1000 * (seconds - own / SLOTS) / cells,
                "cpu_ms": 1000 * (_cpu_seconds() - cpu) / cells,
                "seconds": seconds,
                "rss_mb": psutil.Process(os.getpid()).memory_info().rss / 2**20,
                "status_seconds": _status_seconds(folder.root),
            }
        )
    )


def _form(size: int, place: Path) -> dict[str, object]:
    """The first tasks of the paper, as many repeats as make the size; all of them for the published one."""
    names = [f"idle-{number}" for number in range(AGENTS)]
    agents = place / "agents.json"
    agents.write_text(json.dumps({"agents": {name: {"kind": "noop"} for name in names}}))
    form: dict[str, object] = {
        "name": f"sweep{size}", "agents": names, "agents_file": str(agents), "sandbox": "bubblewrap",
    }  # fmt: skip
    if size < 3480:
        tasks = [task.id for task in all_tasks() if task.in_paper][:8]
        form |= {"tasks": tasks, "repeats": max(1, round(size / (2 * AGENTS * len(tasks))))}
    return form


def _cpu_seconds() -> float:
    """Of this process and of the children that have ended: workers end with the driver."""
    times = psutil.Process().cpu_times()
    return times.user + times.system + times.children_user + times.children_system


def _status_seconds(folder: Path) -> float:
    """The best of five: other work on the machine is not what is measured."""
    command = [sys.executable, "-m", "runner", "sweep", "status", "--json", str(folder)]
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        _one(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
