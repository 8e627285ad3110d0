"""``judgement.json``: how the work was done, item by item."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluator.report import Unit
from tasks.schema import Strict

Stage = Literal["S1", "S2", "S3"]


class ItemResult(Strict):
    """One rubric item. ``value`` None: unscored, or left out of the mean when ``applies`` is False."""

    id: str
    stage: Stage
    value: Unit | None
    applies: bool = True
    decided_by: Literal["program", "rules", "llm"]
    reason: str
    evidence: tuple[int, ...] = Field(
        default=(), description="Sequence numbers of the trace events it rests on"
    )


class Judgement(Strict):
    """All items and the stage values that follow from them; a stage is None when one of its items is."""

    schema_version: int = 1
    judge: Literal["rules", "llm"]
    judge_model: str | None = None
    rubric_sha256: str
    evidence_sha256: str
    items: tuple[ItemResult, ...]
    s1: Unit | None
    s2: Unit | None
    s3: Unit | None
