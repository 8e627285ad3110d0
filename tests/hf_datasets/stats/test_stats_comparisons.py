"""Pairs of agents: SciPy's p, statsmodels' Holm, ties where chance explains the difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from hf_datasets.stats import case_units, cell_means, cell_units, compare, holm, ranks


def units_of(**agents):
    return pd.DataFrame({"stratum": "s", "weight": 1.0, **agents})


@pytest.mark.parametrize("size", [8, 60])
def test_p_is_that_of_scipys_permutation_test(rng, size):
    first, second = rng.random(size), rng.random(size) * 0.9
    ours = compare(units_of(one=first, two=second)).iloc[0]
    theirs = scipy.stats.permutation_test(
        (first, second), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=9_999, rng=np.random.default_rng(3),
    )  # fmt: skip
    assert ours["difference"] == pytest.approx(theirs.statistic)
    assert ours["p"] == pytest.approx(theirs.pvalue, abs=1e-12 if size <= 13 else 0.02)


@given(st.lists(st.floats(0, 1), max_size=20))
@settings(deadline=None, max_examples=12)
def test_holm_is_statsmodels_holm(p):
    expected = multipletests(p, method="holm")[1] if p else []
    assert holm(p) == pytest.approx(np.asarray(expected))


def test_a_pair_without_a_common_unit_is_no_test():
    table = compare(units_of(one=[0.1, 0.2, np.nan], two=[np.nan, np.nan, 0.3], three=[0.0, 0.1, 0.2]))
    pair = table.set_index(["first", "second"]).loc[("one", "two")]
    assert pair["n_units"] == 0
    assert pair["n_possible"] == 3
    assert pair[["difference", "p", "p_holm"]].isna().all()
    assert table["p_holm"].notna().sum() == 2


def test_equal_agents_are_tied_and_a_better_one_is_told_apart(rng):
    base = rng.random(200)
    noise = rng.normal(0, 0.02, (2, 200))
    noise -= noise.mean(axis=1, keepdims=True)
    units = units_of(best=base + 0.2 + noise[0], one=base, two=base + noise[1])
    table = ranks(units[["best", "one", "two"]].mean(), compare(units)).set_index("agent")
    assert table["rank"].to_dict() == {"best": 1, "one": 2, "two": 2}
    assert table.loc["one", "tied_with"] == ("two",)
    assert table.loc["best", "tied_with"] == ()


def test_an_agent_without_a_mean_has_no_rank():
    means = pd.Series({"one": 0.5, "open": np.nan})
    table = ranks(means, compare(units_of(one=[0.5, 0.5], open=[np.nan, np.nan]))).set_index("agent")
    assert table.loc["one", "rank"] == 1
    assert table.loc["one", "tied_with"] == ()
    assert table["rank"].isna()["open"]


def test_false_finds_are_rarer_than_five_in_a_hundred(rng):
    found = 0
    for _ in range(200):
        scores = rng.random((4, 30))
        units = units_of(**{f"a{number}": row for number, row in enumerate(scores)})
        found += (compare(units, draws=2, flips=399)["p_holm"] < 0.05).any()
    assert found <= 20  # 5 % expected; 20 of 200 has a chance of 1 in 500


def test_cases_are_paired_over_repeats_and_weigh_as_their_task(plan_of, runs_of):
    plan = plan_of({(agent, task, "lite"): n for agent in ("one", "two") for task, n in (("a", 2), ("b", 6))})
    runs = runs_of(plan)
    better = {"one": 0.1, "two": 0.0}
    rows = [
        (run.run_id, f"case-{case}", 0.5 + better[run.agent] * (run.task == "a") + 0.01 * run.repeat)
        for run in runs.itertuples()
        for case in range(5 if run.task == "a" else 20)
    ]
    units = case_units(runs, pd.DataFrame(rows, columns=["run_id", "case_id", "score"]), plan)
    assert len(units) == 25
    assert units.groupby("stratum")["weight"].sum().to_dict() == pytest.approx({"a": 2.0, "b": 6.0})
    pair = compare(units).iloc[0]
    assert pair["difference"] == pytest.approx(0.1 * 2 / 8)
    assert (pair["low"], pair["high"]) == (pytest.approx(0.025), pytest.approx(0.025))


def test_cells_are_units_with_their_planned_weight(plan_of, runs_of, rng):
    plan = plan_of({(agent, task, "lite"): n for agent in ("one", "two") for task, n in (("a", 2), ("b", 6))})
    means = cell_means(runs_of(plan, overall=rng.random(16)), "overall", plan)
    by_agent = means.over("agent").set_index("agent")["mean"]
    pair = compare(cell_units(means)).iloc[0]
    assert pair["difference"] == pytest.approx(by_agent["one"] - by_agent["two"])
    assert pair["p"] == 0.5 or pair["p"] == 1.0  # two units: no test can tell more
