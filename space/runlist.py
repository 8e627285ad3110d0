"""Choices of tasks and runs for the pages that show one of them."""

from __future__ import annotations

import pandas as pd

from space.markup import percent
from tasks.registry import TaskError, load_task

Choices = list[tuple[str, str]]


def task_choices(runs: pd.DataFrame) -> Choices:
    """Tasks of which there is a run: what is shown, and the id."""
    return [(_task_name(task), task) for task in sorted(map(str, runs["task"].unique()))] if len(runs) else []


def _task_name(task_id: str) -> str:
    try:
        return f"{task_id} ({load_task(task_id).track.value})"
    except TaskError:
        return task_id


def runs_of(runs: pd.DataFrame, task_id: str | None) -> pd.DataFrame:
    """The runs of a task, the best agents first, and of each its tiers and repeats in order."""
    if not len(runs):
        return runs
    chosen = runs[runs["task"] == task_id]
    best = chosen.groupby("agent")["overall"].transform("max")
    order = chosen.assign(_best=best.fillna(-1.0)).sort_values(
        ["_best", "agent", "tier", "repeat"], ascending=[False, True, True, True]
    )
    return order.drop(columns="_best")


def run_choices(runs: pd.DataFrame, task_id: str | None) -> Choices:
    """Runs of a task: agent, tier, repeat and OVERALL, and the id."""
    return [(run_name(row), str(row["run_id"])) for row in runs_of(runs, task_id).to_dict("records")]


def run_name(row: dict[str, object]) -> str:
    """A run in a few words."""
    score = row.get("overall")
    shown = percent(float(score)) if isinstance(score, float) and score == score else "unscored"
    tier = getattr(row["tier"], "value", row["tier"])
    return f"{row['agent']} · {tier} · r{int(str(row['repeat'])):02d} · {shown}"


def first_run(runs: pd.DataFrame, task_id: str | None) -> str | None:
    """The run that is shown first: of the task, or of all tasks the first one."""
    if not len(runs):
        return None
    found = runs_of(runs, task_id or str(runs["task"].min()))
    return str(found.iloc[0]["run_id"]) if len(found) else None


def best_of_agents(runs: pd.DataFrame, task_id: str | None, count: int) -> list[str]:
    """The first run of each of the best agents of a task; of one agent alone, its first runs."""
    if not len(runs):
        return []
    found = runs_of(runs, task_id)
    firsts = found.drop_duplicates("agent") if found["agent"].nunique() >= count else found
    return [str(run_id) for run_id in firsts["run_id"].head(count)]
