"""The demo: what a newcomer sees first."""

from __future__ import annotations

from collections.abc import Iterator

from runner.cell import Cell
from tasks.schema import Release, Tier

TASKS = (
    "bccd-det-task",
    "iu-xray-report-task",
    "kidney-seg-task",
    "ldct-denoising-task",
    "vqa-rad-task",
)
"""One task of every published track, so that all kinds of artifact are seen within three minutes."""


def demo_cells() -> Iterator[Cell]:
    """The scripted baseline agent on phantoms, both tiers."""
    for task in TASKS:
        for tier in (Tier.LITE, Tier.STANDARD):
            yield Cell(task, tier, Release.PHANTOM, "baseline")
