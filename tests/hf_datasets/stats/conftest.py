"""Tables of runs made from a plan and a rule for each column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def runs_of():
    """``runs_of(plan, overall=...)``: every planned run, each column a value or a function of the table."""

    def make(plan: pd.DataFrame, **columns) -> pd.DataFrame:
        runs = plan.loc[plan.index.repeat(plan["n_planned"])].drop(columns="n_planned").reset_index(drop=True)
        runs["repeat"] = runs.groupby(["agent", "task", "tier"]).cumcount()
        runs["attempt"] = 1
        runs["run_id"] = [f"run-{number}" for number in range(len(runs))]
        defaults = {
            "overall": 0.5,
            "agentic": 0.5,
            "task_score": 0.5,
            "task_score_ungated": 0.5,
            "completion": 1.0,
        }
        for name, value in (defaults | columns).items():
            runs[name] = value(runs) if callable(value) else value
        return runs

    return make


@pytest.fixture
def plan_of():
    """``plan_of({(agent, task, tier): n})``, all in one track."""

    def make(cells: dict[tuple[str, str, str], int], track="vqa") -> pd.DataFrame:
        rows = [(*cell, track, planned) for cell, planned in cells.items()]
        return pd.DataFrame(rows, columns=["agent", "task", "tier", "track", "n_planned"])

    return make


@pytest.fixture
def rng():
    return np.random.default_rng(7)
