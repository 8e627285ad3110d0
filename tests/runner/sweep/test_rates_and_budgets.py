"""Limits across cells: the pace of a provider, and what may be spent."""

from __future__ import annotations

import math
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import ScriptedServer, failure, submit, usage, whole
from sweep_parts import PRICES, Forever

from evaluator.trace import Usage
from runner.agents import gate
from runner.agents.failure import Failure
from runner.agents.gate import BudgetSpent
from runner.agents.profiles import ChatProfile
from runner.agents.provider import Provider
from runner.errors import UsageProblem
from runner.sweep.broker import Broker
from runner.sweep.budget import Purses, require_prices
from runner.sweep.engine import Spend
from runner.sweep.form import Budget, ProviderRates
from runner.sweep.line import SharedGate, WorkerLine
from runner.sweep.rates import BURST_SECONDS, Rates
from runner.sweep.requests import RequestLog, spend_of


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def sent_over(rates, clock, seconds, tokens=0, step=0.05):
    """How many requests a crowd can send, each answered at once."""
    number, until = 0, clock.now + seconds
    while clock.now < until:
        while rates.wait() == 0:
            rates.answered(rates.sent(tokens), tokens, tokens)
            number += 1
        clock.now += step
    return number


@given(per_minute=st.floats(1, 600), seconds=st.floats(30, 300))
def test_the_bucket_never_gives_more_than_its_rate_and_one_burst(per_minute, seconds):
    clock = Clock()
    rates = Rates(ProviderRates(requests_per_minute=per_minute), clock)
    allowed = max(1.0, per_minute / 60 * BURST_SECONDS) + per_minute / 60 * (seconds + 0.1)
    number = sent_over(rates, clock, seconds)
    assert number <= allowed + 1
    assert number >= per_minute / 60 * seconds * 0.9 - 1


def test_tokens_count_as_they_turn_out():
    clock = Clock()
    rates = Rates(ProviderRates(tokens_per_minute=6000), clock)
    moment = rates.sent(5000)
    assert rates.wait() > 0
    rates.answered(moment, 5000, 10)
    assert rates.wait() == 0


def test_one_burst_is_one_cut_and_the_way_back_is_slow():
    clock = Clock()
    rates = Rates(ProviderRates(concurrency=16), clock)
    moments = [rates.sent(0) for _ in range(16)]
    assert rates.wait() == math.inf
    clock.now += 1
    for moment in moments[:10]:
        rates.throttled(moment, 0, 5.0)
    for moment in moments[10:]:
        rates.answered(moment, 0, 0)
    assert (rates.cuts, rates.window) == (1, 8)
    assert rates.wait() == pytest.approx(5.0)
    clock.now += 5.0
    assert rates.wait() == 0
    rounds = 0
    while rates.window < 16:
        for moment in [rates.sent(0) for _ in range(int(rates.window))]:
            rates.answered(moment, 0, 0)
        rounds += 1
    assert 8 <= rounds <= 12
    rates.throttled(rates.sent(0), 0, None)
    assert rates.cuts == 2


def test_a_purse_makes_wait_for_what_others_hold_and_refuses_what_cannot_fit():
    purses = Purses(Budget(usd=1.0, agents={"a": {"tokens": 100}}), Spend(usd=0.2), {})
    purses.reserve("b", 0.5, 10)
    assert purses.may_take("b", 0.4, 1)[0] == "wait"
    assert purses.may_take("b", 0.9, 1)[0] == "no"
    assert purses.may_take("b", 0.3, 1)[0] == "yes"
    answer, words = purses.may_take("a", 0.0, 101)
    assert answer == "no"
    assert "agent a" in words
    purses.release("b", 0.5, 10)
    purses.pay("b", 0.8, 10)
    assert "the sweep" in purses.is_spent("a")


def test_requests_that_nobody_saw_answered_count_at_their_most():
    purses = Purses(Budget(tokens=100), Spend(tokens_in=10, open=1, open_tokens=80), {})
    assert purses.may_take("a", None, 20)[0] == "no"


def test_a_budget_in_dollars_needs_prices():
    with pytest.raises(UsageProblem, match="prices"):
        require_prices(Budget(usd=1), {"a": False})
    require_prices(Budget(usd=1), {"a": True})
    require_prices(Budget(tokens=1), {"a": False})


# --- the line, with real requests ---


@pytest.fixture
def broker(tmp_path):
    made = []

    def make(budget=None, **rates):
        purses = Purses(budget or Budget(), Spend(), {})
        one = Broker(purses, lambda _provider: ProviderRates(**rates), str(tmp_path / "broker"))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()
    gate.install(None)


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers = []

    def start(step):
        server = ScriptedServer([])
        server.steps = Forever(step)
        servers.append(server.__enter__())
        return server

    yield start
    for server in servers:
        server.__exit__()


def profile_for(server, **more):
    settings = {
        "kind": "chat",
        "model": "m",
        "base_url": server.url,
        "context_tokens": 1000,
        "prices": PRICES,
    }
    return ChatProfile.model_validate({**settings, "max_output_tokens": 100, **more})


