"""When a run was in which stage: every turn belongs to exactly one, in order.

S1 ends with the turn that wrote the plan (if that came before any case), S2 with the turn before the one that
completed the first case, S3 with the turn before the batch, S4 with the last turn in which a case became
complete, and S5 is what is left. A stage that was skipped has no turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from evaluator.judge.evidence import Evidence
from evaluator.trace import Event, Exec, Files, Reply
from tasks.schema import Strict

StageName = Literal["S1", "S2", "S3", "S4", "S5"]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_ORDER: tuple[StageName, ...] = ("S1", "S2", "S3", "S4", "S5")


class StageSpan(Strict):
    """One stage of a run. ``start`` and ``end`` are seconds since the run began; ``seconds`` is working time:
    replies without the waiting for the provider, and commands.
    """

    stage: StageName
    start: Seconds
    end: Seconds
    turns: Count
    commands: Count
    failed_commands: Count
    tokens_in: Count
    tokens_out: Count
    seconds: Seconds
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None


def stage_spans(events: Sequence[Event], evidence: Evidence) -> tuple[StageSpan, ...]:
    """The five stages of a run in order; ``cost_usd`` is None where no reply of the stage had a price."""
    last_turns = _last_turns(events, evidence)
    spans: list[StageSpan] = []
    first, start = 1, 0.0
    for stage, last in zip(_ORDER, last_turns, strict=True):
        of_stage = [event for event in events if first <= (_turn(event) or 0) <= last]
        end = max([start, *(event.t for event in of_stage)])
        spans.append(_span(stage, start, end, of_stage))
        first, start = max(first, last + 1), end
    return tuple(spans)


def _last_turns(events: Sequence[Event], evidence: Evidence) -> tuple[int, ...]:
    """The last turn of each stage; a stage whose last turn lies before its first has none."""
    final = max((turn for event in events if (turn := _turn(event)) is not None), default=0)
    first_case = evidence.first_case.turn if evidence.first_case else final + 1
    batch = evidence.batch.turn if evidence.batch else None
    plan = evidence.plan_written
    planned = plan.turn if plan and plan.turn < first_case else 0
    completed = max(
        (event.turn for event in events if isinstance(event, Files) and event.new_cases_total), default=0
    )
    set_up = first_case - 1
    validated = batch - 1 if batch else max(set_up, completed)
    return planned, set_up, validated, max(validated, completed), final


def _span(stage: StageName, start: float, end: float, events: Iterable[Event]) -> StageSpan:
    events = list(events)
    replies = [event for event in events if isinstance(event, Reply)]
    commands = [event for event in events if isinstance(event, Exec)]
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    working = sum(max(0.0, reply.seconds - reply.waited) for reply in replies)
    return StageSpan(
        stage=stage,
        start=start,
        end=end,
        turns=len(replies),
        commands=len(commands),
        failed_commands=sum(command.exit_code != 0 for command in commands),
        tokens_in=sum(reply.usage.input for reply in replies),
        tokens_out=sum(reply.usage.output for reply in replies),
        seconds=round(working + sum(command.seconds for command in commands), 3),
        cost_usd=sum(costs) if costs else None,
    )


def _turn(event: Event) -> int | None:
    return getattr(event, "turn", None)
