"""Which runs may stand on one board: those whose numbers mean the same."""

from __future__ import annotations

import pandas as pd

BOARD_COLUMNS = ("release", "judge", "judge_model", "network", "hardware_class")


def with_boards(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with their board's key: runs that differ in it are never averaged together."""
    texts = [
        runs["release"].astype(str),
        (runs["judge"].fillna("unjudged") + " " + runs["judge_model"].fillna("")).str.strip(),
        "network " + runs["network"].astype(str),
        runs["hardware_class"].astype(str),
    ]
    key = texts[0]
    for text in texts[1:]:
        key = key + " | " + text
    return runs.assign(board=key)
