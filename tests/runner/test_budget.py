import contextlib

import pytest

from evaluator.trace import Usage
from runner.limits import Budget
from tasks.schema import Limits


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def budget(clock, **limits):
    return Budget(Limits(**{"wall_seconds": 100, "call_seconds": 30, **limits}), clock)


def test_waiting_is_not_working(clock):
    meter = budget(clock)
    clock.now = 10
    with meter.waiting():
        clock.now = 70
    clock.now = 75
    assert meter.working_seconds() == 15
    assert meter.wall_seconds() == 75
    assert meter.remaining_seconds() == 85
    assert meter.remaining_waiting() == 40


def test_waiting_is_booked_even_when_it_is_broken_off(clock):
    meter = budget(clock)
    with contextlib.suppress(KeyboardInterrupt), meter.waiting():
        clock.now = 60
        raise KeyboardInterrupt
    assert meter.working_seconds() == 0


def test_a_call_gets_its_limit_or_what_is_left(clock):
    meter = budget(clock)
    assert meter.call_deadline() == 30
    clock.now = 90
    assert meter.call_deadline() == 10
    clock.now = 130
    assert meter.call_deadline() == 0


def hit(meter):
    found = meter.check()
    return found and (found.limit, found.used, found.allowed)


def test_each_limit_is_named(clock):
    meter = budget(clock, turns=3, tokens=1000, cost_usd=0.5)
    assert hit(meter) is None
    meter.count_turn(Usage(input=600, output=100, cached=500), 0.2)
    assert hit(meter) is None
    meter.count_turn(Usage(input=100, output=99), 0.2)
    assert hit(meter) is None
    assert meter.tokens == 899
    meter.count_turn(Usage(), 0.05)
    assert hit(meter) == ("turns", 3, 3)
    clock.now = 100
    assert hit(meter) == ("time", 100, 100)


def test_tokens_and_cost(clock):
    meter = budget(clock, tokens=1000)
    meter.count_turn(Usage(input=900, output=100), None)
    assert hit(meter) == ("tokens", 1000, 1000)
    assert meter.cost_usd is None
    meter = budget(clock, cost_usd=0.3)
    meter.count_turn(Usage(), 0.1)
    meter.count_turn(Usage(), 0.2)
    assert hit(meter)[0] == "cost"


def test_unknown_cost_stays_unknown_until_one_is_known(clock):
    meter = budget(clock)
    meter.count_turn(Usage(), None)
    assert meter.cost_usd is None
    meter.count_turn(Usage(), 0.25)
    assert meter.cost_usd == 0.25
