"""Timing and printing, the same for every suite."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PEERS = Path(os.environ.get("AUTOMEDBENCH_PEERS", ".cache/peers"))
"""Environment with the peers' programs (``.ci/peers`` makes it); without it only our figures are printed."""


def seconds(action: Callable[[], object], repeats: int = 5) -> float:
    """Median wall time of ``action`` after one warm-up call."""
    action()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def peer(program: str) -> str | None:
    """Path of a peer's program, or None where it is not installed."""
    found = PEERS / "bin" / program
    return str(found.resolve()) if found.is_file() else shutil.which(program)


def table(rows: Iterable[tuple[str, str, str]]) -> None:
    """Print ``what | measured | goal or peer``."""
    listed = list(rows)
    widths = [max(len(row[column]) for row in listed) for column in range(3)]
    for row in listed:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
