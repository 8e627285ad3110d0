"""Real sweeps on this machine: to the end, interrupted, paused, refused, amended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from scripted_server import failure

from hf_datasets.records import load_record
from runner.sweep.ledger import iter_ledger, read_book

pytestmark = [pytest.mark.slow, pytest.mark.bubblewrap]


@pytest.fixture(autouse=True)
def _needs_bubblewrap(usable):
    usable("bubblewrap")


def soon(condition, within=60.0):
    give_up = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    return found


def ended(process, within=60.0):
    _, words = process.communicate(timeout=within)
    return process.returncode, words.decode()


def hidden(sweep):
    return [path for path in sweep.folder.root.rglob(".*") if "workspace" not in path.parts]


def test_from_the_plan_to_the_last_record(sweep):
    sweep.write(repeats=2)
    plan = sweep("plan", "--json").json
    assert (plan["cells"], plan["missing"]) == (2, [])
    assert sweep("run").code == 2  # not locked
    sweep.locked()
    assert sweep("status", "--json").json["done"] == 0
    lines = sweep("run", "--slots", 2, "--json").out.splitlines()
    assert json.loads(lines[-1])["done"] == 2
    status = sweep.status()
    assert (status["planned"], status["done"], status["missing"], status["attempts"]) == (2, 2, 0, 2)
    assert status["ends"] == {"submitted": 2}
    assert status["state"] == "done"
    assert len(sweep.records()) == 2
    assert not hidden(sweep)
    before = sweep.folder.ledger.read_bytes()
    assert sweep("run").code == 0
    assert sweep.folder.ledger.read_bytes() == before


def test_amending_runs_what_is_new_and_grades_again_what_was_sealed_by_hand(sweep):
    sweep.write(repeats=1).locked()
    assert sweep("run").code == 0
    (record,) = sweep.records()
    first = load_record(record)
    sweep.write(repeats=2)
    assert sweep("plan", "--json").json["amendment"] == {"reuse": 1, "run": 1}
    refused = sweep("lock")
    assert refused.code == 2
    assert "--amend" in refused.err
    # a record that somebody sealed by hand is not the sweep's
    record.write_text(record.read_text().replace('"turns": 2', '"turns": 3'))
    sweep.locked("--amend")
    assert sweep("run").code == 0
    again = load_record(record)
    assert again.turns == first.turns
    assert again.supersedes is not None
    steps = [tuple(line["steps"]) for line in iter_ledger(sweep.folder.ledger) if line["event"] == "started"]
    assert sorted(steps) == [("regrade", "rejudge"), ("run",), ("run",)]


def test_one_driver_pause_and_resume(sweep, model):
    answering = threading.Event()
    served = model(before=lambda _request: None if answering.wait(120) else failure(500))
    sweep.write(served, repeats=3).locked()
    process = sweep.start("--slots", 1)
    soon(lambda: served.server.requests)
    second = sweep("run")
    assert second.code == 2
    assert str(process.pid) in second.err
    assert sweep("lock").code == 2
    paused = sweep("pause")
    assert str(process.pid) in paused.out
    answering.set()
    soon(lambda: (status := sweep.status())["state"] == "paused" and status["running"] == 0)
    assert sweep.status()["done"] == 1
    time.sleep(1.0)
    assert sweep.status()["done"] == 1
    assert process.poll() is None
    sweep("resume")
    assert ended(process)[0] == 0
    assert sweep.status()["done"] == 3


def test_one_signal_drains_two_break_off(sweep, model):
    served = model(code="import time; time.sleep(2)")
    sweep.write(served, repeats=6).locked()
    process = sweep.start("--slots", 2)
    soon(lambda: len(served.answered) >= 2)
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 128 + signal.SIGINT
    book = read_book(sweep.folder.ledger)
    drained = [state for state in book.cells.values() if state.done is not None]
    assert len(drained) == len(book.cells) in (1, 2, 3)

    served.code = "import time; time.sleep(100)"
    asked = len(served.answered)
    process = sweep.start("--slots", 2)
    soon(lambda: len(served.answered) >= asked + 2)
    process.send_signal(signal.SIGTERM)
    soon(lambda: sweep.status()["state"] == "draining")
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    assert ended(process)[0] == 128 + signal.SIGTERM
    assert time.monotonic() - started < 30
    causes = [line["cause"] for line in iter_ledger(sweep.folder.ledger) if line["event"] == "ended"]
    assert causes.count("interrupted") == 2
    assert not hidden(sweep)

    served.code = "print(1)"
    assert sweep("run").code == 0
    assert sweep.status()["done"] == 6
    assert sweep.status()["open_requests"] == 0


def test_cancel_breaks_off_and_stands_until_it_is_taken_back(sweep, model):
    served = model(code="import time; time.sleep(100)")
    sweep.write(served, repeats=2).locked()
    process = sweep.start("--slots", 1)
    soon(lambda: served.answered)
    assert sweep("cancel").code == 0
    code, words = ended(process, within=60)
    assert code == 4
    assert "cancelled" in words
    refused = sweep("run")
    assert refused.code == 2
    assert "resume" in refused.err
    served.code = "print(1)"
    sweep("resume")
    assert sweep("run").code == 0
    assert sweep.status()["done"] == 2


def test_a_refused_key_stops_that_agent_at_once(sweep, model):
    served = model(before=lambda _request: failure(401, "no such key"))
    sweep.write(served, repeats=5).locked()
    answer = sweep("run", "--slots", 1)
    assert answer.code == 4
    assert "provider_refused" in answer.err
    assert len(served.server.requests) == 1
    served.before = None
    assert sweep("run", "--slots", 2).code == 0
    status = sweep.status()
    assert (status["done"], status["attempts"]) == (5, 6)
    assert len(list(sweep.folder.runs.glob("*/*/*/r00.attempt1"))) == 1


def test_a_budget_is_kept_to_a_request_for_each_running_cell(sweep, model):
    served = model()
    sweep.write(served, repeats=6, budget={"tokens": 12_000}).locked()
    answer = sweep("run", "--slots", 2)
    assert answer.code == 4
    assert "12,000 tokens" in answer.err
    status = sweep.status()
    spent = status["tokens_in"] + status["tokens_out"]
    assert spent == sum(one["total_tokens"] for one in served.answered.values())
    assert spent <= 12_000
    assert 0 < status["done"] < 6
    sweep.write(served, repeats=6, budget={"tokens": 60_000}).locked("--amend")
    assert sweep("run", "--slots", 2).code == 0
    assert sweep.status()["done"] == 6


def test_a_task_that_changes_under_a_sweep_stops_it(sweep, model):
    """What is staged is not what was locked: refused at once, and by every worker that is under way."""
    served = model(code="import time; time.sleep(0.5)")
    sweep.write(served, repeats=3).locked()
    lock = json.loads(sweep.folder.lock.read_text())
    lock["tasks"]["vqa-rad-task"]["manifest_sha256"] = "0" * 64
    sweep.folder.lock.write_text(json.dumps(lock))
    answer = sweep("run")
    assert answer.code == 2
    assert "tasks changed since the sweep was locked" in answer.err
    assert not served.server.requests


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own for the sweeps' folder, 400 MiB large."""
    place = tmp_path / "sweeps"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_pauses_and_goes_on_by_itself(sweep, model, small_disk):
    served = model(code="import time; time.sleep(0.5)")
    sweep.write(served, repeats=6, retries=0).locked()
    process = sweep.start("--slots", 2)
    soon(lambda: served.answered)
    filler = Path(small_disk, "filler")
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            pass  # full to the last byte
    soon(lambda: (status := sweep.status())["state"] == "paused" or not status["running"])
    time.sleep(1.5)
    assert process.poll() is None
    filler.unlink()
    assert ended(process)[0] == 0
    book = read_book(sweep.folder.ledger)
    assert len(book.cells) == 6
    assert all(state.done is not None and state.open is None for state in book.cells.values())
    assert not hidden(sweep)
