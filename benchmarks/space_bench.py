"""The Space on 10,000 runs: until it answers, until the leaderboard is painted, a filter, a sort, memory."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import table
from benchmarks.made_runs import AGENTS, write_results

REPOSITORY = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
OTHERS = tuple(f"cloud-{number}" for number in range(8))
REPEATS = 10
TIMES = 7
_BOARD = "#board-content .amb-board"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        count = len(write_results(runs, (*AGENTS, *OTHERS), repeats=REPEATS, files=False))
        imported = _seconds([sys.executable, "-c", "import space.app, space.refresh, uvicorn"])
        with _served(runs) as (address, process, ready):
            rows = [
                (f"server ready, {count:,} runs", f"{ready - imported:.1f} s after import", "goal 5 s"),
                ("  import of app and libraries", f"{imported:.1f} s", ""),
                *_in_the_browser(address),
                ("memory of the server", f"{_memory(process.pid):.0f} MB", "goal 700 MB"),
            ]
    table(rows)


def _in_the_browser(address: str) -> Iterator[tuple[str, str, str]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()

        def opened() -> None:
            page.goto(address)
            page.locator(_BOARD).wait_for()

        opened()
        yield ("leaderboard painted", _median(opened), "goal 1.5 s")

        def sorted_by_cost() -> None:
            before = page.locator(f"{_BOARD} tbody").inner_text()
            page.locator(f"{_BOARD} th[data-key=cost_usd] button").click()
            page.wait_for_function(
                f"(before) => document.querySelector('{_BOARD} tbody').innerText !== before", arg=before
            )

        yield ("sort", _median(sorted_by_cost), "goal 0.3 s")
        tiers = [_filter(page, tier) for tier in ("lite", "standard")]
        yield ("filter by tier, first time", _median(*tiers), "goal 0.3 s")
        yield ("filter by tier, again", _median(*tiers), "goal 0.3 s")
        browser.close()


def _filter(page: Any, label: str) -> Callable[[], None]:
    def change() -> None:
        before = page.locator(f"{_BOARD} caption").inner_text()
        page.get_by_label(label, exact=True).click()
        page.wait_for_function(
            f"(before) => document.querySelector('{_BOARD} caption')?.innerText !== before", arg=before
        )

    return change


def _median(*actions: Callable[[], None]) -> str:
    """Of one action several times over, or of several once each."""
    times = []
    for action in actions * TIMES if len(actions) == 1 else actions:
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return f"{statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"


@contextmanager
def _served(runs: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], float]]:
    """The Space over a folder, and the seconds from the start of its process to its first answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/"
    started = time.perf_counter()
    arguments = [sys.executable, "app.py", "--results", str(runs), "--port", str(port)]
    process = subprocess.Popen(
        arguments, cwd=REPOSITORY, env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    )
    try:
        while not _answers(address):
            if process.poll() is not None or time.perf_counter() - started > 120:
                raise SystemExit("the Space did not come up")
            time.sleep(0.05)
        yield address, process, time.perf_counter() - started
    finally:
        process.terminate()
        process.wait(20)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return time.perf_counter() - started


def _memory(pid: int) -> float:
    """Resident memory in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1000


if __name__ == "__main__":
    main()
