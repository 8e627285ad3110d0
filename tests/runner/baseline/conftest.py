"""The agent's scripts as modules, and a session whose code really runs, though without a sandbox."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import runner.agents.baseline as baseline
from runner.limits import Budget
from runner.sandbox.base import ExecResult
from runner.session import Session
from runner.trace import TraceWriter
from tasks.brief import render
from tasks.registry import load_task
from tasks.schema import Limits, Release, Tier

SCRIPTS = Path(baseline.__file__).parent / "scripts"


@pytest.fixture
def script(monkeypatch):
    """Import one of the scripts as the sandbox would: ``script("detection")``."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def load(name):
        return importlib.import_module(name)

    yield load
    for name in ("chest", *(path.stem for path in SCRIPTS.glob("*.py"))):
        sys.modules.pop(name, None)


class HostSandbox:
    """TEST DOUBLE, isolates nothing: runs our own scripts on the host, with the two places moved elsewhere."""

    def __init__(self, public: Path, workspace: Path) -> None:
        self.places = {"/data/public": str(public), "/workspace": str(workspace)}
        self.workspace = workspace
        self.results: list[ExecResult] = []

    def exec(self, argv, *, deadline, stdin=None, **_) -> ExecResult:
        code = stdin.decode()
        for place, here in self.places.items():
            code = code.replace(place, here)
        program = [sys.executable, "-"] if argv[-2] == "python" else ["bash", "-s"]
        environment = os.environ | {"PYTHONPATH": str(self.workspace)}
        started = time.monotonic()
        done = subprocess.run(
            program,
            input=code.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.workspace,
            env=environment,
            timeout=deadline,
        )
        seconds = time.monotonic() - started
        self.results.append(ExecResult(done.returncode, done.stdout, len(done.stdout), 0, seconds))
        return self.results[-1]


@pytest.fixture
def on_host(tmp_path):
    """A real session over ``HostSandbox``: ``on_host(task_id, public)``."""
    writers = []

    def make(task_id: str, public: Path, tier: Tier = Tier.LITE) -> Session:
        task, limits = load_task(task_id), Limits(wall_seconds=120, call_seconds=60)
        workspace = tmp_path / "workspace"
        (workspace / "outputs").mkdir(parents=True)
        cases = sorted(folder.name for folder in public.iterdir())
        writers.append(TraceWriter(tmp_path / "trace.jsonl"))
        return Session(
            task=task,
            brief=render(task, tier, release=Release.PHANTOM, n_cases=len(cases), limits=limits),
            sandbox=HostSandbox(public, workspace),
            trace=writers[-1],
            budget=Budget(limits),
            workspace=workspace,
            case_ids=cases,
        )

    yield make
    for writer in writers:
        writer.close()
