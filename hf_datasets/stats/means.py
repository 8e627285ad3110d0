"""Run-weighted means as published, with a two-level bootstrap interval and with what is missing.

A cell's score is the mean over its planned repeats; any mean over cells weighs each by its planned repeats, so that
the track column and the overall column are means over all planned runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from hf_datasets.stats.frames import CELL, counted
from hf_datasets.stats.plans import observed_plan
from hf_datasets.stats.resample import DRAWS, SEED, Floats, interval, resampled_sums
from tasks.names import Tier
from tasks.scoring import TASK_SHARE

NEEDS_JUDGE = ("overall", "agentic", "s1", "s2", "s3")
"""Unscored while the judge has not scored the run."""

_TASK_PART = {"task_score": 1.0, "task_score_ungated": 1.0, "overall": TASK_SHARE}
"""How much of a column is the mean of the run's case scores."""


@dataclass(frozen=True)
class CellMeans:
    """Means of one column for every planned cell.

    Attributes
    ----------
    column : str
    table : DataFrame
        One row a cell: ``agent, task, tier, track, n_planned, n_present`` (runs with a value), ``n_unjudged`` (runs
        that are there and wait for a judge), ``mean`` (over the present runs, NaN without any).
    draws : array of shape (draws, cells)
        Bootstrap means of the cells, NaN where a cell has fewer than two runs: how far they scatter is not known.
    """

    column: str
    table: pd.DataFrame
    draws: Floats

    def over(self, *keys: str) -> pd.DataFrame:
        """Means over the cells that agree in ``keys``, such as ``over("agent", "track")``; all cells without keys.

        Returns
        -------
        DataFrame
            The keys, and

            ``mean``
                Run-weighted over the planned cells; NaN while one of them has no run with a value.
            ``low, high``
                95 % bootstrap interval of the mean; NaN while one of the cells has fewer than two runs.
            ``n_present, n_planned, n_unjudged``
                Runs with a value, planned runs, runs that wait for a judge.
            ``n_empty``
                Planned cells without any run with a value.
            ``mean_present``
                Mean over the runs that are there, cells without any left aside.
            ``lowest, highest``
                What the mean would be if every missing run scored 0 or 1.
        """
        groups = (
            self.table.groupby(list(keys), sort=True).indices if keys else {(): np.arange(len(self.table))}
        )
        rows = []
        for key, cells in groups.items():
            names = key if isinstance(key, tuple) else (key,)
            rows.append(dict(zip(keys, names, strict=True)) | self._summary(cells))
        return pd.DataFrame(rows, columns=[*keys, *_SUMMARY])

    def drawn(self, cells: npt.NDArray[np.intp]) -> Floats:
        """Bootstrap draws of the run-weighted mean over the given rows of the table."""
        weights = self.table["n_planned"].to_numpy(float)[cells]
        return np.asarray(self.draws[:, cells] @ weights / weights.sum())

    def _summary(self, cells: npt.NDArray[np.intp]) -> dict[str, float | int]:
        part = self.table.iloc[cells]
        planned, present = part["n_planned"].to_numpy(), part["n_present"].to_numpy()
        means = part["mean"].to_numpy()
        total = float((np.nan_to_num(means) * present).sum())
        low, high = interval(self.drawn(cells))
        return {
            "mean": float(means @ planned / planned.sum()),
            "low": float(low),
            "high": float(high),
            "n_present": int(present.sum()),
            "n_planned": int(planned.sum()),
            "n_unjudged": int(part["n_unjudged"].sum()),
            "n_empty": int((present == 0).sum()),
            "mean_present": total / present.sum() if present.any() else float("nan"),
            "lowest": total / planned.sum(),
            "highest": (total + (planned - present).sum()) / planned.sum(),
        }


_SUMMARY = (
    "mean", "low", "high", "n_present", "n_planned", "n_unjudged", "n_empty", "mean_present", "lowest", "highest"
)  # fmt: skip


