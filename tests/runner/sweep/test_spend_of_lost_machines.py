"""What an attempt on another machine spent is known at the driver, whether or not the machine ever answers again."""

from __future__ import annotations

import functools

import pytest

from evaluator.trace import Usage
from runner.agents.failure import Failure
from runner.sweep.broker import Broker
from runner.sweep.budget import Purses
from runner.sweep.carry import put_beside
from runner.sweep.engine import Spend
from runner.sweep.form import Budget, ProviderRates
from runner.sweep.line import SharedGate, WorkerLine
from runner.sweep.requests import RequestLog, log_beside, read_requests, spend_of

KEY = "task/lite/agent/r00"
ATTEMPT = f"{KEY}#1"


@pytest.fixture
def runs(tmp_path):
    """Of the driver."""
    return tmp_path / "runs"


@pytest.fixture
def worker(runs, tmp_path):
    """A worker's gate on the line to a driver that listens on a port, and its own run folder."""
    purses = Purses(Budget(), Spend(), {})
    broker = Broker(
        purses, lambda host: ProviderRates(), ("127.0.0.1", 0), log_of=functools.partial(log_beside, runs)
    )
    folder = tmp_path / "elsewhere" / "r00"
    folder.mkdir(parents=True)
    line = WorkerLine(broker.line)
    gate = SharedGate(line, RequestLog(folder, ATTEMPT), "agent")
    gate.folder, gate.hear = (
        folder,
        lambda: line.ask(ADMISSION),
    )  # the answer comes after all that was told before
    yield gate
    broker.close()


ADMISSION = {
    "op": "admit", "id": "last", "provider": "p", "agent": "agent", "attempt": "other/lite/agent/r00#1", "usd": None,
    "tokens": 0, "patience": 9,
}  # fmt: skip


def spend_requests(gate):
    """One paid for, one refused, one whose answer never came."""
    gate.admit("p", Usage(input=100, output=50), 1.0, 9).paid(Usage(input=90, output=10, cached=40), 0.5)
    gate.admit("p", Usage(input=100, output=50), 1.0, 9).failed(Failure("retry", "busy", 503))
    gate.admit("p", Usage(input=70, output=7), 0.25, 9)
    gate.hear()


def test_the_driver_knows_what_the_worker_knows(worker, runs):
    spend_requests(worker)
    mine, theirs = spend_of(runs / KEY, ATTEMPT), spend_of(worker.folder, ATTEMPT)
    assert mine == theirs
    assert (mine.tokens_in, mine.tokens_out, mine.tokens_cached, mine.usd) == (90, 10, 40, 0.5)
    assert (mine.requests, mine.open, mine.open_tokens, mine.open_usd) == (3, 1, 77, 0.25)


def test_the_folder_that_arrives_takes_the_place_of_the_log_and_counts_once(worker, runs):
    spend_requests(worker)
    before = spend_of(runs / KEY, ATTEMPT)
    (worker.folder / "cell.json").write_text("{}")
    put_beside(worker.folder, runs / KEY)
    assert spend_of(runs / KEY, ATTEMPT) == before
    assert [path.name for path in (runs / KEY).parent.iterdir()] == ["r00"]
    assert len(list(read_requests(runs / KEY))) == 5
