"""Agents compared pair by pair on the same cases or cells, with a bound on false finds over all pairs.

Units are a frame with one row a unit: its columns ``stratum`` and ``weight``, and one column of scores an agent. A
unit that one of two agents lacks is left out of their comparison, and the number that remains is stated.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pandas as pd

from hf_datasets.stats.frames import counted
from hf_datasets.stats.means import CellMeans
from hf_datasets.stats.resample import DRAWS, SEED, Floats, interval, resampled_sums

ALPHA = 0.05
FLIPS = 9_999
_EXACT_UNITS = 13
"""Up to so many units every pattern of signs is looked at, above it ``FLIPS`` random ones."""
_AT_A_TIME = 4_000_000
_NOT_AGENTS = ("stratum", "weight")


def case_units(runs: pd.DataFrame, cases: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """Cases as units: an agent's score on a case is its mean over the agent's planned runs in all tiers.

    A task is a stratum and weighs as much as its planned runs, shared equally by its cases.
    """
    there = counted(runs, plan)
    scores = cases[["run_id", "case_id", "score"]].merge(there[["run_id", "agent", "task"]], on="run_id")
    units = scores.pivot_table(index=["task", "case_id"], columns="agent", values="score", aggfunc="mean")
    agents = list(units.columns)
    units = units.reset_index().rename(columns={"task": "stratum"})
    units.columns.name = None
    planned = plan.groupby("task")["n_planned"].sum() / plan["agent"].nunique()
    size = units.groupby("stratum")["case_id"].transform("size")
    units["weight"] = units["stratum"].map(planned) / size
    return units[[*_NOT_AGENTS, *agents]]


def cell_units(means: CellMeans) -> pd.DataFrame:
    """Cells (task x tier) as units, each weighed by its planned repeats, all in one stratum."""
    table = means.table
    units = table.pivot_table(index=["task", "tier"], columns="agent", values="mean", dropna=False)
    weight = table.groupby(["task", "tier"])["n_planned"].max()
    frame = units.assign(stratum="cells", weight=weight).dropna(subset="weight").reset_index(drop=True)
    frame.columns.name = None
    return frame[[*_NOT_AGENTS, *units.columns]]


def compare(units: pd.DataFrame, draws: int = DRAWS, flips: int = FLIPS, seed: int = SEED) -> pd.DataFrame:
    """All pairs of agents: the weighted mean difference, its interval, and whether chance explains it.

    Returns
    -------
    DataFrame
        ``first, second``; ``difference`` (first - second); ``low, high``: 95 % bootstrap interval, units drawn within
        their stratum; ``p``: two-sided, paired permutation of signs, exact up to 13 units; ``p_holm``: p adjusted over
        all pairs after Holm; ``n_units`` that both have, of ``n_possible``.
    """
    agents = [name for name in units.columns if name not in _NOT_AGENTS]
    pairs = list(combinations(agents, 2))
    units = units.sort_values("stratum", kind="stable")
    weight = units["weight"].to_numpy(float)
    scores = units[agents].to_numpy(float)
    rng = np.random.default_rng(seed)
    differences = (
        np.stack([scores[:, agents.index(a)] - scores[:, agents.index(b)] for a, b in pairs])
        if pairs
        else (np.empty((0, len(units))))
    )
    p_values = _sign_flips(weight, differences, flips, rng)
    rows = []
    for (first, second), difference, p in zip(pairs, differences, p_values, strict=True):
        both = ~np.isnan(difference)
        mean, low, high = _difference(
            difference[both], weight[both], units["stratum"].to_numpy()[both], draws, rng
        )
        rows.append((first, second, mean, low, high, p, int(both.sum()), len(units)))
    names = ["first", "second", "difference", "low", "high", "p", "n_units", "n_possible"]
    table = pd.DataFrame(rows, columns=names)
    table.insert(names.index("p") + 1, "p_holm", holm(table["p"].to_numpy(float)))
    return table


def holm(p: npt.ArrayLike) -> Floats:
    """p values adjusted after Holm (1979); a NaN (no common unit) is no test and stays NaN."""
    values = np.asarray(p, float)
    adjusted = np.full(values.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def ranks(means: pd.Series, comparisons: pd.DataFrame, alpha: float = ALPHA) -> pd.DataFrame:
    """Ranks with ties: an agent's rank is 1 + the number of agents that are significantly better.

    Parameters
    ----------
    means : Series
        Score by agent; an agent without one (NaN) has no rank.
    comparisons : DataFrame
        From ``compare``.

    Returns
    -------
    DataFrame
        ``agent, mean, rank, tied_with`` (agents that chance does not tell from it), best first.
    """
    told_apart = {
        frozenset((row.first, row.second)) for row in comparisons.itertuples() if row.p_holm < alpha
    }
    scored = means.dropna()
    rows = []
    for agent, mean in means.sort_values(ascending=False, kind="stable").items():
        others = [] if np.isnan(mean) else [name for name in scored.index if name != agent]
        apart = [name for name in others if frozenset((agent, name)) in told_apart]
        rank = None if np.isnan(mean) else 1 + sum(scored[name] > mean for name in apart)
        rows.append((agent, mean, rank, tuple(sorted(set(others) - set(apart)))))
    return pd.DataFrame(rows, columns=["agent", "mean", "rank", "tied_with"]).astype({"rank": "Int64"})


def _sign_flips(weight: Floats, differences: Floats, flips: int, rng: np.random.Generator) -> list[float]:
    """Two-sided p of each row of differences: how often as far from zero when each unit's sign is a coin's throw."""
    there = ~np.isnan(differences)
    parts = np.where(there, differences, 0.0) * weight
    found = np.abs(parts.sum(axis=1))
    bound = found * (1 - 1e-9) - 1e-15  # sums in another order are not smaller
    units = parts.shape[1]
    if units <= _EXACT_UNITS:
        signs = np.array(list(product((1.0, -1.0), repeat=units)))
        as_far = (np.abs(signs @ parts.T) >= bound).mean(axis=0)
    else:
        reached = np.ones(len(parts))
        step = max(1, _AT_A_TIME // units)
        for begin in range(0, flips, step):
            some = min(step, flips - begin)
            bits = np.unpackbits(
                np.frombuffer(rng.bytes(some * units // 8 + 1), np.uint8), count=some * units
            )
            signs = bits.reshape(some, units).astype(np.float32) * 2 - 1
            reached += (np.abs(signs @ parts.T.astype(np.float32)) >= bound * (1 - 1e-6)).sum(axis=0)
        as_far = reached / (flips + 1)
    return [float(p) for p in np.where(there.any(axis=1), as_far, np.nan)]


def _difference(
    difference: Floats, weight: Floats, stratum: npt.NDArray[np.object_], draws: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    if not len(difference):
        return (float("nan"),) * 3
    starts = np.unique(stratum, return_index=True)[1].astype(np.intp)
    sums, weights = resampled_sums(np.stack([difference * weight, weight]), starts, draws, rng)
    low, high = interval(sums.sum(axis=1) / weights.sum(axis=1))
    return float(difference @ weight / weight.sum()), float(low), float(high)
