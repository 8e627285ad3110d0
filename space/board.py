"""One board: its agents with their means, intervals and ranks, over all of its cells or some of them.

Nothing is averaged here: means, intervals and comparisons are those of ``hf_datasets.stats``, drawn once for every
cell when the results are read; a filter by track, task or tier only takes some of the cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import pandas as pd

from hf_datasets.stats import CellMeans, cell_means, cell_units, compare, completed, counted, ranks, resources
from tasks.registry import TaskError, load_task

SCORES = ("overall", "agentic", "task_score", "s1", "s2", "s3", "s4", "s5")
CELL = ["agent", "task", "tier"]
_KEPT, _FRAMES_KEPT = 64, 8
"""Tables, and frames of runs, of so many filters are remembered."""
_QUICK = 2
"""Draws where no interval is read."""
_NEEDED = (
    "run_id", *CELL, "track", "repeat", "attempt", "finished_at", *SCORES, "completion", "turns", "seconds_working",
    "tokens_in", "tokens_out", "cost_usd", "end_reason", "error_codes", "status", "model",
)  # fmt: skip
"""What statistics read of a run; the other columns would only be copied again and again."""


K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Filter:
    """Which part of a board is looked at; empty is all. ``since`` and ``until`` are days, ``2026-05-31``."""

    tracks: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    @property
    def by_run(self) -> Filter:
        """The part that takes single runs, not whole cells."""
        return replace(self, tracks=(), tasks=(), tiers=())

    def cells(self, table: pd.DataFrame) -> pd.Series:
        """Which rows of a table with the columns task, track and tier are meant."""
        keep = pd.Series(True, index=table.index)
        for column, chosen in (("track", self.tracks), ("task", self.tasks), ("tier", self.tiers)):
            if chosen:
                keep &= table[column].isin(chosen)
        return keep

    def runs(self, runs: pd.DataFrame) -> pd.Series:
        """Which runs are meant, the dates being those of their end in UTC."""
        keep = self.cells(runs)
        if self.statuses:
            keep &= runs["status"].isin(self.statuses)
        if self.since:
            keep &= runs["finished_at"] >= pd.Timestamp(self.since, tz="UTC")
        if self.until:
            keep &= runs["finished_at"] < pd.Timestamp(self.until, tz="UTC") + pd.Timedelta(days=1)
        return keep


@dataclass(frozen=True)
class Board:
    """The runs of one board. Tables are made once for each filter and kept."""

    key: str
    runs: pd.DataFrame
    _chosen: dict[Filter, pd.DataFrame] = field(default_factory=dict, repr=False)
    _tables: dict[Filter, pd.DataFrame] = field(default_factory=dict, repr=False)
    _means: dict[str, CellMeans] = field(default_factory=dict, repr=False)

    @cached_property
    def plan(self) -> pd.DataFrame:
        """Every agent on every cell that any agent ran, with as many repeats as the task is planned with."""
        cells = self.runs.groupby(["task", "tier", "track"], as_index=False, observed=True)["repeat"].max()
        cells["n_planned"] = [
            planned_repeats(task) or highest + 1
            for task, highest in zip(cells["task"], cells.pop("repeat"), strict=True)
        ]
        agents = pd.DataFrame({"agent": sorted(self.runs["agent"].unique())})
        return agents.merge(cells, how="cross")[[*CELL, "track", "n_planned"]]

    def prepare(self) -> None:
        """Do now what the first visitor would wait for."""
        self.table(Filter())

    def warm(self) -> None:
        """Make the tables of every tier and of every track."""
        for tier in sorted(self.plan["tier"].unique()):
            self.table(Filter(tiers=(tier,)))
        for track in sorted(self.plan["track"].unique()):
            self.table(Filter(tracks=(track,)))

    @cached_property
    def _slim(self) -> pd.DataFrame:
        return self.runs[list(_NEEDED)]

    def chosen(self, wanted: Filter) -> pd.DataFrame:
        """The runs that a filter takes, with all their columns."""
        return self.runs[wanted.runs(self.runs)]

    def counted(self, wanted: Filter) -> pd.DataFrame:
        """The planned runs that a filter takes, one a repeat, with the columns that statistics read."""
        there = self._chosen.get(wanted)
        if there is None:
            there = counted(self._slim[wanted.runs(self._slim)], self.plan).drop(columns="n_planned")
            _keep(self._chosen, wanted, there, _FRAMES_KEPT)
        return there

    def means(self, column: str, wanted: Filter = Filter(), *, quick: bool = False) -> CellMeans:
        """Means of a score over the cells of the filter.

        Where the filter takes single runs, cells are drawn anew; ``quick`` leaves that out: no interval may be read
        from the answer then.
        """
        by_run = wanted.by_run
        if by_run == Filter():
            whole = self._means.get(column)
            if whole is None:
                whole = self._means[column] = cell_means(self.counted(by_run), column, self.plan)
        else:
            draws = {"draws": _QUICK} if quick else {}
            whole = cell_means(self.counted(by_run), column, self.plan, **draws)
        keep = wanted.cells(whole.table).to_numpy()
        if keep.all():
            return whole
        return CellMeans(column, whole.table[keep].reset_index(drop=True), whole.draws[:, keep])

    def table(self, wanted: Filter = Filter()) -> pd.DataFrame:
        """One row an agent, best first; see ``space.columns`` for what the columns are. Scores lie in [0, 1]."""
        table = self._tables.get(wanted)
        if table is None:
            table = self._table(wanted)
            _keep(self._tables, wanted, table, _KEPT)
        return table

    def _table(self, wanted: Filter) -> pd.DataFrame:
        means = self.means("overall", wanted)
        if means.table.empty:
            return pd.DataFrame(columns=["agent"])
        table = means.over("agent").set_index("agent")
        table = table.rename(columns={"mean": "overall", "low": "overall_low", "high": "overall_high"})
        units = cell_units(means)
        ranked = ranks(table["overall"], compare(units)).set_index("agent")
        table = table.join(ranked[["rank", "tied_with"]])
        has_intervals = wanted.by_run == Filter()
        for column in SCORES[1:]:
            scores = self.means(column, wanted, quick=True).over("agent").set_index("agent")
            table[column] = scores["mean"]
            for end in ("low", "high"):
                table[f"{column}_{end}"] = scores[end] if has_intervals else float("nan")
        by_track = means.over("agent", "track").pivot(index="agent", columns="track", values="mean")
        table = table.join(by_track.add_prefix("track_"))
        table = table.join(self._outcomes(wanted))
        table = table.sort_values("overall", ascending=False, na_position="last", kind="stable")
        return table.reset_index()

    def _outcomes(self, wanted: Filter) -> pd.DataFrame:
        """What the runs took, how many failed, and where they come from."""
        plan = self.plan[wanted.cells(self.plan)]
        there = self.counted(wanted)
        took = resources(there, plan).set_index("agent")[["minutes", "turns", "tokens", "cost_usd"]]
        groups = there.assign(failed=1 - completed(there)).groupby("agent", observed=True)
        took["failure_rate"] = groups["failed"].mean()
        took["n_runs"] = groups.size()
        for column in ("model", "status"):
            took[column] = groups[column].agg(_all_of)
        took["first_run"], took["last_run"] = groups["finished_at"].min(), groups["finished_at"].max()
        took["n_runs"] = took["n_runs"].fillna(0).astype(int)
        return took


def _keep(cache: dict[K, V], key: K, value: V, most: int) -> None:
    """Remember a result, and forget the oldest but one: the first is what every visitor sees."""
    if len(cache) >= most:
        cache.pop(list(cache)[1], None)
    cache[key] = value


def _all_of(values: pd.Series) -> str | None:
    """The one value that all have, or all of them in a row."""
    found = sorted({str(value) for value in values.dropna()})
    return ", ".join(found) or None


def planned_repeats(task_id: str) -> int | None:
    """Repeats that the task is planned with; None for a task that is not ours."""
    try:
        return load_task(task_id).repeats
    except TaskError:
        return None


def boards_of(runs: pd.DataFrame) -> Mapping[str, Board]:
    """All boards, the one with most runs first."""
    groups = runs.groupby("board", sort=False, observed=True) if len(runs) else []
    found = {str(key): Board(str(key), group.reset_index(drop=True)) for key, group in groups}
    return dict(sorted(found.items(), key=lambda item: (-len(item[1].runs), item[0])))
