"""What holds whoever judges: tier credits, dependencies, items that do not apply, and the stages' means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from evaluator.judge.agreement import agreement
from evaluator.judge.evidence import Evidence
from evaluator.judge.judgement import ItemResult, Judgement
from evaluator.rubric import Item, Rubric
from tasks.schema import Tier


@dataclass(frozen=True)
class Verdict:
    """What was decided on one item. ``value`` lies in [0, 1], or is None: unscored, or not applicable."""

    value: float | None
    reason: str
    events: tuple[int, ...] = ()
    applies: bool = True
    votes: tuple[float, ...] = ()


def settled(item: Item, tier: Tier, evidence: Evidence, earlier: Mapping[str, Verdict]) -> Verdict | None:
    """The verdict that tier, dependency or method force on an item, or None where it has to be judged."""
    if item.stage == "S2" and not evidence.executed:
        return Verdict(0, "nothing was executed")
    if item.skip_if == "classical" and evidence.classical:
        return Verdict(
            None,
            "no file that could be a model's weights appeared, so the method is a classical one",
            applies=False,
        )
    credit = item.auto_if
    if credit and credit.tier == tier and earlier[credit.item].value:
        return Verdict(
            1,
            f"credited in the {tier.value.title()} tier, as {credit.item} holds",
            earlier[credit.item].events,
        )
    if item.requires and not earlier[item.requires].value:
        return Verdict(0, f"{item.requires} does not hold")
    return None


def conclude(
    rubric: Rubric,
    evidence: Evidence,
    verdicts: Mapping[str, Verdict],
    judge: Literal["rules", "llm"],
    judge_model: str | None = None,
    evidence_sha256: str | None = None,
) -> Judgement:
    """All verdicts as a judgement. A stage is None when one of its items that apply is unscored.

    ``evidence_sha256``: digest of what the judge was shown, where that is more than the facts.
    """
    items = tuple(_result(item, verdicts[item.id], judge) for item in rubric.items)
    stages = {stage: _stage(rubric.of_stage(stage), verdicts) for stage in ("S1", "S2", "S3")}
    return Judgement(
        judge=judge,
        judge_model=judge_model,
        rubric_sha256=rubric.sha256,
        evidence_sha256=evidence_sha256 or evidence.sha256,
        items=items,
        s1=stages["S1"],
        s2=stages["S2"],
        s3=stages["S3"],
    )


def _result(item: Item, verdict: Verdict, judge: Literal["rules", "llm"]) -> ItemResult:
    return ItemResult(
        id=item.id,
        stage=item.stage,
        value=verdict.value,
        applies=verdict.applies,
        decided_by="program" if item.decided_by == "program" else judge,
        reason=verdict.reason,
        evidence=verdict.events,
        votes=verdict.votes,
        agreement=agreement(verdict.votes),
    )


def _stage(items: Sequence[Item], verdicts: Mapping[str, Verdict]) -> float | None:
    counted = [(item.weight, verdicts[item.id].value) for item in items if verdicts[item.id].applies]
    values = [weight * value for weight, value in counted if value is not None]
    if not counted or len(values) < len(counted):
        return None
    return min(1.0, fsum(values) / fsum(weight for weight, _ in counted))
