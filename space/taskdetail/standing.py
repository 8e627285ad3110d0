"""How agents stand on one task, between doing nothing, the scripted baseline and the ceiling."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from space.boards import board_title
from space.markup import el, join, note, percent, section, table
from space.palette import PALETTE
from space.runlist import runs_of
from space.site import Site
from tasks.schema import Baseline, Release, Task

CEILING = 1.0


@dataclass(frozen=True)
class Line:
    """A score that the agents' are held against, and what it is the score of."""

    value: float
    name: str
    colour: str


def standing(task: Task, runs: pd.DataFrame) -> Markup:
    """One part for each board: runs that cannot be compared never share one."""
    found = runs_of(runs, task.id)
    if not len(found):
        return note("These results hold no run of this task yet.")
    parts = [_board(task, str(board), part) for board, part in found.groupby("board", sort=True)]
    return join(parts)


def _board(task: Task, board: str, runs: pd.DataFrame) -> Markup:
    release = str(runs["release"].iloc[0])
    lines = reference_lines(task, release)
    groups = [
        _group(agent, tier, part) for (agent, tier), part in runs.groupby(["agent", "tier"], sort=False)
    ]
    groups.sort(key=lambda group: (group.mean is None, -(group.mean or 0.0), group.agent, group.tier))
    bars = [_bar(group, lines) for group in groups]
    names = ", ".join(f"{line.name} {percent(line.value)}" for line in lines)
    chart = el(
        "div", _key(lines), bars, class_="amb-standing", role="img", aria_label=f"Task scores; {names}"
    )
    heads = ("agent", "tier", "task score", "without the gate", "OVERALL", "cases", "runs")
    rows = [
        [
            el("a", group.agent, href=Site.link("run", run=group.best_run)),
            group.tier,
            percent(group.mean),
            percent(group.ungated),
            percent(group.overall),
            f"{100 * group.completion:.0f} % complete" if group.completion is not None else "–",
            group.runs,
        ]
        for group in groups
    ]
    compared = el("a", "Compare their cases", href=Site.link("compare", task=task.id))
    return section(
        board_title(board), chart, table(heads, rows, caption="Means over runs, x100"), el("p", compared)
    )


def reference_lines(task: Task, release: str) -> list[Line]:
    """Doing nothing, the scripted baseline and the references themselves, as far as they were measured."""
    measured = task.baselines.get(Release(release), Baseline())
    nothing = f"doing nothing ({task.trivial.kind.replace('_', ' ')})"
    known = [
        (measured.trivial, nothing, "#7f7f7f"),
        (measured.strong, "scripted baseline", PALETTE.of(1)),
        (CEILING, "ceiling (the references)", PALETTE.of(2)),
    ]
    return [Line(value, name, colour) for value, name, colour in known if value is not None]


@dataclass(frozen=True)
class _Group:
    agent: str
    tier: str
    mean: float | None
    low: float
    high: float
    ungated: float | None
    overall: float | None
    completion: float | None
    runs: int
    best_run: str


def _group(agent: str, tier: str, runs: pd.DataFrame) -> _Group:
    scores = runs["task_score"].dropna()
    return _Group(
        agent=agent,
        tier=tier,
        mean=_mean(runs["task_score"]),
        low=float(scores.min()) if len(scores) else 0.0,
        high=float(scores.max()) if len(scores) else 0.0,
        ungated=_mean(runs["task_score_ungated"]),
        overall=_mean(runs["overall"]),
        completion=_mean(runs["completion"]),
        runs=len(runs),
        best_run=str(runs.sort_values("task_score", ascending=False)["run_id"].iloc[0]),
    )


def _mean(values: pd.Series) -> float | None:
    """Mean; None where one of the runs has no value, for unscored is not zero."""
    return None if values.isna().any() else float(values.mean())


def _bar(group: _Group, lines: list[Line]) -> Markup:
    marks = [
        el(
            "i",
            class_="amb-mark",
            style=f"left:{100 * line.value:.2f}%;--line:{line.colour}",
            title=line.name,
        )
        for line in lines
    ]
    dot = reach = None
    if group.mean is not None:
        reach = el(
            "i",
            class_="amb-reach",
            style=f"left:{100 * group.low:.2f}%;width:{100 * (group.high - group.low):.2f}%",
        )
        dot = el("i", class_="amb-dot", style=f"left:{100 * group.mean:.2f}%")
    text = f"{group.agent} {group.tier}: {percent(group.mean)}, {group.runs} runs"
    return el(
        "div",
        el("span", f"{group.agent} · {group.tier}", class_="amb-who"),
        el("span", marks, reach, dot, class_="amb-scale"),
        el("span", percent(group.mean), class_="amb-what"),
        title=text,
        class_="amb-standing-row",
    )  # fmt: skip


def _key(lines: list[Line]) -> Markup:
    items = [
        el(
            "li",
            el("span", class_="amb-swatch", style=f"background:{line.colour}"),
            f"{line.name} {percent(line.value)}",
        )
        for line in lines
    ]
    return el("ul", items, el("li", "● mean, bar: lowest to highest run"), class_="amb-legend")
