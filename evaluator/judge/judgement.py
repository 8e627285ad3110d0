"""``judgement.json``: how the work was done, item by item."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evaluator.fired import FiredCode
from evaluator.report import Finite, Unit
from evaluator.trace import Usage
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
    votes: tuple[Unit, ...] = Field(default=(), description="Valid votes of the panel, in order")
    agreement: Unit | None = Field(
        default=None, description="Share of the votes that the commonest value has"
    )


class Exchange(Strict):
    """One request to a judge and what came back. ``question`` followed the evidence; ``reply`` is the raw text, None
    where there was none; ``error`` says why.
    """

    vote: int
    question: str
    reply: str | None
    error: str | None = None
    finish: str = ""
    usage: Usage | None = None
    cost_usd: Finite | None = None
    seconds: Annotated[float, Field(ge=0)] = 0.0


class Panel(Strict):
    """How an LLM judge came to its values: every request can be put together again from ``system``, ``evidence``,
    the plan's picture (by digest) and the exchanges.

    ``prompt_sha256`` covers the words that were sent, with the random delimiter taken out.
    """

    size: Annotated[int, Field(ge=1)]
    prompt_sha256: str
    system: str
    evidence: str
    delimiter: str
    picture_sha256: str | None
    exchanges: tuple[Exchange, ...]
    tagged: bool = Field(default=False, description="Asked for error codes, and enough votes heard")
    tokens_in: int
    tokens_out: int
    cost_usd: Finite | None
    alpha: Finite | None = Field(
        description="Krippendorff's alpha of the votes; None where they cannot differ"
    )


class Judgement(Strict):
    """All items and the stage values that follow from them; a stage is None when one of its items is.

    ``judge_sha256`` is the digest of everything that makes an LLM judge what it is; ``same_family``: it comes from
    the agent's own provider. ``tags`` are error codes that it saw.
    """

    schema_version: Literal[1] = 1
    judge: Literal["rules", "llm"]
    judge_model: str | None = None
    judge_sha256: str | None = None
    same_family: bool | None = None
    rubric_sha256: str
    evidence_sha256: str
    items: tuple[ItemResult, ...]
    s1: Unit | None
    s2: Unit | None
    s3: Unit | None
    panel: Panel | None = None
    tags: tuple[FiredCode, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether no item that applies was left unscored."""
        return all(item.value is not None for item in self.items if item.applies)
