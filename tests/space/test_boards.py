"""Boards: comparable runs only, unscored is not zero, the published ranking through the same code path."""

from __future__ import annotations

import pandas as pd
import pytest

from space.board import Filter, boards_of
from space.boards import with_boards
from space.frames import frame_of, row_of, shaped
from space.published import published_table
from tasks.names import Tier
from tasks.registry import all_tasks, load_task


def boards(*records):
    runs, _ = shaped(frame_of([row_of(one, "0" * 64) for one in records]))
    return boards_of(with_boards(runs))


def only_board(*records):
    (board,) = boards(*records).values()
    return board


def test_means_are_over_runs_and_best_stands_first(record):
    table = only_board(record(), record(repeat=1, overall=0.7), record(agent="two", overall=0.9)).table()
    assert list(table["agent"]) == ["two", "one"]
    assert list(table["overall"]) == pytest.approx([0.9, 0.6])
    assert list(table["n_present"]) == [1, 2]
    assert set(table["n_planned"]) == {load_task("vqa-rad-task").repeats}


def test_unscored_is_missing_never_zero_and_stands_last(record):
    table = only_board(record(agent="unjudged", overall=None, s1=None), record(overall=0.0)).table()
    assert list(table["agent"]) == ["one", "unjudged"]
    assert table["overall"].iloc[0] == 0.0
    assert pd.isna(table["overall"].iloc[1])
    assert pd.isna(table["rank"].iloc[1])
    assert table["n_unjudged"].iloc[1] == 1
    assert table["task_score"].iloc[1] == 0.4


def test_an_agent_without_a_cell_that_others_ran_has_no_overall(record):
    table = (
        only_board(record(), record(tier="standard"), record(agent="two", overall=0.9))
        .table()
        .set_index("agent")
    )
    assert pd.isna(table.loc["two", "overall"])
    assert table.loc["two", "n_empty"] == 1
    assert table.loc["two", "mean_present"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    "change",
    [
        {"judge": "llm"},
        {"judge_model": "m"},
        {"judge": None},
        {"metric_set": "without_lpips"},
        {"release": "full"},
        {"network": "open"},
        {"hardware_class": "h100"},
        {"manifest_sha256": "1" * 64},
        {"task_sha256": "1" * 64},
    ],
)
def test_runs_that_must_not_mix_stand_on_different_boards(record, change):
    found = boards(record(), record(repeat=1), record(repeat=2, **change))
    assert sorted(len(board.runs) for board in found.values()) == [1, 2]


def test_runs_with_other_limits_stand_apart_even_where_they_are_more(record):
    limits = record().limits.model_copy(update={"turns": 7})
    found = boards(record(), *(record(repeat=n, limits=limits) for n in (1, 2, 3)))
    assert {len(board.runs): "turns 7" in key for key, board in found.items()} == {3: True, 1: False}


def test_metric_sets_of_different_tasks_do_not_split_a_board(record):
    only_board(record(), record(task="iu-xray-report-task", metric_set="obs_rouge"))


def test_agents_that_chance_explains_share_a_rank_and_others_do_not(record):
    tasks = [task.id for task in all_tasks()][:20]
    pairs = [(task, tier) for task in tasks for tier in ("lite", "standard")]

    def runs(agent, score):
        return [
            record(task=task, tier=tier, agent=agent, overall=score(n))
            for n, (task, tier) in enumerate(pairs)
        ]

    table = (
        only_board(
            *runs("best", lambda n: 0.9),
            *runs("up", lambda n: 0.5 + 0.1 * (n % 2)),
            *runs("down", lambda n: 0.6 - 0.1 * (n % 2)),
        )
        .table()
        .set_index("agent")
    )
    assert list(table.loc[["best", "up", "down"], "rank"]) == [1, 2, 2]
    assert table.loc["up", "tied_with"] == ("down",)


def test_filters_take_cells_and_runs(record):
    board = only_board(
        record(), record(tier="standard", overall=0.9), record(task="kidney-seg-task", overall=0.1),
        record(repeat=1, overall=0.7, finished_at="2026-03-05T10:00:00Z"),
    )  # fmt: skip

    def overall(**wanted):
        return board.table(Filter(**wanted))["overall"].iloc[0]

    assert overall(tiers=("standard",)) == pytest.approx(0.9)
    assert overall(tracks=("segmentation",)) == pytest.approx(0.1)
    assert overall(tasks=("vqa-rad-task",), tiers=("lite",)) == pytest.approx(0.6)
    assert board.table(Filter(since="2026-03-05", until="2026-03-05"))["n_present"].iloc[0] == 1
    assert board.table(Filter(until="2026-03-04"))["n_present"].iloc[0] == 3
    assert pd.isna(board.table(Filter(since="2026-03-05", tasks=("vqa-rad-task",)))["s1_low"].iloc[0])


def test_the_published_columns_as_records_give_the_published_ranking(record):
    """3,480 runs, 10 or 20 a cell: the run-weighted mean of the track columns is the printed OVERALL to 0.1."""
    printed = published_table().set_index("agent")
    records = [
        record(agent=agent, task=task.id, tier=tier.value, repeat=repeat, overall=row[f"track_{task.track.value}"])
        for agent, row in printed.iterrows()
        for task in all_tasks() if task.in_paper
        for tier in (Tier.LITE, Tier.STANDARD)
        for repeat in range(task.repeats)
    ]  # fmt: skip
    assert len(records) == 3480
    table = only_board(*records).table().set_index("agent")
    assert list(table.index) == list(printed.index)
    assert list(100 * table["overall"]) == pytest.approx(list(100 * printed["overall"]), abs=0.1)
    for track in ("segmentation", "enhancement", "vqa", "report", "detection"):
        assert list(table[f"track_{track}"]) == pytest.approx(list(printed[f"track_{track}"]))
    assert set(table["n_present"]) == {580}
