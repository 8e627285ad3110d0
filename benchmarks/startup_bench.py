"""How long a user waits for ``--help``, ours beside Inspect's and Harbor's."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.figures import peer, seconds, table

OURS = {
    "python -m runner --help": ([sys.executable, "-m", "runner", "--help"], "goal <= 0.35 s"),
    "python -m evaluator --help": ([sys.executable, "-m", "evaluator", "--help"], "goal <= 0.3 s"),
}


def main() -> None:
    rows = [(name, f"{_time(argv):.2f} s", goal) for name, (argv, goal) in OURS.items()]
    for name in ("inspect", "harbor"):
        program = peer(name)
        measured = f"{_time([program, '--help'], 3):.2f} s" if program else "not installed"
        rows.append((f"{name} --help", measured, "peer"))
    table(rows)


def _time(argv: list[str], repeats: int = 7) -> float:
    return seconds(lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, check=True), repeats)


if __name__ == "__main__":
    main()
