"""``python -m benchmarks.fuzz [TARGET...] --seconds N``: fuzz, side by side, and say what was found.

What did something new is kept under ``--corpus``; a small choice of it lives in ``tests/fuzz/corpus``; CI replays it.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.fuzz.loop import Tally, fuzz
from benchmarks.fuzz.targets import TARGETS

KEPT = Path(__file__).parents[2] / "tests" / "fuzz" / "corpus"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60, help="for each target (default 60)")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time (default 2)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the random numbers")
    parser.add_argument("--corpus", type=Path, default=Path(".cache/fuzz"), help="where inputs are kept")
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.target) - TARGETS.keys()):
        parser.error(f"expected targets among {', '.join(TARGETS)}; found {', '.join(unknown)}")
    names = chosen.target or list(TARGETS)
    with ProcessPoolExecutor(chosen.jobs) as pool:
        arguments = [(name, chosen.seconds, chosen.corpus, chosen.seed) for name in names]
        tallies = list(pool.map(_one, *zip(*arguments, strict=True)))
    print(f"seed {chosen.seed}")
    for tally in tallies:
        print(tally.line())
        for finding in tally.findings:
            print(f"  {finding}: {finding.with_suffix('.txt').read_text().strip().splitlines()[-1]}")
    return 1 if any(tally.findings for tally in tallies) else 0


def _one(name: str, seconds: float, corpus: Path, seed: int) -> Tally:
    kept = corpus / name
    kept.mkdir(parents=True, exist_ok=True)
    for path in sorted((KEPT / name).glob("*.bin")):
        (kept / path.name).write_bytes(path.read_bytes())
    return fuzz(TARGETS[name], seconds, kept, corpus / f"{name}-findings", seed)


if __name__ == "__main__":
    raise SystemExit(main())
