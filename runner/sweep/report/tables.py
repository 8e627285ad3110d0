"""The tables of a report: the published five, and what stands beside them. Scores are shown x100."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from evaluator.fired import TITLES
from hf_datasets import stats
from hf_datasets.stats import CellMeans
from tasks.scoring import STAGE_NAMES

TRACKS = {
    "segmentation": "Seg", "enhancement": "Enh", "vqa": "VQA", "report": "Report", "detection": "Det",
    "classification": "Cls", "synthesis": "Syn",
}  # fmt: skip
OPEN = "–"
"""Shown for what is not known."""


@dataclass(frozen=True)
class Table:
    """A table ready to be written: every cell is text, the first column is a heading."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Board:
    """Runs that may be compared, their plan, and the means that several tables and figures share."""

    runs: pd.DataFrame
    cases: pd.DataFrame
    plan: pd.DataFrame
    means: dict[str, CellMeans]

    @classmethod
    def of(cls, runs: pd.DataFrame, cases: pd.DataFrame, plan: pd.DataFrame) -> Board:
        columns = ("overall", "agentic", "task_score", *(stage.lower() for stage in STAGE_NAMES))
        means = {column: stats.cell_means(runs, column, plan, cases) for column in columns}
        return cls(runs, cases, plan, means)

    @property
    def tracks(self) -> list[str]:
        """In the published order."""
        planned = set(self.plan["track"])
        return [track for track in TRACKS if track in planned]

    def agents(self) -> list[str]:
        """Best first; those without an overall mean stand last, by the mean of what is there."""
        table = self.means["overall"].over("agent")
        order = table.sort_values(["mean", "mean_present", "agent"], ascending=[False, False, True])
        return list(order["agent"])


def overall_by_track(board: Board) -> Table:
    """OVERALL: agents x tracks, the run-weighted mean of all, its interval and rank."""
    means = board.means["overall"]
    by_track = means.over("agent", "track").set_index(["agent", "track"])
    overall = means.over("agent").set_index("agent")
    ranked = stats.ranks(overall["mean"], stats.compare(stats.cell_units(means))).set_index("agent")
    rows = []
    for agent in board.agents():
        row = overall.loc[agent]
        tracks = [_score(_cell(by_track, (agent, track))) for track in board.tracks]
        rank = ranked.loc[agent, "rank"]
        rows.append(
            (agent, OPEN if pd.isna(rank) else str(rank), *tracks, _score(row["mean"]),
             _interval(row["low"], row["high"]), _coverage(row), _score(row["mean_present"]))
        )  # fmt: skip
    columns = ("agent", "rank", *(TRACKS[track] for track in board.tracks),
               "Overall", "95 %", "runs", "of those there")  # fmt: skip
    note = (
        "Run-weighted means, x100. Equal ranks: a paired permutation test over the cells, adjusted after Holm, does "
        "not tell the agents apart (with fewer than six cells it never can). "
        f"{OPEN}: a planned cell has no scored run yet."
    )
    return Table("OVERALL by track", note, columns, tuple(rows))


def agentic_by_tier(board: Board) -> Table:
    """AGENTIC in both tiers and what the more helpful brief changes."""
    change = stats.tier_change(board.means["agentic"]).set_index("agent")
    rows = []
    for agent in board.agents():
        if agent in change.index:
            row = change.loc[agent]
            rows.append(
                (agent, _score(row["standard"]), _score(row["lite"]), _signed(100 * row["difference"]),
                 _interval(row["low"], row["high"]), _signed(100 * row["relative"]))
            )  # fmt: skip
    columns = ("agent", "Standard", "Lite", "Lite - Standard", "95 %", "relative %")
    return Table(
        "AGENTIC by tier", "On the tasks that are planned in both tiers, x100.", columns, tuple(rows)
    )


def stages(board: Board) -> Table:
    """AGENTIC, TASK and the five stages."""
    names = {
        "agentic": "AGENTIC",
        "task_score": "TASK",
        **{s.lower(): f"{s} {n}" for s, n in STAGE_NAMES.items()},
    }
    means = {column: board.means[column].over("agent").set_index("agent")["mean"] for column in names}
    rows = tuple((agent, *(_score(means[column][agent]) for column in names)) for agent in board.agents())
    return Table(
        "AGENTIC, TASK and the stages", "Run-weighted means, x100.", ("agent", *names.values()), rows
    )


def resources_by(board: Board, by: str) -> Table:
    """Minutes, turns, tokens and US dollars of an average run, by agent or by track."""
    table = stats.resources(board.runs, board.plan, by).set_index(by)
    order = board.agents() if by == "agent" else board.tracks
    rows: list[tuple[str, ...]] = [
        (name, _number(row["minutes"]), _number(row["turns"]), _number(row["tokens"] / 1e6, 2),
         _number(row["cost_usd"], 2), f"{row['n_present']:.0f}/{row['n_planned']:.0f}")
        for name, row in ((name, table.loc[name]) for name in order)
    ]  # fmt: skip
    columns = [by, "min", "turns", "M tokens", "USD", "runs"]
    if by == "agent":
        cost = stats.cost_per_completed(board.runs, board.plan).set_index("agent")["cost_per_completed"]
        columns.append("USD a completed run")
        rows = [(*row, _number(cost[row[0]], 2)) for row in rows]
    note = f"Means over runs. {OPEN} under USD: not every run has a price."
    return Table(f"What a run takes, by {by}", note, tuple(columns), tuple(rows))


