"""What a sweep will take before it takes it: cells, hours, tokens and US dollars, and what is missing to run it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.trace import Usage
from hf_datasets.run_folders import RECORD, finished
from runner.agents import require_agent
from runner.agents.profiles import EndpointProfile, Profile
from runner.errors import Problem, UsageProblem
from runner.execute import effective_limits
from runner.judges import RULES, load_judge_profiles
from runner.keys import find_key, missing
from runner.provenance import gpus
from runner.sandbox import SandboxUnavailable, choose_backend
from runner.sweep.budget import require_prices
from runner.sweep.form import Block, SweepForm, blocks_of
from runner.sweep.lock import options_of
from tasks.names import Release
from tasks.registry import load_task


@dataclass
class Past:
    """Sums over past runs of one kind."""

    runs: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, record: dict[str, Any]) -> None:
        self.runs += 1
        self.seconds += record["seconds_wall"]
        self.tokens_in += record["tokens_in"]
        self.tokens_out += record["tokens_out"]


class History:
    """Past records: what a run of an agent took, on the same task and tier, or else on anything near."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._past: dict[tuple[str, ...], Past] = defaultdict(Past)
        for folder in (folder for place in places for folder in finished(place)):
            try:
                record = json.loads((folder / RECORD).read_bytes())
                for kind in _kinds(record["agent"], record["task"], record["tier"], record["track"]):
                    self._past[kind].add(record)
            except (OSError, ValueError, KeyError, TypeError):
                continue  # a bad record tells nothing; 'list runs' names it

    def of(self, block: Block) -> Past | None:
        """The nearest past: same task and tier, same task, same track, or the agent at all."""
        track = load_task(block.task).track.value
        return next(
            (
                self._past[kind]
                for kind in _kinds(block.agent, block.task, block.tier.value, track)
                if kind in self._past
            ),
            None,
        )


def _kinds(agent: str, task: str, tier: str, track: str) -> tuple[tuple[str, ...], ...]:
    return ((agent, task, tier), (agent, task), (agent, "track", track), (agent,))


@dataclass(frozen=True)
class Estimate:
    """What a number of cells will take. ``usd`` None: no prices. ``bound``: cells without a past, at their limits."""

    cells: int = 0
    hours: float = 0.0
    tokens: float = 0.0
    usd: float | None = 0.0
    bound: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Estimate(
            self.cells + other.cells,
            self.hours + other.hours,
            self.tokens + other.tokens,
            usd,
            self.bound + other.bound,
        )


@dataclass(frozen=True)
class Plan:
    """Estimates by agent, and what is missing."""

    form: SweepForm
    blocks: tuple[Block, ...]
    by_agent: dict[str, Estimate]
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> Estimate:
        return sum(self.by_agent.values(), Estimate())

    def rows(self) -> list[dict[str, Any]]:
        """For a table; the sum is last."""
        return [_row(name, one) for name, one in self.by_agent.items()] + [_row("all", self.total)]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.form.name,
            "cells": self.total.cells,
            "tasks": len({block.task for block in self.blocks}),
            "tiers": [tier.value for tier in self.form.tiers],
            "rows": self.rows(),
            "missing": self.missing,
        }


def _row(agent: str, one: Estimate) -> dict[str, Any]:
    return {
        "agent": agent,
        "cells": one.cells,
        "hours": round(one.hours, 1),
        "tokens": int(one.tokens),
        "USD": None if one.usd is None else round(one.usd, 2),
        "at their limits": one.bound,
    }


def make_plan(form: SweepForm, data: Path, history: History) -> Plan:
    """Expand a sweep and estimate it; nothing is run, and missing things are listed, not raised.

    Raises
    ------
    UsageProblem
        An agent or judge is unknown, a limit is no limit, or a USD budget has no prices to go by.
    """
    blocks = blocks_of(form)
    profiles = {name: require_agent(name, form.agents_file) for name in form.agents}
    asking = {name: one for name, one in profiles.items() if isinstance(one, EndpointProfile)}
    require_prices(form.budget, {name: one.prices is not None for name, one in asking.items()})
    by_agent = {name: Estimate() for name in form.agents}
    for block in blocks:
        by_agent[block.agent] += _estimate(block, form, profiles[block.agent], history.of(block))
    return Plan(form, blocks, by_agent, what_is_missing(form, data))


def _estimate(block: Block, form: SweepForm, profile: Profile, past: Past | None) -> Estimate:
    """Means of the past; without one, the task's limits, which nothing exceeds by much."""
    number = block.repeats
    if past is not None:
        usage = Usage(input=past.tokens_in // past.runs, output=past.tokens_out // past.runs)
        seconds, bound = past.seconds / past.runs, 0
    else:
        limits = effective_limits(load_task(block.task), options_of(form, Path(), Path()))
        asks = isinstance(profile, EndpointProfile)
        usage = Usage(input=limits.tokens if asks else 0)
        seconds, bound = float(limits.wall_seconds), number
    usd: float | None = 0.0
    if isinstance(profile, EndpointProfile):
        usd = profile.prices.cost(usage) if profile.prices else None
    return Estimate(
        cells=number,
        hours=number * seconds / 3600,
        tokens=number * (usage.input + usage.output),
        usd=None if usd is None else number * usd,
        bound=bound,
    )


def what_is_missing(form: SweepForm, data: Path) -> list[str]:
    """Data, keys, devices and sandboxes that this machine lacks for the sweep, each in words."""
    profiles = {name: require_agent(name, form.agents_file) for name in form.agents}
    asking = {name: one for name, one in profiles.items() if isinstance(one, EndpointProfile)}
    return list(_missing(form, data, asking))


def _missing(form: SweepForm, data: Path, asking: Mapping[str, EndpointProfile]) -> Iterable[str]:
    if form.release is not Release.PHANTOM:
        staged = data / form.release.value
        tasks = dict.fromkeys(block.task for block in blocks_of(form))
        if absent := [task for task in tasks if not (staged / task / "manifest.json").is_file()]:
            yield f"data: not staged under {staged} (python -m hf_datasets stage TASK ...): {', '.join(absent)}"
    keyless: dict[str, list[str]] = {}
    for name, profile in asking.items():
        if profile.key_env and not find_key(profile.key_env):
            keyless.setdefault(profile.key_env, []).append(name)
    for variable, names in keyless.items():
        yield f"key: {', '.join(names)}: {missing(variable)}"
    if form.judge != RULES:
        yield from _missing_judge(form)
    if form.gpus and len(gpus()) < form.gpus:
        yield f"gpu: each cell wants {form.gpus}, this machine has {len(gpus())}"
    try:
        choose_backend(form.sandbox)
    except SandboxUnavailable as error:
        yield f"sandbox: {error}"


def _missing_judge(form: SweepForm) -> Iterable[str]:
    try:
        profile = load_judge_profiles(form.judges_file)[form.judge]
    except KeyError:
        raise UsageProblem(f"unknown judge {form.judge!r}") from None
    except Problem as error:
        yield f"judge: {error}"
        return
    if profile.key_env and not find_key(profile.key_env):
        yield f"key: judge {form.judge}: {missing(profile.key_env)}"
