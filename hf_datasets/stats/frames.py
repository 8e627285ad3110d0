"""Tables of runs and of cases, and which of their rows count."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from hf_datasets.records import CaseRecord, RunRecord

CELL = ["agent", "task", "tier"]
RUN = [*CELL, "repeat"]


def runs_frame(records: Iterable[RunRecord]) -> pd.DataFrame:
    """One row a record, columns as its fields; names as text, lists as lists."""
    rows = [record.model_dump(mode="json") for record in records]
    return pd.DataFrame(rows, columns=list(RunRecord.model_fields))


def cases_frame(records: Iterable[CaseRecord]) -> pd.DataFrame:
    """One row a case of a run, columns as the record's fields."""
    rows = [record.model_dump(mode="json") for record in records]
    return pd.DataFrame(rows, columns=list(CaseRecord.model_fields))


def counted(runs: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """The planned runs that are there: one row a repeat, the latest of several attempts, with ``n_planned``."""
    order = [name for name in ("attempt", "finished_at") if name in runs]
    runs = runs.sort_values(order, kind="stable") if order else runs
    runs = runs.drop_duplicates(RUN, keep="last").sort_index()
    runs = runs.merge(plan[[*CELL, "n_planned"]], on=CELL, how="inner", validate="many_to_one")
    return runs[runs["repeat"] < runs["n_planned"]].reset_index(drop=True)


def unplanned(runs: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """The repeats that are there although nobody planned them; no mean holds them."""
    there = runs[RUN].drop_duplicates().merge(plan[[*CELL, "n_planned"]], on=CELL, how="left")
    outside = there["n_planned"].isna() | (there["repeat"] >= there["n_planned"])
    return there.loc[outside, RUN].reset_index(drop=True)
