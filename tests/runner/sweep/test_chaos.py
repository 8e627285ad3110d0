"""Thirty kills over forty cells: every planned cell has one counted record, nothing leaks, and the bill is right."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
from sweep_parts import usd

from hf_datasets.failures import counts
from hf_datasets.records import load_record
from runner.sweep.ledger import iter_ledger, read_book
from runner.sweep.requests import read_requests

LEFT_WITHIN = 40.0


def processes(pattern):
    """Pids by command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if re.search(pattern, line):
                found.append(int(entry.name))
    return found


def children_of(pid):
    """Pids of the processes that the process started and that live."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Chaos:
    """Drives a sweep to its end while killing the driver, its workers and their sandboxes."""

    def __init__(self, sweep, seed, slots=2):
        self.sweep, self.slots = sweep, slots
        self.dice = random.Random(seed)
        self.kills = {"driver": 0, "worker": 0, "sandbox": 0}
        self.driver = None

    def run(self, kills, within):
        give_up = time.monotonic() + within
        while sum(self.kills.values()) < kills:
            assert time.monotonic() < give_up, self.kills
            self._alive()
            time.sleep(self.dice.uniform(0.1, 0.9))
            what = self.dice.choices(["driver", "worker", "sandbox"], [2, 4, 4])[0]
            self.kills[what] += self._kill(what)
        while self._alive() is None:
            assert time.monotonic() < give_up
            time.sleep(0.1)

    def _alive(self):
        """Start the driver where none runs; 0 once one has come to the sweep's end."""
        if self.driver is not None and (code := self.driver.poll()) is not None:
            words = self.driver.stderr.read().decode()
            self.driver.stderr.close()
            assert code in (0, -signal.SIGKILL), (code, words)
            self.driver = None
            if code == 0:
                return 0
        if self.driver is None:
            self.driver = self.sweep.start("--slots", self.slots)
        return None

    def _kill(self, what):
        if self.driver is None:
            return False
        if what == "driver":
            # a driver that was killed before it did anything proves nothing
            return self.sweep.folder.live.exists() and kill(self.driver.pid)
        workers = children_of(self.driver.pid)
        targets = workers if what == "worker" else [one for pid in workers for one in children_of(pid)]
        return bool(targets) and kill(self.dice.choice(targets))


def assert_whole(sweep, model, planned):
    """The end state, whatever happened on the way there."""
    book = read_book(sweep.folder.ledger)
    assert len(book.cells) == planned
    assert all(state.open is None and state.done is not None for state in book.cells.values())
    records = {path.parent: load_record(path) for path in sweep.records() if ".attempt" not in str(path)}
    assert len(records) == planned
    assert all(counts(record) for record in records.values())
    assert not [path for path in sweep.folder.runs.glob("*/*/*/*.attempt*/record.json")]
    # every attempt that got as far as a folder is there, numbered without a gap
    for folder, record in records.items():
        aside = sorted(
            int(str(path).rpartition(".attempt")[2]) for path in folder.parent.glob(f"{folder.name}.a*")
        )
        assert aside == list(range(1, record.attempt))
    lines = list(iter_ledger(sweep.folder.ledger))
    started = [(line["key"], line["attempt"]) for line in lines if line["event"] == "started"]
    ended = [(line["key"], line["attempt"]) for line in lines if line["event"] == "ended"]
    assert sorted(started) == sorted(ended) == sorted(set(started))
    assert_bill(sweep, model, book)


def assert_bill(sweep, model, book):
    """What the sweep counts, and requests it never saw answered, make up what the server answered, to the token."""
    requests, closed = set(), set()
    for place in sweep.folder.runs.glob("*/*/*/*"):
        for line in read_requests(place):
            (closed if "status" in line else requests).add(line["id"])
    assert set(model.answered) <= requests
    unseen = [model.answered[one] for one in requests - closed if one in model.answered]
    assert book.spend.open == len(requests - closed)
    assert book.spend.requests == len(requests)
    assert book.spend.tokens_in + sum(one["prompt_tokens"] for one in unseen) == sum(
        one["prompt_tokens"] for one in model.answered.values()
    )
    assert book.spend.tokens_out + sum(one["completion_tokens"] for one in unseen) == sum(
        one["completion_tokens"] for one in model.answered.values()
    )
    assert book.spend.usd + sum(map(usd, unseen)) == pytest.approx(sum(map(usd, model.answered.values())))


def assert_nothing_left(sweep):
    give_up = time.monotonic() + LEFT_WITHIN
    while left := processes(re.escape(str(sweep.folder.root))):
        assert time.monotonic() < give_up, left
        time.sleep(0.2)
    hidden = [path for path in sweep.folder.root.rglob(".*") if "workspace" not in path.parts]
    assert not hidden


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_thirty_kills_over_forty_cells(sweep, model, usable):
    usable("bubblewrap")
    served = model()
    sweep.write(served, tiers=["lite", "standard"], repeats=20, retries=30).locked()
    chaos = Chaos(sweep, seed=11)
    chaos.run(kills=30, within=280)
    assert min(chaos.kills.values()) >= 3, chaos.kills
    assert_whole(sweep, served, planned=40)
    assert_nothing_left(sweep)
