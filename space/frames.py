"""Records as tables: one row a run in the published columns, one row a rubric item."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from hf_datasets.arrow import RUNS, PublishedRun, run_row
from hf_datasets.records import RunLimits, RunRecord
from space.boards import limits_text

COLUMNS = tuple(RUNS.names)
ITEM_COLUMNS = ("run_id", "item", "stage", "value")
_LIMITS = tuple(f"limit_{name}" for name in RunLimits.model_fields)
_NUMBERS = ("overall", "agentic", "task_score", "task_score_ungated", "skill", "completion", "cost_usd",
            "s1", "s2", "s3", "s4", "s5")  # fmt: skip


def row_of(record: RunRecord, sha256: str) -> tuple[Any, ...]:
    """A record as one row, its values in the order of ``COLUMNS``."""
    row = run_row(PublishedRun(record, sha256))
    return tuple(row[name] for name in COLUMNS)


def frame_of(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows as `row_of` makes them."""
    if not rows:
        return pd.DataFrame(columns=list(COLUMNS), dtype=object)
    return pd.DataFrame.from_records(list(rows), columns=list(COLUMNS))


def shaped(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the pages work with, from a frame in the published columns: the runs, and their rubric items.

    In the runs the limits become one text, ``limits``, and the JSON columns are left out: they are large, and the Run
    page reads the record itself.
    """
    # Copies, for a frame without rows has a block a column, and pandas complains aloud of more than a hundred.
    runs = frame.drop(columns=["items", "metrics", *_LIMITS]).copy().assign(limits=_limits(frame))
    runs = runs.astype(dict.fromkeys(_NUMBERS, "float64")).copy()
    for name in ("started_at", "finished_at"):
        runs[name] = pd.to_datetime(runs[name], utc=True)
    runs["error_codes"] = [tuple(codes) for codes in runs["error_codes"]]
    return runs, _items(zip(frame["run_id"], frame["items"], strict=True))


def _limits(frame: pd.DataFrame) -> pd.Series:
    if frame.empty:
        return pd.Series(dtype=object)
    limits = frame[list(_LIMITS)].astype("float64")
    group = limits.groupby(list(_LIMITS), dropna=False, sort=False).ngroup()
    firsts = limits.loc[~group.duplicated()]
    texts = {group[index]: _limits_of(row) for index, row in firsts.iterrows()}
    return group.map(texts)


def _limits_of(row: pd.Series) -> str:
    return limits_text(
        {name.removeprefix("limit_"): None if pd.isna(value) else value for name, value in row.items()}
    )


def _items(runs: Iterable[tuple[str, Any]]) -> pd.DataFrame:
    """The items that applied; a run whose items are no list has none."""
    rows = [
        (run_id, str(item.get("id")), str(item.get("stage")), item.get("value"))
        for run_id, text in runs
        for item in _list(text)
        if isinstance(item, dict) and item.get("applies")
    ]
    frame = pd.DataFrame(rows, columns=list(ITEM_COLUMNS))
    return frame.astype({"run_id": "category", "item": "category", "stage": "category", "value": "float32"})


def _list(text: Any) -> list[Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return []
    return found if isinstance(found, list) else []
