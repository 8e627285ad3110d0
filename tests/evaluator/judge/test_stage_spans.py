"""Spans: every turn in one stage, in order, and nothing counted twice."""

from __future__ import annotations

from itertools import pairwise

import pytest

from evaluator.judge.spans import stage_spans
from evaluator.trace import EndReason, Reply, Usage, read_trace


def spans(run):
    return {span.stage: span for span in stage_spans(read_trace(run.trace()), run.evidence())}


def turns(run):
    return [span.turns for span in spans(run).values()]


def test_a_careful_run(run):
    run.plan().picture().check_setup().pilot().inspect().batch().call("look()").submit()
    assert turns(run) == [1, 2, 2, 1, 1]


def test_a_run_without_plan_or_pilot(run):
    assert turns(run.check_setup().batch().submit()) == [0, 1, 0, 1, 0]


def test_a_run_that_stops_after_its_pilot(run):
    assert turns(run.plan().check_setup().pilot().inspect().end(EndReason.AGENT_STOP)) == [1, 1, 1, 0, 1]


def test_a_run_that_never_completes_a_case(run):
    assert turns(run.plan().check_setup().call().end(EndReason.TIME)) == [1, 2, 0, 0, 0]


def test_a_plan_after_the_first_case_opens_no_first_stage(run):
    assert turns(run.check_setup().pilot().plan().batch().submit()) == [0, 1, 2, 1, 0]


def test_an_empty_trace(run):
    assert [span.turns for span in stage_spans([], run.evidence())] == [0] * 5


def test_tokens_seconds_and_cost_are_those_of_the_whole_run(run):
    run.plan().check_setup().pilot().inspect().batch().submit()
    run.events = [
        event.model_copy(
            update={"usage": Usage(input=100, output=7), "cost_usd": 0.5, "seconds": 4.0, "waited": 1.0}
        )
        if isinstance(event, Reply)
        else event
        for event in run.events
    ]
    found = spans(run).values()
    assert sum(span.tokens_in for span in found) == 500
    assert sum(span.tokens_out for span in found) == 35
    assert sum(span.cost_usd or 0 for span in found) == pytest.approx(2.5)
    assert sum(span.seconds for span in found) == pytest.approx(5 * (3 + 1))
    assert sum(span.commands for span in found) == 5


def test_spans_touch_and_do_not_overlap(run):
    found = list(spans(run.good()).values())
    assert found[0].start == 0
    assert all(earlier.end == later.start for earlier, later in pairwise(found))
    assert all(span.start <= span.end for span in found)


def test_failed_commands_are_counted_in_their_stage(run):
    run.plan().call(exit_code=1).call().pilot().inspect().batch().submit()
    assert [span.failed_commands for span in spans(run).values()] == [0, 1, 0, 0, 0]
