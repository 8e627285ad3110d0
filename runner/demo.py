"""The demo: what a newcomer sees first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

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


def next_steps(runs_dir: Path, run: Path) -> str:
    """What to look at now, as commands that work in this shell."""
    python = _python()
    return (
        f"  one:   {python} -m runner explain {run}\n"
        f"  all:   {python} -m runner list runs --runs-dir {runs_dir}\n"
        f'  pages: {python} -m pip install -e ".[space]"; {python} app.py --results {runs_dir} --data data'
    )


def _python() -> str:
    """The word that starts this very Python: ``python`` where its environment is active, else its path."""
    found = shutil.which("python")
    return "python" if found and Path(found) == Path(sys.executable) else os.path.relpath(sys.executable)
