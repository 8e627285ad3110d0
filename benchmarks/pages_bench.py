"""How fast a run's page is there and a case moves on by a slice, in Chromium, and what the server needs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks.drawn_runs import write_drawn
from benchmarks.figures import table

CHROMIUM = "/usr/bin/chromium"
RUN_GOAL, SLICE_GOAL = 0.7, 0.15
TRACE_BYTES = 10_000_000
BODY = "#run-body"
_DRAWN = "#compare-body .amb-slice"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_drawn(folder / "runs", folder / "data", "kidney-seg-task", ("cirrus", "stratus"))
        run = folder / "runs" / "kidney-seg-task" / "lite" / "cirrus" / "r00"
        _lengthen(run / "trace.jsonl")
        run_id = json.loads((run / "record.json").read_text())["run_id"]
        with _served(folder) as url, _browser() as page:
            _measure(page, url, run_id)


def _measure(page, url: str, run_id: str) -> None:
    address = f"{url}/run?run={run_id}"
    rows = [
        ("run page", _opened(page, address, f"{BODY} .amb-timeline"), RUN_GOAL),
        ("run page, 10 MB trace", _opened(page, f"{address}&section=Trace", f"{BODY} .amb-event"), RUN_GOAL),
        ("trace search, 10 MB", _searched(page), RUN_GOAL),
    ]
    page.goto(f"{url}/compare?task=kidney-seg-task")
    page.locator(_DRAWN).first.wait_for()
    rows.append(("slice step, 3 sides", _stepped(page, "ArrowLeft"), SLICE_GOAL))
    page.get_by_text("three planes", exact=True).click()
    page.wait_for_function(f"document.querySelectorAll('{_DRAWN}').length === 9")
    rows.append(("slice step, 3 sides x 3 planes", _stepped(page, "ArrowRight"), SLICE_GOAL))
    table(
        (
            name,
            f"{1000 * statistics.median(times):.0f} ms (worst {1000 * max(times):.0f})",
            f"goal <= {1000 * goal:.0f} ms",
        )
        for name, times, goal in rows
    )


def _opened(page, address: str, wanted: str, times: int = 5) -> list[float]:
    """Seconds from asking for the address until the content stands, the browser's cache warm as for a reader."""
    found = []
    for _ in range(times + 1):
        page.goto("about:blank")
        start = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.locator(wanted).first.wait_for()
        found.append(time.perf_counter() - start)
    return found[1:]


def _searched(page, times: int = 5) -> list[float]:
    box = page.get_by_label("Search the trace")
    found = []
    for number in range(times):
        box.fill(f"needle {200 + number}")
        found.append(_until_changed(page, f"{BODY} .amb-event", "id", lambda: box.press("Enter")))
    return found


def _stepped(page, key: str, times: int = 10) -> list[float]:
    """Steps away from the middle, then back: near its ends a phantom's slices are all alike."""
    slider = page.get_by_role("slider", name="Axial slice")
    slider.focus()
    return [_until_changed(page, _DRAWN, "src", lambda: slider.press(key)) for _ in range(times)]


_WATCH = """([selector, name]) => {
  const read = () => document.querySelector(selector)?.[name], before = read(), start = performance.now();
  window.seen = new Promise((done) => {
    const look = () => {
      const passed = performance.now() - start;
      if ((read() && read() !== before) || passed > 9000) done(passed); else requestAnimationFrame(look);
    };
    look();
  });
}"""


def _until_changed(page, selector: str, name: str, act) -> float:
    """Seconds from the act until a property of what is shown is another, watched inside the page at every frame."""
    page.evaluate(_WATCH, [selector, name])
    act()
    return page.evaluate("window.seen") / 1000


def _lengthen(trace: Path) -> None:
    with trace.open("ab") as file:
        seq = 1000
        while file.tell() < TRACE_BYTES:
            body = {"type": "exec", "seq": seq, "turn": 1, "output": f"needle {seq - 1000} " + "x" * 4000}
            file.write(json.dumps(body).encode() + b"\n")
            seq += 1


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "app.py", "--results", str(folder / "runs"), "--data", str(folder / "data")]
    server = subprocess.Popen(
        [*command, "--port", str(port)], env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url)
        yield url
        print(f"server: {_resident_mb(server.pid):.0f} MB resident")
    finally:
        server.terminate()
        server.wait(20)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"no server at {url}")


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def _browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()


if __name__ == "__main__":
    main()
