"""The one table of how attempts end says the same as the trace's reasons do."""

from __future__ import annotations

import pytest

from evaluator.trace import EndReason
from hf_datasets.failures import TABLE, Cause, Fault, Retry, verdict_on


def test_every_cause_has_a_line():
    assert set(TABLE) == set(Cause)
    assert all(verdict.words for verdict in TABLE.values())


@pytest.mark.parametrize("reason", EndReason)
def test_a_reason_that_is_the_agents_counts_and_no_other_does(reason):
    verdict = verdict_on(reason)
    assert verdict.counts == reason.is_agents
    assert (verdict.fault is Fault.AGENT) == reason.is_agents


@pytest.mark.parametrize("cause", Cause)
def test_what_counts_is_never_tried_again_and_what_does_not_always_is(cause):
    verdict = TABLE[cause]
    assert verdict.counts == (verdict.retry is Retry.NEVER)


def test_an_unknown_cause_is_refused():
    with pytest.raises(ValueError, match="cosmic"):
        verdict_on("cosmic_ray")
