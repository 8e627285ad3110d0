"""Real runs through the real command line, in every sandbox that this machine has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.sandbox import all_backends

REPOSITORY = Path(__file__).parents[3]
REQUIRED = os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") == "1"


@pytest.fixture(scope="session", params=["bubblewrap", "docker"])
def sandbox(request):
    """Name of a sandbox that works here; CI requires both."""
    backend = next(backend for backend in all_backends() if backend.name == request.param)
    availability = backend.available()
    if not availability.ok:
        (pytest.fail if REQUIRED else pytest.skip)(f"{request.param}: {availability.detail}")
    return request.param


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Staged phantoms, made once."""
    return tmp_path_factory.mktemp("data")


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def command(data, tmp_path):
    """Call ``python -m runner``; ``command.start`` gives the process instead of its answer."""

    class Command:
        runs = tmp_path / "runs"

        def arguments(self, name, *rest, **options):
            named = [
                part for key, value in options.items() for part in (f"--{key.replace('_', '-')}", str(value))
            ]
            return [sys.executable, "-m", "runner", name, *map(str, rest), *named]

        def __call__(self, name, *rest, **options):
            done = subprocess.run(
                self.arguments(name, *rest, **options),
                capture_output=True,
                text=True,
                timeout=300,
                cwd=REPOSITORY,
            )
            return Answer(done.returncode, done.stdout, done.stderr)

        def cell(self, task="vqa-rad-task", agent="noop", **options):
            return {"agent": agent, "task": task, "runs_dir": self.runs, "data": data, **options}

        def run(self, *rest, **options):
            return self("run", *rest, **self.cell(**options))

        def start(self, **options):
            return subprocess.Popen(
                self.arguments("run", **self.cell(**options)),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=REPOSITORY, start_new_session=True,
            )  # fmt: skip

        def folder(self, task="vqa-rad-task", agent="noop", tier="lite", repeat=0, **_):
            return self.runs / task / tier / agent / f"r{repeat:02d}"

    return Command()


@pytest.fixture
def replayed(tmp_path):
    """Profile file with an agent ``scripted`` that makes the given execute_code calls and then submits twice."""

    def make(*codes: str, language: str = "python") -> Path:
        calls = [("execute_code", {"language": language, "code": code}) for code in codes]
        calls += [("submit_results", {"summary": "done"})] * 2
        trace = tmp_path / "recorded.jsonl"
        lines = []
        for turn, (name, arguments) in enumerate(calls, 1):
            call = {"id": f"c{turn}", "name": name, "arguments": json.dumps(arguments)}
            lines.append(json.dumps({"type": "reply", "seq": turn, "turn": turn, "calls": [call]}))
        trace.write_text("\n".join(lines) + "\n")
        profiles = tmp_path / "agents.yaml"
        profiles.write_text(json.dumps({"agents": {"scripted": {"kind": "replay", "trace": str(trace)}}}))
        return profiles

    return make
