"""Records as tables: one row a run, one row a rubric item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from hf_datasets.records import RunRecord
from space.boards import limits_text

_NESTED = ("items", "metrics", "stages", "limits")
RUN_COLUMNS = (*(name for name in RunRecord.model_fields if name not in _NESTED), "limits", "status", "board")
SELF_REPORTED = "self-reported"
"""Nobody but its sender has looked at the run."""
ITEM_COLUMNS = ("run_id", "item", "stage", "value")

Row = Mapping[str, Any]


def row_of(record: RunRecord) -> dict[str, Any]:
    """A record as one flat row. Values keep their types; ``limits`` becomes a text that tells different ones apart."""
    row = {name: getattr(record, name) for name in RunRecord.model_fields if name not in _NESTED}
    for name in ("track", "tier", "release", "end_reason"):
        row[name] = str(row[name])
    row["limits"] = limits_text(record.limits.model_dump())
    row["status"] = SELF_REPORTED
    return row


def items_of(record: RunRecord) -> list[tuple[str, str, str, float | None]]:
    """The rubric items of a record that applied."""
    return [(record.run_id, item.id, item.stage, item.value) for item in record.items if item.applies]


def run_frame(rows: Iterable[Row]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=[name for name in RUN_COLUMNS if name != "board"])
    numbers = ("overall", "agentic", "task_score", "task_score_ungated", "skill", "completion", "cost_usd",
               "s1", "s2", "s3", "s4", "s5")  # fmt: skip
    return frame.astype({name: "float64" for name in numbers})


def item_frame(items: Iterable[tuple[str, str, str, float | None]]) -> pd.DataFrame:
    frame = pd.DataFrame(list(items), columns=list(ITEM_COLUMNS))
    return frame.astype({"item": "category", "stage": "category", "value": "float32"})
