"""The one table of how an attempt can end: does it count, is it tried again, and whose fault is it?

Retry, resume, aggregation and the Space all read it, so that nowhere else a rule about failures stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.trace import EndReason
    from hf_datasets.records import RunRecord


class Cause(StrEnum):
    """Why an attempt ended: the ten reasons a trace can give, and what can happen around a run."""

    SUBMITTED = "submitted"
    TIME = "time"
    TURNS = "turns"
    TOKENS = "tokens"
    COST = "cost"
    AGENT_STOP = "agent_stop"
    MALFORMED = "malformed"
    POLICY = "policy"

    PROVIDER_ERROR = "provider_error"
    PROVIDER_REFUSED = "provider_refused"
    INFRA_ERROR = "infra_error"
    EVALUATOR_FAILED = "evaluator_failed"
    WORKER_LOST = "worker_lost"
    ENGINE_GONE = "engine_gone"
    DISK_FULL = "disk_full"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    CHANGED_INPUTS = "changed_inputs"
    NOT_READY = "not_ready"
    FAULT = "fault"


class Fault(StrEnum):
    """Who can mend it."""

    AGENT = "agent"
    PROVIDER = "provider"
    INFRASTRUCTURE = "infrastructure"
    OPERATOR = "operator"
    BENCHMARK = "benchmark"


class Retry(StrEnum):
    """What is done about an attempt that does not count."""

    NEVER = "never"
    BOUNDED = "bounded"
    """Again, as often as the sweep allows; after that the cell stays missing."""
    WHEN_CURED = "when_cured"
    """Again, without being counted: nothing starts until the obstacle is gone."""
    NEXT_TIME = "next_time"
    """Not in this sitting: somebody has to change something first."""


@dataclass(frozen=True)
class Verdict:
    """One line of the table. An attempt that ``counts`` enters every mean; any other leaves its cell missing."""

    counts: bool
    retry: Retry
    fault: Fault
    words: str


def _agents(words: str) -> Verdict:
    return Verdict(True, Retry.NEVER, Fault.AGENT, words)


TABLE: dict[Cause, Verdict] = {
    Cause.SUBMITTED: _agents("the agent submitted"),
    Cause.TIME: _agents("the working time was used up"),
    Cause.TURNS: _agents("the turns were used up"),
    Cause.TOKENS: _agents("the tokens were used up, or the history outgrew the model"),
    Cause.COST: _agents("the run's cost limit was reached"),
    Cause.AGENT_STOP: _agents("the agent stopped without submitting"),
    Cause.MALFORMED: _agents("malformed calls in a row"),
    Cause.POLICY: _agents("a rule was broken on purpose; scored zero"),
    Cause.PROVIDER_ERROR: Verdict(
        False, Retry.BOUNDED, Fault.PROVIDER, "the model's provider gave no usable answer"
    ),
    Cause.PROVIDER_REFUSED: Verdict(
        False, Retry.NEXT_TIME, Fault.OPERATOR, "the provider refuses the key or asks for credit"
    ),
    Cause.INFRA_ERROR: Verdict(False, Retry.BOUNDED, Fault.INFRASTRUCTURE, "the sandbox died under the run"),
    Cause.EVALUATOR_FAILED: Verdict(
        False, Retry.BOUNDED, Fault.BENCHMARK, "the evaluator gave no report; the agent does not run again"
    ),
    Cause.WORKER_LOST: Verdict(
        False, Retry.BOUNDED, Fault.INFRASTRUCTURE, "the worker process or its machine went away"
    ),
    Cause.ENGINE_GONE: Verdict(
        False, Retry.WHEN_CURED, Fault.INFRASTRUCTURE, "no sandbox can be had: the container engine is gone"
    ),
    Cause.DISK_FULL: Verdict(False, Retry.WHEN_CURED, Fault.INFRASTRUCTURE, "the disk is full"),
    Cause.BUDGET: Verdict(
        False, Retry.NEXT_TIME, Fault.OPERATOR, "the sweep's or the agent's budget is spent"
    ),
    Cause.INTERRUPTED: Verdict(False, Retry.WHEN_CURED, Fault.OPERATOR, "the runner was stopped or killed"),
    Cause.CHANGED_INPUTS: Verdict(
        False, Retry.NEXT_TIME, Fault.OPERATOR, "task, data, image, code or profile is not the locked one"
    ),
    Cause.NOT_READY: Verdict(False, Retry.NEXT_TIME, Fault.OPERATOR, "data, key or profile is missing"),
    Cause.FAULT: Verdict(False, Retry.BOUNDED, Fault.BENCHMARK, "an error of the harness itself"),
}


def verdict_on(cause: Cause | EndReason | str) -> Verdict:
    """The table's line for a cause or an end reason.

    Raises
    ------
    ValueError
        The table knows no such cause.
    """
    return TABLE[Cause(str(cause))]


def cause_of(record: RunRecord) -> Cause:
    """Why a sealed record, or an unscored one, ended as it did."""
    if record.end_reason.is_agents and record.task_score is None:
        return Cause.EVALUATOR_FAILED
    return Cause(record.end_reason.value)


def counts(record: RunRecord) -> bool:
    """Whether the record enters means; one that does not leaves its cell missing."""
    return verdict_on(cause_of(record)).counts
