"""Publishing and loading 5,000 runs of 50 cases each, with the stand-in Hub of the tests on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from benchmarks.figures import table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests/hub"), str(ROOT / "tests/hf_datasets/results")]

RUNS, CASES, REPO = 5_000, 50, "demo/results"
_LOAD = """
import json, sys, time
from pathlib import Path
import pandas
from hf_datasets.hub import Hub
from hf_datasets.results.pull import pull
from hf_datasets.results.read import read_results
started = time.perf_counter()
folder = pull(Hub(sys.argv[1]), Path(sys.argv[2])).folder
pulled = time.perf_counter()
runs = read_results(folder).runs
read = time.perf_counter()
cases = read_results(folder).cases.frame
print(json.dumps([len(runs), len(cases), pulled - started, read - pulled, time.perf_counter() - read]))
"""


def main() -> None:
    from hub_standin import HubStandIn
    from run_maker import make_run

    with tempfile.TemporaryDirectory() as scratch, HubStandIn() as hub:
        folder, runs = Path(scratch), Path(scratch, "runs")
        for number in range(RUNS):
            make_run(runs, number, CASES, release="full", task="feta-seg-task")
        environment = hub.environment(folder) | {"PYTHONPATH": str(ROOT)}
        push = ["push", str(runs), "--repo", REPO, "--json"]
        seconds, work, peak, printed = _measured(["-m", "hf_datasets", *push], environment)
        published, commits = len(json.loads(printed)["published"]), len(json.loads(printed)["commits"])
        again, *_ = _measured(["-m", "hf_datasets", *push], environment)
        files = hub.files(REPO)
        _, load_work, load_peak, printed = _measured(["-c", _LOAD, REPO, str(folder / "pulled")], environment)
        rows, cases, pulled, read, read_cases = json.loads(printed)
        local, *_ = _measured(
            ["-c", "import sys; from pathlib import Path; from hf_datasets.results import read_results; "
                   "assert not read_results(Path(sys.argv[1])).problems", str(runs)],
            environment,
        )  # fmt: skip
    packed = sum(len(content) for path, content in files.items() if path.endswith(".parquet"))
    records = [content for path, content in files.items() if path.startswith("records/2")]
    table(
        [
            (
                f"push {published} runs of {CASES} cases",
                f"{seconds:.1f} s ({work:.1f} s of CPU), {commits} commits",
                "goal <= 60 s",
            ),
            ("memory of the push", f"{peak:.0f} MB", "goal <= 1000 MB"),
            ("the same push again, nothing to do", f"{again:.1f} s", ""),
            (f"pull and load {rows} runs as pandas", f"{pulled:.1f} + {read:.2f} s", "goal <= 3 s"),
            (
                f"its {cases} cases too",
                f"{read_cases:.2f} s; {load_work:.1f} s of CPU, {load_peak:.0f} MB in all",
                "",
            ),
            ("read the run folders themselves, imports included", f"{local:.1f} s", ""),
            ("tables and packed records, a run", f"{packed / RUNS / 1000:.2f} kB", "goal <= 6 kB"),
            (
                "the record's own file",
                f"{sum(map(len, records)) / RUNS / 1000:.2f} kB, "
                f"{sum(len(zlib.compress(one)) for one in records) / RUNS / 1000:.2f} kB as git keeps it",
                "",
            ),
        ]
    )


def _measured(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float, str]:
    """Wall seconds, CPU seconds, peak megabytes and output of a Python process."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    printed = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[:3]} ended with {process.returncode}")
    seconds = time.perf_counter() - started
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, printed


if __name__ == "__main__":
    main()
