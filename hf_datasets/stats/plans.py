"""Which runs there should be: one row a cell, with the number of its planned repeats.

A plan is a frame with the columns ``agent, task, tier, track, n_planned``.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from hf_datasets.stats.frames import CELL
from tasks.names import Tier
from tasks.registry import all_tasks

PLAN = [*CELL, "track", "n_planned"]
PUBLISHED_TIERS = (Tier.LITE, Tier.STANDARD)


def published_plan(agents: Iterable[str]) -> pd.DataFrame:
    """The published experiment: its 24 tasks in two tiers, 10 repeats a cell and 20 for five segmentation tasks."""
    rows = [
        (agent, task.id, tier.value, task.track.value, task.repeats)
        for agent in agents
        for task in all_tasks()
        if task.in_paper
        for tier in PUBLISHED_TIERS
    ]
    return pd.DataFrame(rows, columns=PLAN)


def observed_plan(runs: pd.DataFrame) -> pd.DataFrame:
    """What a table of runs says about its own plan, for tables that came without one.

    Every agent is taken to have been planned on every cell that any agent ran, with as many repeats as the highest
    one seen there. What no agent ran is not seen.
    """
    cells = runs.groupby(["task", "tier", "track"], sort=True, as_index=False)["repeat"].max()
    cells["n_planned"] = cells.pop("repeat") + 1
    agents = pd.DataFrame({"agent": sorted(runs["agent"].unique())})
    return agents.merge(cells, how="cross")[PLAN]
