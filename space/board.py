"""The leaderboard's rows: one per agent, only runs that may be compared, missing values left missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from hf_datasets.records import RecordError, RunRecord, load_record


@dataclass(frozen=True)
class Results:
    """Records that could be read, and a line for each that could not."""

    records: tuple[RunRecord, ...]
    problems: tuple[str, ...]


def read_results(folder: Path) -> Results:
    """All ``record.json`` below a runs folder. A bad one is named and never hides the others; a run of which several
    copies lie there counts once.
    """
    found: dict[str, RunRecord] = {}
    problems = []
    for path in sorted(folder.glob("**/record.json")):
        try:
            record = load_record(path)
        except RecordError as error:
            problems.append(str(error))
            continue
        if found.setdefault(record.run_id, record) is not record:
            problems.append(f"{path}: {record.run_id} is there already; this copy is not counted")
    return Results(tuple(found.values()), tuple(problems))


def board_of(record: RunRecord) -> str:
    """Runs with different releases, judges, metric sets, networks or hardware are never averaged together."""
    parts = (
        record.release.value,
        " ".join(filter(None, (record.judge or "unjudged", record.judge_model))),
        f"metrics {record.metric_set or 'none'}",
        f"network {record.network}",
        record.hardware_class,
    )
    return " | ".join(parts)


def leaderboard(records: tuple[RunRecord, ...]) -> list[dict[str, Any]]:
    """One row an agent, run-weighted means x100, best first; an agent without a scored run stands last."""
    by_agent: dict[str, list[RunRecord]] = {}
    for record in records:
        by_agent.setdefault(record.agent, []).append(record)
    rows = [_row(agent, runs) for agent, runs in by_agent.items()]
    return sorted(rows, key=lambda row: (row["OVERALL"] is None, -(row["OVERALL"] or 0.0), row["agent"]))


def _row(agent: str, runs: list[RunRecord]) -> dict[str, Any]:
    columns = {
        "OVERALL": "overall", "AGENTIC": "agentic", "TASK": "task_score",
        "S1": "s1", "S2": "s2", "S3": "s3", "S4": "s4", "S5": "s5",
    }  # fmt: skip
    means = {name: _mean([getattr(run, field) for run in runs]) for name, field in columns.items()}
    return {"agent": agent, "model": runs[0].model or "-", "runs": len(runs), **means}


def _mean(values: list[float | None]) -> float | None:
    """Mean of the scores; None when one of them is missing, because unscored is not zero."""
    if not values or any(value is None for value in values):
        return None
    return round(100 * fmean(value for value in values if value is not None), 1)