def cell_means(
    runs: pd.DataFrame,
    column: str,
    plan: pd.DataFrame | None = None,
    cases: pd.DataFrame | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> CellMeans:
    """Means of ``column`` for every planned cell, with bootstrap draws.

    Parameters
    ----------
    runs : DataFrame
        Rows of runs of one board (see ``with_boards``).
    column : str
        A score in [0, 1], such as ``overall`` or ``s3``; missing values are missing runs.
    plan : DataFrame, optional
        ``observed_plan(runs)`` by default.
    cases : DataFrame, optional
        Rows of cases (``run_id, score``). With them the cases within a run are drawn too, where the run's TASK is the
        mean of its case scores: not in detection, and not where the completeness gate made it 0. They enter as a
        normal draw with the bootstrap's exact variance, which costs no loop over cases.
    """
    plan = observed_plan(runs) if plan is None else plan
    table = plan.sort_values(CELL, kind="stable").reset_index(drop=True)
    table["cell"] = np.arange(len(table))
    there = counted(runs, plan).merge(table[[*CELL, "cell"]], on=CELL)
    values = pd.to_numeric(there[column], errors="coerce").to_numpy(float)
    cell = there["cell"].to_numpy(np.intp)
    has_value = ~np.isnan(values)
    waits = (column in NEEDS_JUDGE) & ~has_value & there["task_score"].notna().to_numpy()
    table["n_present"] = np.bincount(cell[has_value], minlength=len(table))
    table["n_unjudged"] = np.bincount(cell[waits], minlength=len(table))
    sums = np.bincount(cell[has_value], values[has_value], minlength=len(table))
    table["mean"] = sums / table["n_present"].where(table["n_present"] > 0)
    order = np.flatnonzero(has_value)[np.argsort(cell[has_value], kind="stable")]
    variances = _case_variances(there, column, cases)[order]
    drawn = _draw(values[order], variances, cell[order], len(table), draws, seed)
    return CellMeans(column, table.drop(columns="cell"), drawn)


def _draw(
    values: Floats, variances: Floats, cell: npt.NDArray[np.intp], cells: int, draws: int, seed: int
) -> Floats:
    """Bootstrap means of shape (draws, cells); the runs come sorted by cell."""
    rng = np.random.default_rng(seed)
    drawn = np.full((draws, cells), np.nan)
    present, starts, sizes = np.unique(cell, return_index=True, return_counts=True)
    if not len(present):
        return drawn
    if variances.any():
        sums, spread = resampled_sums(np.stack([values, variances]), starts, draws, rng)
        sums += np.sqrt(spread) * rng.standard_normal(sums.shape)
        means = np.clip(sums / sizes, 0.0, 1.0)
    else:
        means = resampled_sums(values, starts, draws, rng) / sizes
    means[:, sizes < 2] = np.nan
    drawn[:, present] = means
    return drawn


def _case_variances(runs: pd.DataFrame, column: str, cases: pd.DataFrame | None) -> Floats:
    """Variance of each run's value when its cases are drawn anew; 0 where it is no mean of case scores."""
    part = _TASK_PART.get(column)
    if cases is None or part is None:
        return np.zeros(len(runs))
    by_run = cases.groupby("run_id")["score"].agg(["mean", "count", lambda score: score.var(ddof=0)])
    mean, count, variance = by_run.reindex(runs["run_id"]).to_numpy(float).T
    task = "task_score_ungated" if column == "task_score_ungated" else "task_score"
    is_mean = np.abs(mean - pd.to_numeric(runs[task], errors="coerce").to_numpy(float)) < 1e-6
    return np.where(is_mean, part**2 * variance / count, 0.0)


def tier_change(means: CellMeans, *keys: str) -> pd.DataFrame:
    """How much more help changes a score: Lite against Standard, on the tasks that are planned in both tiers.

    Returns
    -------
    DataFrame
        The keys (``agent`` by default), the means ``standard`` and ``lite``, ``difference`` (Lite - Standard) with its
        95 % bootstrap interval ``low, high``, and ``relative`` (difference / Standard; NaN where Standard is 0).
    """
    keys = keys or ("agent",)
    table = means.table
    both = table.groupby(["agent", "task"])["tier"].transform(lambda tier: {*_PAIR} <= set(tier))
    rows = []
    for key, group in table[both].groupby(list(keys), sort=True):
        by_tier = {tier: group.index[group["tier"] == tier].to_numpy(np.intp) for tier in _PAIR}
        standard, lite = (_mean(table, by_tier[tier]) for tier in _PAIR)
        low, high = interval(
            means.drawn(by_tier[Tier.LITE.value]) - means.drawn(by_tier[Tier.STANDARD.value])
        )
        difference = lite - standard
        relative = difference / standard if standard else float("nan")
        rows.append((*key, standard, lite, difference, float(low), float(high), relative))
    return pd.DataFrame(rows, columns=[*keys, "standard", "lite", "difference", "low", "high", "relative"])


_PAIR = (Tier.STANDARD.value, Tier.LITE.value)


def _mean(table: pd.DataFrame, cells: npt.NDArray[np.intp]) -> float:
    part = table.iloc[cells]
    planned = part["n_planned"].to_numpy()
    return float(part["mean"].to_numpy() @ planned / planned.sum())
