"""The demo: what a newcomer sees first."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.registry import all_tasks
from tasks.schema import Release, Tier

from runner.cell import Cell


def demo_cells() -> Iterator[Cell]:
    """The scripted baseline agent on the phantom of every task, both tiers."""
    for task in all_tasks():
        for tier in (Tier.LITE, Tier.STANDARD):
            yield Cell(task.id, tier, Release.PHANTOM, "baseline")
