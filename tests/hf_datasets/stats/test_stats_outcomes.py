"""Reliability, cost, ends and errors over all planned runs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_datasets.stats import (
    completed,
    cost_per_completed,
    end_reasons,
    error_shares,
    overall_by_codes,
    reliability,
    resources,
)  # fmt: skip


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 8))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pass_at_k_and_all_of_k_are_means_over_all_choices_of_k_runs(plan_of, runs_of, done, k):
    plan = plan_of({("one", "a", "lite"): len(done)})
    row = reliability(runs_of(plan, completion=np.asarray(done, float)), plan, (k,)).iloc[0]
    if k > len(done):
        assert np.isnan([row["pass_at_k"], row["all_of_k"]]).all()
        assert (row["n_cells"], row["n_planned_cells"]) == (0, 1)
        return
    choices = list(combinations(done, k))
    assert row["pass_at_k"] == pytest.approx(np.mean([any(choice) for choice in choices]))
    assert row["all_of_k"] == pytest.approx(np.mean([all(choice) for choice in choices]))


def test_reliability_stays_open_while_a_planned_cell_has_too_few_runs(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 3, ("one", "b", "lite"): 3})
    runs = runs_of(plan, completion=[1, 1, 0, 1, None, None])
    table = reliability(runs, plan, (1, 3)).set_index("k")
    assert table.loc[1, "pass_at_k"] == pytest.approx((2 / 3 + 1) / 2)
    assert np.isnan(table.loc[3, "pass_at_k"])
    assert table.loc[3, "n_cells"] == 1


def test_a_run_that_delivered_a_part_is_not_completed_and_an_unscored_one_is_neither(plan_of, runs_of):
    runs = runs_of(plan_of({("one", "a", "lite"): 3}), completion=[1.0, 0.9, None])
    assert completed(runs).tolist()[:2] == [1.0, 0.0]
    assert np.isnan(completed(runs)[2])


def test_failed_runs_are_paid_for_too(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 4, ("two", "a", "lite"): 2, ("gone", "a", "lite"): 2})
    runs = runs_of(
        plan, cost_usd=[1.0, 2.0, 3.0, 4.0, 1.0, None, 1, 1], completion=[1, 0, 1, None, 1, 1, 1, 1]
    )
    table = cost_per_completed(runs[runs["agent"] != "gone"], plan).set_index("agent")
    assert table.loc["one", "cost_per_completed"] == 10 / 2
    assert table.loc["one", ["n_completed", "n_scored", "n_planned"]].tolist() == [2, 3, 4]
    assert np.isnan(table.loc["two", "cost_per_completed"])
    assert table.loc["two", "n_unpriced"] == 1
    assert np.isnan(table.loc["gone", "cost_usd"])
    assert table.loc["gone", "n_planned"] == 2


def test_resources_are_means_over_runs_and_say_what_is_missing(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 3, ("two", "a", "lite"): 1})
    runs = runs_of(
        plan, seconds_working=[60, 120, 0, 0], turns=[1, 2, 9, 9], tokens_in=10, tokens_out=5, cost_usd=1.5
    )
    table = resources(runs.drop(index=[2, 3]), plan).set_index("agent")
    assert table.loc["one"].to_dict() == {
        "minutes": 1.5, "turns": 1.5, "tokens": 15.0, "cost_usd": 1.5, "n_present": 2, "n_planned": 3
    }  # fmt: skip
    assert table.loc["two", "n_present"] == 0
    assert np.isnan(table.loc["two", "minutes"])


def test_every_planned_run_stands_in_one_column_of_ends(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 4})
    runs = runs_of(plan, end_reason=["submitted", "submitted", "infra_error", "time"]).drop(index=3)
    row = end_reasons(runs, plan).set_index("agent").loc["one"]
    assert row[["submitted", "infra_error", "time", "missing", "n_planned"]].tolist() == [2, 1, 0, 1, 4]
    assert row.drop("n_planned").sum() == 4


def test_codes_recovery_and_scores_by_number_of_codes(plan_of, runs_of):
    plan = plan_of({("one", "a", "lite"): 5, ("two", "a", "lite"): 1})
    runs = runs_of(
        plan,
        error_codes=[[], ["E3.skipped"], ["E3.empty", "E5.missing"], ["E3.x", "E1.y"], ["E1.z"], []],
        completion=[1, 1, 0, 1, None, None],
        overall=[0.8, 0.4, 0.2, 0.4, None, None],
    )  # fmt: skip
    row = error_shares(runs, plan).set_index("agent").loc["one"]
    assert row[["E1", "E2", "E3", "E4", "E5"]].tolist() == [0.2, 0.0, 0.6, 0.0, 0.2]
    assert (row["recovery_rate"], row["n_troubled"], row["engineering_to_knowledge"]) == (0.5, 2, 4.0)
    assert (row["n_present"], row["n_planned"]) == (4, 5)  # an unscored run has not been looked at
    assert np.isnan(error_shares(runs, plan).set_index("agent").loc["two", "recovery_rate"])
    by_codes = overall_by_codes(runs, plan)
    assert by_codes[["codes", "n_present"]].to_numpy().tolist() == [[0, 1], [1, 1], [2, 2]]
    assert by_codes["overall"].tolist() == pytest.approx([0.8, 0.4, 0.3])
