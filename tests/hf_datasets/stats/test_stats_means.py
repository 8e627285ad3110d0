"""Means are the published ones; what is missing is neither a zero nor gone; intervals are those of a bootstrap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_datasets.stats import (
    cell_means,
    counted,
    observed_plan,
    published_plan,
    tier_change,
    unplanned,
)  # fmt: skip

PUBLISHED = {  # segmentation, enhancement, vqa, report, detection: OVERALL
    "opus": ((67.2, 78.3, 55.5, 55.8, 85.7), 66.5),
    "glm": ((58.0, 68.8, 64.0, 48.6, 83.3), 61.6),
    "gemini": ((54.7, 70.9, 62.3, 47.7, 77.2), 59.0),
    "gpt": ((59.4, 75.1, 36.5, 40.8, 73.8), 55.3),
    "minimax": ((46.5, 74.5, 55.8, 28.9, 80.0), 51.6),
    "qwen": ((42.8, 63.5, 57.0, 38.7, 81.4), 51.2),
}
TRACKS = ("segmentation", "enhancement", "vqa", "report", "detection")


def test_the_published_plan_has_3480_runs_with_the_track_weights_130_20_50_50_40():
    plan = published_plan(PUBLISHED)
    assert len(plan) == 288
    assert plan["n_planned"].sum() == 3480
    one_tier = plan[(plan["agent"] == "opus") & (plan["tier"] == "lite")].groupby("track")["n_planned"].sum()
    assert [one_tier[track] for track in TRACKS] == [130, 20, 50, 50, 40]


def test_the_published_columns_give_the_published_overall(runs_of):
    plan = published_plan(PUBLISHED)
    score = {
        (agent, track): value / 100
        for agent, (row, _) in PUBLISHED.items()
        for track, value in zip(TRACKS, row, strict=True)
    }
    runs = runs_of(
        plan,
        overall=lambda runs: [
            score[key] for key in runs[["agent", "track"]].itertuples(index=False, name=None)
        ],
    )
    means = cell_means(runs, "overall", plan)
    overall = means.over("agent").set_index("agent")["mean"] * 100
    for agent, (_, published) in PUBLISHED.items():
        assert overall[agent] == pytest.approx(published, abs=0.1)
    by_track = means.over("agent", "track")
    assert all(row.mean == pytest.approx(score[row.agent, row.track]) for row in by_track.itertuples())


def test_a_missing_run_is_neither_zero_nor_gone(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 4, ("one", "b", "lite"): 4})
    runs = runs_of(plan, overall=[0.2, 0.4, None, None, 1.0, 1.0, 1.0, 1.0]).drop(index=3)
    row = cell_means(runs, "overall", plan).over("agent").iloc[0]
    assert row["mean"] == pytest.approx((4 * 0.3 + 4 * 1.0) / 8)  # a cell keeps its planned weight
    assert (row["n_present"], row["n_planned"]) == (6, 8)
    assert row["n_unjudged"] == 1  # the other one is not there at all
    assert row["mean_present"] == pytest.approx((0.2 + 0.4 + 4) / 6)
    assert row["lowest"] == pytest.approx(4.6 / 8)
    assert row["highest"] == pytest.approx(6.6 / 8)


def test_a_planned_cell_without_any_run_leaves_its_means_open(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 2, ("one", "b", "lite"): 2})
    runs = runs_of(plan).query("task == 'a'")
    table = cell_means(runs, "overall", plan).over("agent", "task").set_index("task")
    assert table.loc["a", "mean"] == 0.5
    assert np.isnan(table.loc["b", "mean"])
    row = cell_means(runs, "overall", plan).over().iloc[0]
    assert np.isnan(row["mean"])
    assert np.isnan(row["low"])
    assert (row["n_empty"], row["n_present"], row["n_planned"], row["mean_present"]) == (1, 2, 4, 0.5)


def test_unjudged_runs_count_for_task_alone(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 3})
    runs = runs_of(plan, overall=[0.5, None, 0.7], agentic=[0.5, None, 0.7], task_score=[0.1, 0.2, 0.3])
    overall, task = (cell_means(runs, column, plan).over().iloc[0] for column in ("overall", "task_score"))
    assert (overall["n_present"], overall["n_unjudged"]) == (2, 1)
    assert (task["n_present"], task["n_unjudged"], task["mean"]) == (3, 0, pytest.approx(0.2))


def test_without_any_run_everything_is_open_and_nothing_fails(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 3})
    row = cell_means(runs_of(plan).iloc[:0], "overall", plan).over("agent").iloc[0]
    assert np.isnan([row["mean"], row["low"], row["mean_present"]]).all()
    assert (row["lowest"], row["highest"], row["n_planned"]) == (0.0, 1.0, 3)


def test_one_run_in_a_cell_has_a_mean_but_no_interval(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 1})
    row = cell_means(runs_of(plan), "overall", plan).over().iloc[0]
    assert row["mean"] == 0.5
    assert np.isnan([row["low"], row["high"]]).all()


def test_of_several_attempts_the_latest_counts_and_unplanned_runs_do_not(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 2})
    more = plan_of({("one", "a", "lite"): 3, ("two", "a", "lite"): 1})
    runs = runs_of(more, overall=[0.1, 0.2, 0.9, 0.9])
    again = runs.iloc[[0]].assign(attempt=2, overall=0.3)
    runs = pd.concat([again, runs])
    assert sorted(counted(runs, plan)["overall"]) == [0.2, 0.3]
    assert unplanned(runs, plan)[["agent", "repeat"]].to_numpy().tolist() == [["one", 2], ["two", 0]]


def test_a_table_without_a_plan_shows_what_others_ran_as_missing(plan_of, runs_of):
    runs = runs_of(plan_of({("one", "a", "lite"): 3, ("two", "a", "lite"): 1, ("two", "b", "lite"): 2}))
    plan = observed_plan(runs).set_index(["agent", "task"])["n_planned"]
    assert plan.to_dict() == {("one", "a"): 3, ("one", "b"): 2, ("two", "a"): 3, ("two", "b"): 2}


def test_the_interval_of_one_cell_is_scipys(plan_of, runs_of, rng):
    values = rng.beta(2, 3, 40)
    runs = runs_of(plan_of({("one", "a", "lite"): 40}), overall=values)
    ours = cell_means(runs, "overall", draws=20_000).over().iloc[0]
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours["low"] == pytest.approx(theirs.low, abs=0.03 * width)
    assert ours["high"] == pytest.approx(theirs.high, abs=0.03 * width)


def test_the_second_level_is_that_of_drawing_cases_in_a_loop(plan_of, runs_of, rng):
    runs, cases = 6, 25
    scores = rng.random((runs, cases)) < rng.uniform(0.3, 0.9, (runs, 1))
    frame = runs_of(plan_of({("one", "a", "lite"): runs}), task_score=scores.mean(axis=1))
    table = pd.DataFrame(
        [
            (run, case, float(scores[index, case]))
            for index, run in enumerate(frame["run_id"])
            for case in range(cases)
        ],
        columns=["run_id", "case_id", "score"],
    )
    looped = [
        np.mean([rng.choice(scores[run], cases).mean() for run in rng.integers(0, runs, runs)])
        for _ in range(6000)
    ]
    row = cell_means(frame, "task_score", cases=table, draws=20_000).over().iloc[0]
    low, high = np.percentile(looped, [2.5, 97.5])
    assert row["low"] == pytest.approx(low, abs=0.05 * (high - low))
    assert row["high"] == pytest.approx(high, abs=0.05 * (high - low))
    without = cell_means(frame, "task_score", draws=20_000).over().iloc[0]
    assert without["high"] - without["low"] < row["high"] - row["low"]


def test_cases_are_not_drawn_where_task_is_no_mean_of_them(plan_of, runs_of):
    frame = runs_of(plan_of({("one", "a", "lite"): 3}), task_score=0.0, task_score_ungated=0.5)
    cases = pd.DataFrame(
        {"run_id": np.repeat(frame["run_id"], 2), "case_id": list("ab") * 3, "score": [0.0, 1.0] * 3}
    )
    gated = cell_means(frame, "task_score", cases=cases).over().iloc[0]
    assert (gated["low"], gated["high"]) == (0.0, 0.0)
    ungated = cell_means(frame, "task_score_ungated", cases=cases).over().iloc[0]
    assert ungated["low"] < 0.5 < ungated["high"]


def test_the_same_table_gives_the_same_interval_in_any_order(plan_of, runs_of, rng):
    runs = runs_of(plan_of({("one", "a", "lite"): 9, ("one", "b", "lite"): 9}), overall=rng.random(18))
    first = cell_means(runs, "overall").over("agent")
    assert first.equals(cell_means(runs, "overall").over("agent"))
    shuffled = cell_means(runs.sample(frac=1, random_state=1), "overall").over("agent")
    assert shuffled.equals(first)


def test_the_change_from_standard_to_lite_is_the_published_one(plan_of, runs_of):
    plan = plan_of(
        {(agent, "a", tier): 2 for agent in ("glm", "gpt") for tier in ("lite", "standard")}
        | {("glm", "only-lite", "lite"): 2}
    )
    score = {
        ("glm", "standard"): 0.719,
        ("glm", "lite"): 0.779,
        ("gpt", "standard"): 0.789,
        ("gpt", "lite"): 0.66,
    }
    runs = runs_of(
        plan,
        agentic=lambda runs: [
            score[key] for key in runs[["agent", "tier"]].itertuples(index=False, name=None)
        ],
    )
    runs.loc[runs["task"] == "only-lite", "agentic"] = 0.0
    table = tier_change(cell_means(runs, "agentic", plan)).set_index("agent")
    assert round(100 * table.loc["glm", "relative"], 1) == 8.3
    assert round(100 * table.loc["gpt", "relative"], 1) == -16.3
    assert table.loc["glm", "low"] <= table.loc["glm", "difference"] <= table.loc["glm", "high"]


values = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=12)


@given(st.dictionaries(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), values, min_size=1))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_mean_lies_in_its_bounds_and_counts_every_planned_run(plan_of, runs_of, cells):
    plan = plan_of({(agent, task, "lite"): len(column) for (agent, task), column in cells.items()})
    runs = runs_of(plan, overall=[value for column in cells.values() for value in column])
    table = cell_means(runs, "overall", plan, draws=50).over("agent")
    assert table["n_planned"].sum() == sum(map(len, cells.values()))
    assert table["n_present"].sum() == sum(value is not None for column in cells.values() for value in column)
    for row in table.itertuples():
        if not np.isnan(row.mean):
            assert row.lowest - 1e-9 <= row.mean <= row.highest + 1e-9
        if not np.isnan(row.low):
            assert 0 <= row.low <= row.high <= 1 + 1e-12
