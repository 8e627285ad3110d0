"""The leaderboard's rows: comparable runs only, unscored is not zero, bad records are named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hf_datasets.records import RunLimits, RunRecord, dump_record
from space.board import board_of, leaderboard, read_results

ZERO = "0" * 64


def record(**changes) -> RunRecord:
    values = dict(
        run_id="a-task.lite.one.r00-1", task="a-task", track="vqa", tier="lite", release="phantom", agent="one",
        model=None, repeat=0, attempt=1, overall=0.5, agentic=0.6, task_score=0.4, task_score_ungated=0.4, skill=0.1,
        s1=0.5, s2=0.5, s3=0.5, s4=1.0, s5=1.0, items=(), metric="exact_match_normalised", metric_set="default",
        metrics={}, n_cases=2, n_scored=2, completion=1.0, end_reason="submitted", end_detail="", error_codes=(),
        turns=3, tokens_in=0, tokens_out=0, tokens_cached=0, cost_usd=None, price_source=None, seconds_working=1.0,
        seconds_wall=1.0, started_at=datetime(2026, 1, 1, tzinfo=UTC), finished_at=datetime(2026, 1, 1, tzinfo=UTC),
        harness_version="0", code_sha256=ZERO, task_sha256=ZERO, manifest_sha256=ZERO, brief_sha256=ZERO,
        sandbox="docker", network="none", agent_environment="x", evaluator_environment="y", judge="rules",
        judge_model=None, rubric_sha256=ZERO, cpu_count=2, memory_mb=1, gpus=(), hardware_class="cpu",
        limits=RunLimits(
            wall_seconds=1, call_seconds=1, turns=1, tokens=1, cost_usd=None, memory_mb=1, disk_mb=1, pids=1, cpus=1.0
        ),
        cell_sha256=ZERO, trace_sha256=ZERO, submission_sha256=ZERO, report_sha256=ZERO, judgement_sha256=ZERO,
    )  # fmt: skip
    return RunRecord.model_validate(values | changes)


def test_means_are_over_runs_and_best_stands_first():
    runs = (record(), record(overall=0.7), record(agent="two", overall=0.9))
    rows = leaderboard(runs)
    assert [(row["agent"], row["runs"], row["OVERALL"]) for row in rows] == [
        ("two", 1, 90.0),
        ("one", 2, 60.0),
    ]


def test_unscored_is_missing_never_zero_and_stands_last():
    rows = leaderboard((record(agent="unjudged", overall=None, s1=None), record(overall=0.0)))
    assert [(row["agent"], row["OVERALL"]) for row in rows] == [("one", 0.0), ("unjudged", None)]
    assert rows[1]["TASK"] == 40.0


@pytest.mark.parametrize(
    "change",
    [
        {"judge": "llm"},
        {"judge_model": "m"},
        {"metric_set": "without_lpips"},
        {"release": "full"},
        {"network": "open"},
        {"hardware_class": "h100"},
    ],
)
def test_runs_that_must_not_mix_stand_on_different_boards(change):
    assert board_of(record(**change)) != board_of(record())


def test_bad_records_are_named_and_hide_nothing(tmp_path):
    for name, text in {"a": dump_record(record()), "b": '{"schema_version": 2}', "c": "{"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(text)
    found = read_results(tmp_path)
    assert len(found.records) == 1
    assert len(found.problems) == 2
    assert any(str(tmp_path / "b") in line for line in found.problems)


def test_a_record_with_nan_is_refused(tmp_path):
    (tmp_path / "record.json").write_text(dump_record(record()).replace('"overall": 0.5', '"overall": NaN'))
    assert len(read_results(tmp_path).problems) == 1


def test_a_copied_run_counts_once_and_is_named(tmp_path):
    for name in ("r00", "r00 copy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(dump_record(record()))
    found = read_results(tmp_path)
    assert len(found.records) == 1
    assert len(found.problems) == 1
    assert "r00 copy" in found.problems[0]
