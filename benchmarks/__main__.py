"""``make bench``: every figure the README claims, measured now, beside peers where they are installed."""

from __future__ import annotations

import importlib
import sys

SUITES = ("startup_bench", "turn_bench", "cell_bench", "evaluator_bench", "phantom_bench")


def main() -> None:
    chosen = sys.argv[1:] or SUITES
    for name in chosen:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
