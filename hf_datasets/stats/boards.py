"""Which runs may stand on one board: those whose numbers mean the same."""

from __future__ import annotations

import pandas as pd

BOARD_COLUMNS = ("release", "judge", "judge_model", "network", "hardware_class")


def with_boards(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with their ``board``, a text; runs that differ in it are never averaged together."""
    judge = runs["judge"].fillna("unjudged").astype(str) + " " + runs["judge_model"].fillna("").astype(str)
    parts = [
        runs["release"].astype(str),
        judge.str.strip(),
        "network " + runs["network"].astype(str),
        runs["hardware_class"].astype(str),
    ]
    board = parts[0].str.cat(parts[1:], sep=" | ") if len(runs) else pd.Series(dtype=str)
    return runs.assign(board=board)
