"""A served Space and a real browser that lets nothing out of the machine, and tells when a page complained."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # benchmarks/ holds the generator and is not an installed package

from benchmarks.made_runs import write_results  # noqa: E402
from hf_datasets.records import RunLimits, RunRecord, dump_record  # noqa: E402
from tasks.registry import load_task  # noqa: E402

CHROMIUM = shutil.which("chromium")
LOCAL = {"127.0.0.1", "localhost"}


ZERO = "0" * 64


@pytest.fixture(scope="session")
def record():
    """``record(agent="two", overall=None)`` -> a record of one run that differs from the usual one in that."""

    def make(**changes) -> RunRecord:
        task = changes.get("task", "vqa-rad-task")
        values = dict(
            run_id="{task}.{tier}.{agent}.r{repeat:02d}-0", task=task, track=load_task(task).track, tier="lite",
            release="phantom", agent="one", model=None, repeat=0, attempt=1, overall=0.5, agentic=0.6, task_score=0.4,
            task_score_ungated=0.4, skill=0.1, s1=0.5, s2=0.5, s3=0.5, s4=1.0, s5=1.0, items=(),
            metric="exact_match_normalised", metric_set="default", metrics={}, n_cases=2, n_scored=2, completion=1.0,
            end_reason="submitted", end_detail="", error_codes=(), turns=3, tokens_in=0, tokens_out=0,
            tokens_cached=0, cost_usd=None, price_source=None, seconds_working=1.0, seconds_wall=1.0,
            started_at=datetime(2026, 1, 1, tzinfo=UTC), finished_at=datetime(2026, 1, 1, tzinfo=UTC),
            harness_version="0", code_sha256=ZERO, task_sha256=ZERO, manifest_sha256=ZERO, brief_sha256=ZERO,
            sandbox="docker", network="none", agent_environment="x", evaluator_environment="y", judge="rules",
            judge_model=None, rubric_sha256=ZERO, cpu_count=2, memory_mb=1, gpus=(), hardware_class="cpu",
            limits=RunLimits.model_validate(load_task(task).limits.model_dump()), cell_sha256=ZERO,
            trace_sha256=ZERO, submission_sha256=None, report_sha256=None, judgement_sha256=None,
        ) | changes  # fmt: skip
        values["run_id"] = values["run_id"].format_map(values)
        return RunRecord.model_validate(values)

    return make


@pytest.fixture
def results(tmp_path):
    """``results(record, ...)`` -> a folder with a run folder for each record."""

    def write(*records: RunRecord) -> Path:
        for number, one in enumerate(records):
            folder = tmp_path / "results" / f"run-{number:05d}"
            folder.mkdir(parents=True)
            (folder / "record.json").write_text(dump_record(one))
        return tmp_path / "results"

    return write


@contextlib.contextmanager
def once(folder: Path) -> Iterator[bool]:
    """True for the first process that comes; the others wait until its block has ended."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder.with_suffix(".done")
        yield not done.exists()
        done.touch()


@pytest.fixture(scope="session")
def big_results(shared_folder) -> Path:
    """3 agents x 48 tasks x 2 tiers x 3 repeats. Tests only read it."""
    folder = shared_folder / "made-results"
    with once(folder) as first:
        if first:
            write_results(folder)
    return folder


@pytest.fixture(scope="session")
def drawn_results(shared_folder) -> Path:
    """Two runs of one task a track with real submissions on real phantoms, scored by the evaluator; one of them has a
    damaged and a missing case. Tests only read it; the phantoms lie in ``data`` beside it.
    """
    folder = shared_folder / "drawn-results"
    with once(folder) as first:
        if first:
            command = [
                sys.executable,
                "-m",
                "benchmarks.drawn_runs",
                str(folder),
                str(shared_folder / "data"),
            ]
            subprocess.run(
                [*command, "--agents", "cirrus", "stratus"], cwd=REPOSITORY, check=True, timeout=300
            )
    return folder


@pytest.fixture(scope="session")
def drawn_space(drawn_results, tmp_path_factory) -> Iterator[Space]:
    """The Space over `drawn_results` and the staged data that cases are drawn from."""
    log = tmp_path_factory.mktemp("drawn-space") / "space.log"
    data = drawn_results.parent / "data"
    running = start_space(log, "--results", str(drawn_results), "--data", str(data))
    yield running
    running.stop()


@dataclass
class Space:
    """A running ``python app.py``."""

    process: subprocess.Popen
    port: int
    log: Path

    def url(self, view: str = "", **state) -> str:
        path = "" if view == "leaderboard" else view
        return f"http://127.0.0.1:{self.port}/{path}" + (f"?{urlencode(state)}" if state else "")

    def stop(self) -> str:
        """End it and give what it printed."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self.log.read_text()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start_space(log: Path, *arguments: str) -> Space:
    port = free_port()
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(port), *arguments],
            cwd=REPOSITORY, stdout=out, stderr=subprocess.STDOUT,
            env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    space = Space(process, port, log)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(space.url(), timeout=5) as answer:
            if answer.status == 200:
                return space
        time.sleep(0.1)
    pytest.fail(f"the Space did not come up:\n{space.stop()}")


@pytest.fixture
def serve(tmp_path):
    """``serve("--results", folder)`` -> Space of this test alone."""
    started: list[Space] = []

    def start(*arguments: str | Path) -> Space:
        space = start_space(tmp_path / f"space-{len(started)}.log", *map(str, arguments))
        started.append(space)
        return space

    yield start
    for space in started:
        space.stop()


@pytest.fixture(scope="session")
def space(big_results, tmp_path_factory) -> Iterator[Space]:
    """The Space over `big_results`, one for all tests of this process."""
    running = start_space(tmp_path_factory.mktemp("space") / "space.log", "--results", str(big_results))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        required = os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES")
        (pytest.fail if required else pytest.skip)("no Chromium: run .ci/browser first")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


_LEFT_BEHIND = ("AbortError: signal is aborted without reason", "Connection errored out")
"""Gradio's own script says so when a page is left while an answer is still on its way."""


@dataclass
class Watched:
    """What went wrong in the browser while a test looked at a page."""

    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()
    """Parts of console messages that a test expects."""

    def listen(self, page) -> None:
        page.on("console", lambda message: self._complaint(message.type, message.text))
        page.on("pageerror", lambda error: self._complaint("error", str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _complaint(self, kind: str, text: str) -> None:
        if kind == "error" and not any(part in text for part in (*_LEFT_BEHIND, *self.allowed)):
            self.complaints.append(text)

    def _request(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).hostname not in LOCAL:
            self.outside.append(url)


@pytest.fixture
def watched() -> Iterator[Watched]:
    watch = Watched()
    yield watch
    assert not watch.complaints, f"the browser's console: {watch.complaints}"
    assert not watch.outside, f"requests that left the machine: {watch.outside}"


@pytest.fixture
def new_page(chromium, watched):
    """``new_page(width=390, color_scheme="dark")`` -> a page in a context of its own."""
    contexts = []

    def make(width: int = 1280, height: int = 900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        watched.listen(page)
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page):
    return new_page()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory) -> Path:
    """Where screenshots go: ``AUTOMEDBENCH_SCREENSHOTS``, or a folder of this test run."""
    named = os.environ.get("AUTOMEDBENCH_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