def keep_asking(profile, over):
    """What a cell does: ask, and after a failure that may pass wait as long as it was told to."""
    with Provider(profile, None) as provider:
        while not over.is_set():
            ticket = gate.admit(profile, [{"role": "user", "content": "x" * 30}])
            try:
                provider.ask([], 10, ticket=ticket)
            except Failure as error:
                time.sleep(error.retry_after or 0.01)


class Storm:
    """A provider that answers in a moment, and says 429 to everybody during one burst.

    ``seen`` holds when each request came, how many were under way then, and whether it was refused.
    """

    RETRY_AFTER = 1.0

    def __init__(self):
        self.lock = threading.Lock()
        self.in_flight = 0
        self.seen, self.refused_at = [], []
        self.burst = None

    def __call__(self, _request):
        with self.lock:
            now = time.monotonic()
            self.in_flight += 1
            refuse = self.burst is not None and now >= self.burst and not self.refused_at
            self.seen.append((now, self.in_flight, refuse))
        time.sleep(0.05)
        with self.lock:
            self.in_flight -= 1
            if refuse:
                self.refused_at.append(time.monotonic())
                return failure(429, "slow down", {"retry-after": str(self.RETRY_AFTER)})
        return whole("", [submit()], counted=usage(10, 1))

    def under_way(self, since=0.0):
        with self.lock:
            return [number for at, number, _ in self.seen if at > since]


def test_a_storm_of_refusals(broker, serve, tmp_path):
    storm = Storm()
    server = serve(storm)
    one = broker(concurrency=64)
    line = WorkerLine(one.line)
    (tmp_path / "run").mkdir()
    gate.install(SharedGate(line, RequestLog(tmp_path / "run", "x#1"), "a"))
    profile = profile_for(server)
    over = threading.Event()
    threads = [threading.Thread(target=keep_asking, args=(profile, over)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert_soon(lambda: max(storm.under_way(), default=0) >= 7)
    storm.burst = time.monotonic()
    assert_soon(lambda: storm.refused_at)
    # the window comes back to what the eight of them can use
    assert_soon(lambda: max(storm.under_way(storm.refused_at[0] + Storm.RETRY_AFTER), default=0) >= 7)
    over.set()
    for thread in threads:
        thread.join()
    (rates,) = one.rates().values()
    assert len(storm.refused_at) > 1
    assert rates.cuts == 1
    first, after = storm.refused_at[0], [one for one in storm.seen if one[0] > storm.refused_at[0] + 0.1]
    # nobody asks before the time that the first refusal named
    assert after[0][0] >= first + Storm.RETRY_AFTER - 0.02
    assert max(number for _, number, _ in after[:3]) <= len(threads) / 2


def assert_soon(condition, within=30.0):
    give_up = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_a_budget_ends_in_time(broker, serve, tmp_path):
    """Eight cells at once; each request may take 110 tokens and takes 60."""
    server = serve(lambda _request: whole("", [submit()], counted=usage(50, 10)))
    one = broker(Budget(tokens=3000))
    (tmp_path / "run").mkdir()
    gate.install(SharedGate(WorkerLine(one.line), RequestLog(tmp_path / "run", "x#1"), "a"))
    profile = profile_for(server)
    ended = []

    def ask_until_spent():
        try:
            keep_asking(profile, threading.Event())
        except BudgetSpent as spent:
            ended.append(str(spent))

    threads = [threading.Thread(target=ask_until_spent) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 8
    assert "3,000 tokens" in ended[0]
    spent = spend_of(tmp_path / "run", "x#1")
    total = spent.tokens_in + spent.tokens_out
    assert total == 60 * len(server.requests)
    assert 3000 - 120 <= total <= 3000
    assert spent.open == 0
    assert spent.usd == pytest.approx(len(server.requests) * (50 * 2 + 10 * 10) / 1e6)


def test_a_line_that_breaks_gives_back_its_place_and_keeps_what_may_have_been_paid(broker):
    one = broker(Budget(tokens=100), concurrency=1)
    gone = WorkerLine(one.line)
    assert gone.ask(admission(tokens=60)) == {"sent": True}
    gone._mine.connection.close()
    alive = WorkerLine(one.line)
    assert alive.ask(admission(tokens=30, id="b")) == {"sent": True}
    assert "spent" in alive.ask(admission(tokens=50, id="c"))


def test_nobody_waits_longer_than_it_has_patience(broker):
    one = broker(concurrency=1)
    line = WorkerLine(one.line)
    assert line.ask(admission()) == {"sent": True}
    assert line.ask(admission(id="b", patience=0.2)) == {"late": True}


def test_a_stranger_without_the_secret_is_not_served(broker):
    from multiprocessing import AuthenticationError
    from multiprocessing.connection import Client

    one = broker()
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        Client(one.line.address, authkey=b"guess")
    assert WorkerLine(one.line).ask(admission()) == {"sent": True}


def admission(**more):
    usual = {"op": "admit", "id": "a", "provider": "p", "agent": "a", "attempt": "k#1", "usd": None}
    return {**usual, "tokens": 1, "patience": 9, **more}


def test_without_a_gate_nothing_is_asked_of_anybody():
    gate.install(None)
    assert gate.admit(None, []) is gate.FREE
    assert gate.FREE.id == ""
    gate.FREE.paid(Usage(), None)