def errors(board: Board) -> Table:
    """Which error codes fire, and who recovers."""
    table = stats.error_shares(board.runs, board.plan).set_index("agent")
    rows = []
    for agent in board.agents():
        row = table.loc[agent]
        shares = [_number(100 * row[code]) for code in TITLES]
        recovery = f"{_number(100 * row['recovery_rate'])} ({row['n_troubled']:.0f})"
        rows.append((agent, *shares, recovery, _number(row["engineering_to_knowledge"])))
    columns = ("agent", *(f"{code} %" for code in TITLES), "recovered % (of runs)", "E2-E5 : E1")
    words = "; ".join(f"{code} {title}" for code, title in TITLES.items())
    note = f"Shares of all fired codes. {words}. Recovered: of runs with two or more codes, those that delivered all."
    return Table("Error codes", note, columns, tuple(rows))


def overall_by_codes(board: Board) -> Table:
    """Mean OVERALL of the runs with so many different codes; an association, not a cause."""
    table = stats.overall_by_codes(board.runs, board.plan).set_index(["agent", "codes"])
    counts = sorted(set(table.index.get_level_values("codes")))
    rows = []
    for agent in board.agents():
        found = [table.loc[(agent, n)] if (agent, n) in table.index else None for n in counts]
        cells = [
            OPEN if row is None else f"{_score(row['overall'])} ({row['n_present']:.0f})" for row in found
        ]
        rows.append((agent, *cells))
    columns = ("agent", *(f"{n} code{'' if n == 1 else 's'}" for n in counts))
    note = "x100, in brackets the number of runs. Codes are found after the run: an association, not a cause."
    return Table("OVERALL by number of error codes", note, columns, tuple(rows) if counts else ())


def reliability(board: Board) -> Table:
    """Completion: would one of k runs do, would all of k?"""
    table = stats.reliability(board.runs, board.plan).set_index(["agent", "k"])
    ks = [k for k in stats.KS if k <= board.plan["n_planned"].min()]
    rows = tuple(
        (agent, *(_score(table.loc[(agent, k), name]) for name in ("pass_at_k", "all_of_k") for k in ks))
        for agent in board.agents()
    )
    columns = ("agent", *(f"one of {k}" for k in ks), *(f"all of {k}" for k in ks))
    return Table(
        "Completed runs", "Chance that one of k runs, or each of k, completes its cell, %.", columns, rows
    )


def ends(board: Board) -> Table:
    """How the planned runs ended."""
    table = stats.end_reasons(board.runs, board.plan).set_index("agent")
    used = [name for name in table.columns if name in ("missing", "n_planned") or table[name].any()]
    names = ["planned" if name == "n_planned" else name.replace("_", " ") for name in used]
    rows = tuple((agent, *(str(table.loc[agent, name]) for name in used)) for agent in board.agents())
    return Table("How runs ended", "", ("agent", *names), rows)


def comparisons(board: Board) -> Table:
    """TASK, pair by pair, on the same cases."""
    rows: Sequence[Any] = ()
    if len(board.cases):
        table = stats.compare(stats.case_units(board.runs, board.cases, board.plan))
        rows = [
            (f"{row.first} - {row.second}", _signed(100 * row.difference), _interval(row.low, row.high),
             _p(row.p_holm), f"{row.n_units}/{row.n_possible}")
            for row in table.itertuples()
        ]  # fmt: skip
    note = "Differences of case scores, x100; paired permutation test, p adjusted over all pairs after Holm."
    return Table("Agents on the same cases", note, ("pair", "difference", "95 %", "p", "cases"), tuple(rows))


def _cell(table: pd.DataFrame, key: tuple[str, str]) -> float:
    return float(table["mean"].get(key, float("nan")))


def _score(value: float) -> str:
    return _number(100 * value)


def _number(value: float, digits: int = 1) -> str:
    return OPEN if pd.isna(value) else f"{value:.{digits}f}"


def _signed(value: float) -> str:
    return OPEN if pd.isna(value) else f"{value:+.1f}"


def _interval(low: float, high: float) -> str:
    return OPEN if pd.isna(low) else f"{100 * low:.1f} to {100 * high:.1f}"


def _p(value: float) -> str:
    return OPEN if pd.isna(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _coverage(row: pd.Series) -> str:
    waits = f", {row['n_unjudged']:.0f} unjudged" if row["n_unjudged"] else ""
    return f"{row['n_present']:.0f}/{row['n_planned']:.0f}{waits}"
