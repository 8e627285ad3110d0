"""Statistics over a board of 10,000 runs for each of six agents, and the report of the published experiment."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats

from benchmarks.figures import seconds, table
from benchmarks.made_runs import write_results
from hf_datasets import stats
from runner.sweep.report.write import write_report

AGENTS = [f"agent-{number}" for number in range(6)]
RUNS_EACH = 10_000
PEER_CELLS = 20
"""SciPy's bootstrap is timed on so many cells and counted up."""


def board() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Random scores on the published cells, with more repeats than published."""
    rng = np.random.default_rng(0)
    plan = stats.published_plan(AGENTS)
    plan["n_planned"] = plan["n_planned"] * RUNS_EACH // (plan["n_planned"].sum() // len(AGENTS))
    runs = plan.loc[plan.index.repeat(plan["n_planned"])].drop(columns="n_planned").reset_index(drop=True)
    runs["repeat"] = runs.groupby(["agent", "task", "tier"]).cumcount()
    codes = [[], ["E3.validation_skipped"], ["E3.empty_output", "E5.missing_files"]]
    runs["error_codes"] = [codes[index] for index in rng.integers(0, 3, len(runs))]
    columns = {name: rng.random(len(runs)) for name in ("overall", "agentic", "task_score")}
    return runs.assign(attempt=1, completion=1.0, **columns), plan


def peer_seconds(runs: pd.DataFrame, cells: int) -> float:
    """SciPy's percentile bootstrap of every cell's mean, 1,000 draws."""
    groups = [group["overall"].to_numpy() for _, group in runs.groupby(["agent", "task", "tier"])][
        :PEER_CELLS
    ]
    started = time.perf_counter()
    for values in groups:
        scipy.stats.bootstrap((values,), np.mean, n_resamples=stats.DRAWS, method="percentile", rng=1)
    return (time.perf_counter() - started) * cells / len(groups)


def main() -> None:
    runs, plan = board()
    means = stats.cell_means(runs, "overall", plan)
    size = f"{len(runs):,} runs"
    rows = [
        ("cell means with 1,000 bootstrap draws, " + size, seconds(lambda: stats.cell_means(runs, "overall", plan)),
         f"scipy.stats.bootstrap {peer_seconds(runs, len(plan)):.2f} s"),
        ("means by agent and track from them", seconds(lambda: means.over("agent", "track")), ""),
        ("all pairs of agents over the cells", seconds(lambda: stats.compare(stats.cell_units(means))), ""),
        ("error codes", seconds(lambda: stats.error_shares(runs, plan)), ""),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        folders = write_results(Path(place), repeats=12)
        words = f"report of {len(folders):,} run folders"
        rows.append((words, seconds(lambda: write_report(Path(place)), repeats=1), ""))
    table((words, f"{measured:.2f} s", peer) for words, measured, peer in rows)


if __name__ == "__main__":
    main()
