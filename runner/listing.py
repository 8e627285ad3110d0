"""What is there: tasks, agents, runs - as plain rows for tables and JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_datasets.records import RecordError, RunRecord, load_record
from runner.cell import RECORD, UNSCORED
from runner.errors import UsageProblem

if TYPE_CHECKING:
    from tasks.schema import Task, Tier

Row = dict[str, Any]


def tasks(
    track: str | None = None,
    tier: Tier | None = None,
    licence: str | None = None,
    access: str | None = None,
    paper: bool | None = None,
) -> list[Row]:
    """The tasks that fit all that is asked for; with a tier, the models that it names.

    Parameters
    ----------
    licence
        Words that the licence's text holds, in any case.
    paper
        True: published tasks only; False: the others only.
    """
    from tasks.registry import all_tasks

    return [
        _task_row(task, tier)
        for task in all_tasks()
        if track in (None, task.track.value)
        and access in (None, task.source.access)
        and paper in (None, task.in_paper)
        and (licence or "").casefold() in task.source.license.casefold()
    ]


def _task_row(task: Task, tier: Tier | None) -> Row:
    row: Row = {
        "task": task.id,
        "track": task.track.value,
        "modality": task.modality,
        "dataset": task.source.dataset,
        "metric": task.metric.headline,
        "license": task.source.license,
        "access": task.source.access,
        "paper": "yes" if task.in_paper else "",
        "wall_s": task.limits.wall_seconds,
    }
    if tier is not None:
        row["models"] = "; ".join(model.name for model in task.tiers.models(tier))
    return row


def agents(profiles: Path | None = None) -> list[Row]:
    from runner.agents import agent_rows

    return agent_rows(profiles)


def runs(folder: Path) -> list[Row]:
    """One row a run folder; a bad record is listed by name instead of hiding the rest.

    Raises
    ------
    UsageProblem
        There is no such folder.
    OSError
        It cannot be read.
    """
    if not folder.is_dir():
        raise UsageProblem(f"{folder} is not a folder of runs; give the right --runs-dir")
    list(folder.iterdir())  # a pattern would pass over a folder that cannot be read
    cells = sorted(folder.glob("*/*/*/r*/cell.json"))
    return [_run_row(cell.parent) for cell in cells if _REPEAT.fullmatch(cell.parent.name)]


_REPEAT = re.compile(r"r[0-9]{2,}")


def _run_row(folder: Path) -> Row:
    for name in (RECORD, UNSCORED):
        if (folder / name).is_file():
            try:
                return summary(load_record(folder / name)) | {"folder": str(folder)}
            except RecordError as error:
                return _blank(folder, f"bad record: {error}")
    return _blank(folder, "unfinished")


def _blank(folder: Path, state: str) -> Row:
    task, tier, agent, repeat = folder.parts[-4:]
    names = {"task": task, "tier": tier, "agent": agent, "r": int(repeat.removeprefix("r"))}
    return names | dict.fromkeys(SCORES) | {"end": state} | dict.fromkeys(COSTS) | {"folder": str(folder)}


SCORES = ("OVERALL", "AGENTIC", "TASK", "S1", "S2", "S3", "S4", "S5")
COSTS = ("codes", "turns", "min", "USD")


def summary(record: RunRecord) -> Row:
    """The row of a run, scores x100."""
    values = (
        record.overall, record.agentic, record.task_score, record.s1, record.s2, record.s3, record.s4, record.s5
    )  # fmt: skip
    return {
        "task": record.task,
        "tier": record.tier.value,
        "agent": record.agent,
        "r": record.repeat,
        **{name: None if value is None else 100 * value for name, value in zip(SCORES, values, strict=True)},
        "end": record.end_reason.value,
        "codes": " ".join(record.error_codes),
        "turns": record.turns,
        "min": record.seconds_working / 60,
        "USD": record.cost_usd,
    }
