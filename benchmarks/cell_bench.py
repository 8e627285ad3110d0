"""Fixed cost of one cell: the noop agent, both sandboxes with everything in them, the record sealed."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.figures import table
from runner.cell import Cell
from runner.execute import Options, run_cell
from runner.sandbox import all_backends
from tasks.schema import Release, Tier

REPEATS = 5


def main() -> None:
    rows = []
    for backend in all_backends():
        availability = backend.available()
        if not availability.ok:
            rows.append((f"no-op cell, {backend.name}", "not usable here", availability.detail))
            continue
        median, spread = _measure(backend.name)
        rows.append(
            (
                f"no-op cell, {backend.name}",
                f"{median:.2f} s ({spread})",
                "goal <= 1.5 s with Docker, evaluator included",
            )
        )
    table(rows)


def _measure(sandbox: str) -> tuple[float, str]:
    with tempfile.TemporaryDirectory() as folder:
        options = Options(Path(folder) / "runs", Path(folder) / "data", sandbox)
        times = []
        for repeat in range(REPEATS + 1):
            cell = Cell("vqa-rad-task", Tier.LITE, Release.PHANTOM, "noop", repeat)
            started = time.perf_counter()
            run_cell(cell, options)
            times.append(time.perf_counter() - started)
    warm = times[1:]  # the first makes the phantom and imports everything
    return statistics.median(warm), f"{min(warm):.2f} to {max(warm):.2f}"


if __name__ == "__main__":
    main()
