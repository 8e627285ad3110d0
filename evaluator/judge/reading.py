"""Read what a judge answered. Foreign data: only the fields that were asked for are looked at, and what breaks a
rule is named, so that it can be asked again; nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluator.fired import READ_SUBTYPES
from evaluator.judge.notebook import Notebook
from evaluator.rubric import Item, Level

MAX_REASON = 600
MAX_CITED = 40

_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n?```\Z", re.DOTALL)
_EVENT = re.compile(r"\AE(\d{1,7})\Z")


class Unusable(Exception):
    """The answer, or a part of it, breaks a rule; one line that can be shown to the judge."""


@dataclass(frozen=True)
class Opinion:
    """One valid answer to one item."""

    value: float
    reason: str
    events: tuple[int, ...]


def read_opinions(
    reply: str, items: Sequence[Item], levels: Mapping[str, Sequence[Level]], notebook: Notebook
) -> tuple[dict[str, Opinion], dict[str, str]]:
    """Valid opinions by item, and for every other item what was wrong."""
    try:
        answers = _field(_parse(reply), "items")
        if not isinstance(answers, dict):
            raise Unusable("'items' is not an object")
    except Unusable as problem:
        return {}, {item.id: str(problem) for item in items}
    opinions: dict[str, Opinion] = {}
    problems: dict[str, str] = {}
    for item in items:
        try:
            allowed = [level.value for level in levels[item.id]] or [0.0, 1.0]
            opinions[item.id] = _opinion(_field(answers, item.id), item, allowed, notebook)
        except Unusable as problem:
            problems[item.id] = str(problem)
    return opinions, problems


def read_tags(reply: str, notebook: Notebook) -> tuple[dict[str, Opinion], dict[str, str]]:
    """Valid faults by sub-type (value 1), and what was wrong with the answer, if anything."""
    opinions: dict[str, Opinion] = {}
    try:
        faults = _field(_parse(reply), "faults")
        if not isinstance(faults, list):
            raise Unusable("'faults' is not a list")
        for fault in faults:
            subtype = _field(fault, "fault")
            if subtype not in READ_SUBTYPES:
                raise Unusable(f"{str(subtype)[:40]!r} is not one of the faults")
            events = _events(fault, partial(notebook.is_in_stage, READ_SUBTYPES[subtype][1]))
            if not events:
                raise Unusable(f"{subtype} cites no event")
            opinions[subtype] = Opinion(1.0, _reason(fault), events)
    except Unusable as problem:
        return {}, {"faults": str(problem)}
    return opinions, {}


def _parse(reply: str) -> Any:
    text = reply.strip()
    if fence := _FENCE.match(text):
        text = fence[1]
    try:
        return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Unusable("the answer is not one JSON object") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def _field(value: Any, key: str) -> Any:
    if not isinstance(value, dict) or key not in value:
        raise Unusable(f"{key!r} is missing")
    return value[key]


def _opinion(answer: Any, item: Item, allowed: Collection[float], notebook: Notebook) -> Opinion:
    value = _field(answer, "value")
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in allowed:
        raise Unusable(
            f"the value is {str(value)[:40]!r}, expected one of {', '.join(f'{v:g}' for v in allowed)}"
        )
    events = _events(answer, partial(notebook.may_rest_on, item))
    if value > 0 and not events:
        raise Unusable(f"the value is {value:g}, and no event is cited for it")
    return Opinion(float(value), _reason(answer), events)


def _reason(answer: Any) -> str:
    reason = _field(answer, "reason")
    if not isinstance(reason, str) or not reason.strip():
        raise Unusable("there is no reason")
    return " ".join(reason.split())[:MAX_REASON]


def _events(answer: Any, may_be_cited: Callable[[int], bool]) -> tuple[int, ...]:
    cited = _field(answer, "evidence")
    if not isinstance(cited, list) or len(cited) > MAX_CITED:
        raise Unusable(f"'evidence' is not a list of at most {MAX_CITED} events")
    events = set()
    for one in cited:
        match = _EVENT.match(one) if isinstance(one, str) else None
        if match is None:
            raise Unusable(f"{str(one)[:40]!r} is not an event such as 'E17'")
        if not may_be_cited(int(match[1])):
            raise Unusable(f"{one} is not an event that this may rest on")
        events.add(int(match[1]))
    return tuple(sorted(events))
