"""``make bench``: every figure the README claims, measured now, beside peers where they are installed."""

from __future__ import annotations

import argparse
import importlib

SUITES = (
    "startup_bench",
    "turn_bench",
    "cell_bench",
    "evaluator_bench",
    "phantom_bench",
    "space_bench",
    "pages_bench",
    "sweep_bench",
    "stats_bench",
    "egress_bench",
    "results_bench",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure; all suites by default."
    )
    parser.add_argument("suite", nargs="*", help=", ".join(SUITES))
    chosen = parser.parse_args().suite
    if unknown := sorted(set(chosen) - set(SUITES)):
        parser.error(f"expected suites among {', '.join(SUITES)}; found {', '.join(unknown)}")
    for name in chosen or SUITES:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
