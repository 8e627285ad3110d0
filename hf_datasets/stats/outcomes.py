"""How runs end, how reliably, at what cost, and with which errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import pandas as pd

from evaluator.error_views import MANY, codes_of, view_errors
from evaluator.fired import TITLES
from evaluator.trace import EndReason
from hf_datasets.stats.frames import CELL, counted

KS = (1, 3, 5, 10)


def completed(runs: pd.DataFrame) -> pd.Series:
    """1.0 where every case was delivered and valid, 0.0 where not, NaN where the run has not been scored."""
    completion = pd.to_numeric(runs["completion"], errors="coerce")
    return (completion == 1).astype(float).where(completion.notna())


def reliability(runs: pd.DataFrame, plan: pd.DataFrame, ks: Sequence[int] = KS) -> pd.DataFrame:
    """For each agent: would one of k runs complete (pass@k), would all of k (all-of-k)?

    Both are the unbiased estimates from the n runs of a cell of which c completed, 1 - C(n-c, k) / C(n, k) and
    C(c, k) / C(n, k), in a mean over cells weighed by planned repeats.

    Returns
    -------
    DataFrame
        ``agent, k, pass_at_k, all_of_k, n_cells, n_planned_cells``; NaN while a planned cell has fewer than k scored
        runs (``n_cells`` counts those that have as many).
    """
    there = counted(runs, plan)
    done = there.assign(done=completed(there)).groupby(CELL)["done"]
    cells = plan.set_index(CELL)[["n_planned"]]
    cells = cells.join(done.agg(["count", "sum"])).fillna({"count": 0, "sum": 0}).astype(int)
    rows = []
    for agent, group in cells.groupby(level="agent", sort=True):
        for k in ks:
            enough = group[group["count"] >= k]
            weight = enough["n_planned"].to_numpy(float)
            pairs = list(zip(enough["count"], enough["sum"], strict=True))
            any_of = [1 - comb(n - c, k) / comb(n, k) for n, c in pairs]
            all_of = [comb(c, k) / comb(n, k) for n, c in pairs]
            whole = len(enough) == len(group)
            means = [
                float(np.dot(part, weight) / weight.sum()) if whole else np.nan for part in (any_of, all_of)
            ]
            rows.append((agent, k, *means, len(enough), len(group)))
    return pd.DataFrame(rows, columns=["agent", "k", "pass_at_k", "all_of_k", "n_cells", "n_planned_cells"])


def cost_per_completed(runs: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """US dollars of all of an agent's runs, failed ones too, for one completed run.

    Returns
    -------
    DataFrame
        ``agent, cost_usd`` (sum), ``n_completed, n_scored, n_planned, n_unpriced`` and ``cost_per_completed``. Sum
        and quotient are NaN while a run has no price; the quotient is NaN without a completed run.
    """
    there = counted(runs, plan)
    there = there.assign(done=completed(there), price=pd.to_numeric(there["cost_usd"], errors="coerce"))
    rows = []
    for agent, planned in plan.groupby("agent", sort=True)["n_planned"].sum().items():
        group = there[there["agent"] == agent]
        cost = group["price"].sum(skipna=False) if len(group) else np.nan
        done = int(group["done"].sum())
        unpriced = int(group["price"].isna().sum())
        rows.append(
            (
                agent,
                cost,
                done,
                int(group["done"].notna().sum()),
                planned,
                unpriced,
                cost / done if done else np.nan,
            )
        )
    names = ["agent", "cost_usd", "n_completed", "n_scored", "n_planned", "n_unpriced", "cost_per_completed"]
    return pd.DataFrame(rows, columns=names)


def resources(runs: pd.DataFrame, plan: pd.DataFrame, by: str = "agent") -> pd.DataFrame:
    """What a run takes on average, over the planned runs that are there.

    Returns
    -------
    DataFrame
        ``by``, ``minutes`` (working time), ``turns``, ``tokens`` (in and out), ``cost_usd`` (NaN while a run has no
        price), ``n_present, n_planned``.
    """
    there = counted(runs, plan)
    values = pd.DataFrame(
        {
            by: there[by],
            "minutes": there["seconds_working"].astype(float) / 60,
            "turns": there["turns"].astype(float),
            "tokens": there["tokens_in"].astype(float) + there["tokens_out"].astype(float),
            "cost_usd": pd.to_numeric(there["cost_usd"], errors="coerce"),
        }
    )
    means = values.groupby(by, sort=True).mean()
    priced = values["cost_usd"].notna().groupby(values[by]).all()
    means["cost_usd"] = means["cost_usd"].where(priced)
    means["n_present"] = values.groupby(by).size()
    planned = plan.groupby(by, sort=True)["n_planned"].sum().rename("n_planned")
    table = planned.to_frame().join(means).fillna({"n_present": 0}).astype({"n_present": int})
    return table.reset_index()[[by, "minutes", "turns", "tokens", "cost_usd", "n_present", "n_planned"]]


def end_reasons(runs: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """How an agent's planned runs ended: one column a reason with its number of runs, then ``missing, n_planned``.

    Runs that ended through no fault of the agent (``provider_error``, ``infra_error``) stand in their own columns.
    """
    there = counted(runs, plan)
    planned = plan.groupby("agent", sort=True)["n_planned"].sum()
    table = pd.crosstab(there["agent"], there["end_reason"]).reindex(
        index=planned.index, columns=[reason.value for reason in EndReason], fill_value=0
    )
    table["missing"] = planned - table.sum(axis=1)
    table["n_planned"] = planned
    table.columns.name = None
    return table.reset_index()


def error_shares(runs: pd.DataFrame, plan: pd.DataFrame, by: str = "agent") -> pd.DataFrame:
    """Which codes fire, and who recovers.

    Returns
    -------
    DataFrame
        ``by``; ``E1`` .. ``E5``: of all fired codes (each once a run), the share of each; ``recovery_rate``: of the
        runs with two or more codes, the share that still delivered every case (NaN without any), and their number
        ``n_troubled``; ``engineering_to_knowledge``: firings of E2-E5 for one of E1 (NaN without any); ``n_present``
        scored runs of ``n_planned``.
    """
    groups = _coded_runs(runs, plan, by)
    rows = []
    for name, planned in plan.groupby(by, sort=True)["n_planned"].sum().items():
        group = groups.get(name, [])
        view = view_errors(group)
        troubled = sum(len(codes_of(run)) >= MANY for run in group)
        figures = (view.recovery_rate, troubled, view.engineering_to_knowledge, view.runs, planned)
        rows.append((name, *(view.shares[code] for code in TITLES), *figures))
    names = ["recovery_rate", "n_troubled", "engineering_to_knowledge", "n_present", "n_planned"]
    table = pd.DataFrame(rows, columns=[by, *TITLES, *names])
    return table.astype({"recovery_rate": float, "engineering_to_knowledge": float})


def overall_by_codes(runs: pd.DataFrame, plan: pd.DataFrame, by: str = "agent") -> pd.DataFrame:
    """Mean OVERALL of the runs with 0, 1, 2 ... different codes: columns ``by, codes, overall, n_present``."""
    rows: list[tuple[str, int, float, int]] = []
    for name, group in sorted(_coded_runs(runs, plan, by).items()):
        sizes = Counter(len(codes_of(run)) for run in group if run.overall is not None)
        means = view_errors(group).overall_by_count
        rows.extend((name, codes, mean, sizes[codes]) for codes, mean in means.items())
    return pd.DataFrame(rows, columns=[by, "codes", "overall", "n_present"])


@dataclass(frozen=True)
class _Coded:
    error_codes: Sequence[str]
    overall: float | None
    completion: float | None


def _coded_runs(runs: pd.DataFrame, plan: pd.DataFrame, by: str) -> dict[str, list[_Coded]]:
    """The scored planned runs of each group, as the error views take them."""
    there = counted(runs, plan)
    there = there[completed(there).notna()]
    groups: dict[str, list[_Coded]] = {}
    columns = (there[name] for name in (by, "error_codes", "overall", "completion"))
    for name, codes, overall, completion in zip(*columns, strict=True):
        scored = None if pd.isna(overall) else float(overall)
        groups.setdefault(name, []).append(_Coded(tuple(codes), scored, float(completion)))
    return groups
