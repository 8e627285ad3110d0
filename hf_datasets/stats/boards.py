"""Which runs may stand on one board: those whose numbers mean the same.

A board is a release, a judge with its model, a network and a class of hardware. Within it, a task has one set of
limits, one metric set and one version of its data: the task's own limits, and else what most of its runs have. Runs
that differ in that stand on a board of their own, which says in what they differ.
"""

from __future__ import annotations

from functools import cache

import pandas as pd

from tasks.registry import TaskError, load_task

BASE = ("release", "judge", "judge_model", "network", "hardware_class")
VARIANT = ("limits", "metric_set", "task_sha256", "manifest_sha256")
_NAMES = {"metric_set": "metric set", "task_sha256": "task version", "manifest_sha256": "data version"}


def with_boards(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the column ``board``: runs of different boards are never averaged together."""
    if runs.empty:
        return runs.assign(board=pd.Series(dtype=object))
    base = _base_key(runs)
    board = base.copy()
    for column in VARIANT:
        values = runs[column].map(_text)
        home = _home(base, runs["task"], values, column)
        other = values != home
        board[other] += " | " + _NAMES.get(column, column) + " " + values[other].map(_short)
    return runs.assign(board=board)


def _base_key(runs: pd.DataFrame) -> pd.Series:
    judge = (
        runs["judge"].fillna("unjudged").astype(str) + " " + runs["judge_model"].fillna("").astype(str)
    ).str.strip()
    network = "network " + runs["network"].astype(str)
    return (
        runs["release"].astype(str)
        + " | "
        + judge
        + " | "
        + network
        + " | "
        + runs["hardware_class"].astype(str)
    )


def _home(base: pd.Series, task: pd.Series, values: pd.Series, column: str) -> pd.Series:
    """What a task's runs have on their base board: the task's own limits, else the commonest value."""
    counts = (
        pd.DataFrame({"base": base, "task": task, "value": values}).value_counts().rename("n").reset_index()
    )
    if column == "limits":
        counts["own"] = counts["value"] == counts["task"].map(_own_limits)
        counts = counts.sort_values(["own", "n"], ascending=False, kind="stable")
    home = counts.drop_duplicates(["base", "task"]).set_index(["base", "task"])["value"]
    keys = pd.MultiIndex.from_arrays([base, task])
    return pd.Series(home.reindex(keys).to_numpy(), index=values.index)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return limits_text(value)
    return "none" if pd.isna(value) else str(value)


def limits_text(limits: dict[str, object]) -> str:
    """Limits as one text that is equal exactly where they are."""
    return ", ".join(f"{name} {value:g}" if isinstance(value, int | float) else f"{name} {value or 'none'}"
                     for name, value in sorted(limits.items()))  # fmt: skip


@cache
def _own_limits(task_id: str) -> str:
    try:
        return limits_text(load_task(task_id).limits.model_dump())
    except TaskError:
        return ""


def _short(value: str) -> str:
    return value[:12] if len(value) == 64 else value


def board_title(key: str) -> str:
    """A board's key as people read it."""
    release, judge, *rest = key.split(" | ")
    return " · ".join((f"{release} release", f"{judge} judge", *rest))
