"""S4, S5 and the totals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.report import CaseError, CaseResult, TaskReport
from evaluator.stages import agentic, overall, run_weighted_mean, s4, s5

UNIT = st.floats(0, 1)

PUBLISHED = {  # track columns Seg, Enh, VQA, Rep, Det and the OVERALL column
    "Opus 4.6": ((67.2, 78.3, 55.5, 55.8, 85.7), 66.5),
    "GLM-5": ((58.0, 68.8, 64.0, 48.6, 83.3), 61.6),
    "Gemini 3.1 Pro": ((54.7, 70.9, 62.3, 47.7, 77.2), 59.0),
    "GPT-5.4": ((59.4, 75.1, 36.5, 40.8, 73.8), 55.3),
    "MiniMax-M2.5": ((46.5, 74.5, 55.8, 28.9, 80.0), 51.6),
    "Qwen3.5": ((42.8, 63.5, 57.0, 38.7, 81.4), 51.2),
}
RUNS = (130, 20, 50, 50, 40)


def report(*scores: float | None, format_valid: bool = True) -> TaskReport:
    """One case per score; None stands for a case that has none."""
    error = CaseError(code="missing", message="no such file")
    cases = tuple(
        CaseResult(case_id=f"c{number}", status="missing", score=0, error=error)
        if score is None
        else CaseResult(case_id=f"c{number}", status="scored", score=score)
        for number, score in enumerate(scores)
    )
    n_scored = sum(score is not None for score in scores)
    return TaskReport(
        task="t",
        track="segmentation",
        release="phantom",
        metric="macro_dice",
        metric_set="default",
        task_score=0,
        task_score_ungated=0,
        n_cases=len(cases),
        n_scored=n_scored,
        completion=n_scored / len(cases),
        all_valid=n_scored == len(cases),
        format_valid=format_valid and n_scored > 0,
        cases=cases,
        manifest_sha256="0" * 64,
    )


@pytest.mark.parametrize(
    ("scores", "format_valid", "expected"),
    [
        ((0.9, 0.8), True, (1, 1)),
        ((0.9, 0.0), True, (1, 1)),
        ((0.0, 0.0), True, (1, 0.5)),
        ((0.9, None), True, (0.25, 1)),
        ((0.9, None, None, None), False, (0.125, 0.5)),
        ((0.0, None), False, (0.25, 0)),
        ((None, None), True, (0, 0)),
    ],
)
def test_s4_and_s5(scores, format_valid, expected):
    run = report(*scores, format_valid=format_valid)
    assert (s4(run), s5(run)) == expected


def test_completion_counts_half_until_everything_is_valid():
    nine_of_ten = report(*[0.5] * 9, None)
    assert s4(nine_of_ten) == pytest.approx(0.45)


@given(UNIT, UNIT, UNIT, UNIT, UNIT)
def test_agentic_is_the_published_weighted_sum(s1, s2, s3, s4, s5):
    expected = 0.25 * s1 + 0.15 * s2 + 0.35 * s3 + 0.15 * s4 + 0.10 * s5
    assert agentic(s1, s2, s3, s4, s5) == pytest.approx(expected)


def test_the_highest_is_one_exactly():
    assert overall(agentic(1, 1, 1, 1, 1), 1) == 1


@pytest.mark.parametrize("unscored", [0, 1, 2])
def test_an_unscored_stage_leaves_the_totals_unscored(unscored):
    judged = [1.0, 1.0, 1.0]
    judged[unscored] = None
    assert agentic(*judged, 1, 1) is None
    assert overall(agentic(*judged, 1, 1), 1) is None


def test_an_unscored_task_leaves_overall_unscored():
    assert overall(0.5, None) is None


def test_zero_is_a_score():
    assert overall(agentic(0, 0, 0, 0, 0), 0) == 0


@pytest.mark.parametrize("agent", PUBLISHED)
def test_published_track_columns_give_the_published_overall(agent):
    columns, published = PUBLISHED[agent]
    assert run_weighted_mean(zip(columns, RUNS, strict=True)) == pytest.approx(published, abs=0.1)


def test_a_mean_over_tracks_would_not_give_it():
    columns, published = PUBLISHED["GLM-5"]
    assert sum(columns) / len(columns) != pytest.approx(published, abs=0.1)


def test_the_mean_of_no_runs_is_unscored():
    assert run_weighted_mean([]) is None
    assert run_weighted_mean([(0.9, 0)]) is None
