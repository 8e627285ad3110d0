"""The rubric of S1-S3 as data: ``shared.yaml`` for all tracks, ``<track>.yaml`` for what is a track's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, PositiveFloat, ValidationError, model_validator

from evaluator.judge.judgement import Stage
from evaluator.report import Unit
from tasks.schema import Strict, Tier, Track

EvidenceKind = Literal["plan", "picture", "files", "cases", "commands", "outputs"]
"""What an item may rest on: the plan's text or picture, changes in the workspace, when cases became complete
or were read, commands with their exit codes, what commands printed."""

HostFact = Literal["pilot_before_batch", "pilot_inspected"]

ITEMS_PER_STAGE: Mapping[Stage, int] = {"S1": 6, "S2": 5, "S3": 1}


class AutoCredit(Strict):
    """In ``tier`` the item is credited unasked, provided that ``item`` holds."""

    tier: Tier
    item: str


class Level(Strict):
    """One value that an item can take.

    ``facts`` are what the host must have observed for the rules judge to give it; ``judge_only`` marks a
    level that facts alone cannot show.
    """

    value: Unit
    when: str
    facts: tuple[HostFact, ...] = ()
    judge_only: bool = False


class Item(Strict):
    """One question. Without ``levels`` its answer is yes (1) or no (0)."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")]
    stage: Stage
    question: str
    weight: PositiveFloat = 1.0
    decided_by: Literal["program", "judge"]
    evidence: Annotated[tuple[EvidenceKind, ...], Field(min_length=1)]
    requires: str | None = Field(default=None, description="0 unless this earlier item holds")
    auto_if: AutoCredit | None = None
    skip_if: Literal["classical"] | None = Field(
        default=None, description="Left out of the stage's mean for a method without weights"
    )
    steps: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()


class Rubric(Strict):
    """The items of one track in the order in which they are decided."""

    track: Track
    items: tuple[Item, ...]

    @property
    def sha256(self) -> str:
        """Digest of the content, so that comments and layout of the YAML do not matter."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def item(self, item_id: str) -> Item:
        return next(item for item in self.items if item.id == item_id)

    def of_stage(self, stage: Stage) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.stage == stage)

    @model_validator(mode="after")
    def _hangs_together(self) -> Rubric:
        for stage, count in ITEMS_PER_STAGE.items():
            if len(self.of_stage(stage)) != count:
                raise ValueError(f"{stage} has {len(self.of_stage(stage))} items, expected {count}")
        earlier: set[str] = set()
        for item in self.items:
            needed = {item.requires, item.auto_if.item if item.auto_if else None} - {None}
            if item.id in earlier or not needed <= earlier:
                raise ValueError(f"item {item.id}: ids must be unique and refer to earlier items only")
            if bool(item.levels) != (item.stage == "S3"):
                raise ValueError(f"item {item.id}: S3, and only S3, is a level")
            values = [level.value for level in item.levels]
            if values and (values != sorted(set(values)) or values[0] != 0 or values[-1] != 1):
                raise ValueError(f"item {item.id}: levels must rise from 0 to 1")
            earlier.add(item.id)
        return self


class RubricError(Exception):
    """A rubric file cannot be used; the message names file and field."""


@cache
def load_rubric(track: Track) -> Rubric:
    """The rubric of a track, read from the package and validated.

    Raises
    ------
    RubricError
        A file is no YAML, lacks a question or breaks a rule.
    """
    folder = Path(__file__).parent
    return build_rubric(_read_yaml(folder / "shared.yaml"), _read_yaml(folder / f"{Track(track).value}.yaml"))


def rubric_digest(track: Track) -> str:
    """SHA-256 of the track's rubric, in hexadecimal."""
    return load_rubric(track).sha256


def build_rubric(shared: Mapping[str, Any], own: Mapping[str, Any]) -> Rubric:
    """Put the shared items and a track's own questions and levels together.

    Raises
    ------
    RubricError
        The two do not make a valid rubric.
    """
    try:
        questions = dict(own["questions"])
        items = [
            {**item, "question": questions.pop(item["id"], item.get("question"))} for item in shared["items"]
        ]
        items[-1] |= own["validation"]
        if questions:
            raise RubricError(f"rubric {own['track']}: no item is named {', '.join(sorted(questions))}")
        return Rubric(track=own["track"], items=tuple(Item.model_validate(item) for item in items))
    except (KeyError, TypeError) as error:
        raise RubricError(f"rubric {own.get('track', '?')}: {error} is missing or not a mapping") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RubricError(f"rubric {own['track']}: {where}: {first['msg']}") from None


def _read_yaml(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise RubricError(f"{path.name}: {error}") from None
    if not isinstance(content, dict):
        raise RubricError(f"{path.name}: expected a mapping, found {type(content).__name__}")
    return content
