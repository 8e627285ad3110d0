"""A sweep with its commands, and a model behind a scripted server that keeps its own accounts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from scripted_server import ScriptedServer, execute, submit, usage, whole

from runner.sweep.folder import SweepFolder

REPOSITORY = Path(__file__).parents[3]
PRICES = {"input": 2, "output": 10, "cached": 0.5, "source": "a test", "date": "2026-01-01"}
TASK = "vqa-rad-task"


def usd(counted):
    fresh = counted["prompt_tokens"]
    return (fresh * PRICES["input"] + counted["completion_tokens"] * PRICES["output"]) / 1e6


@dataclass
class Model:
    """A model that runs a little code and submits; ``answered`` is what it would send the bill for."""

    code: str = "import time; time.sleep(0.1); open('note', 'a').write('x')"
    before: object = None
    answered: dict[str, dict] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    server: ScriptedServer | None = None

    def __call__(self, request):
        if self.before is not None and (refusal := self.before(request)) is not None:
            return refusal
        turns = sum(message["role"] == "assistant" for message in request.body["messages"])
        counted = usage(1000 + 10 * turns, 20 + turns)
        with self._lock:
            self.answered[request.headers["x-client-request-id"]] = counted
        return whole("", [submit()] if turns else [execute(self.code)], counted=counted)


class Forever:
    """A script of one step, for every request."""

    def __init__(self, step):
        self.step = step

    def __len__(self):
        return sys.maxsize

    def __getitem__(self, _number):
        return self.step


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Sweep:
    """A sweep in a folder of its own, and the commands on it."""

    def __init__(self, place, data):
        self.place, self.data = place, data
        self.folder = SweepFolder(place / "sweeps" / "test")
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def write(self, model=None, **form):
        """The SWEEP.yaml, with the agents ``noop`` and, behind a model, ``asker``."""
        settings = {"name": "test", "agents": ["noop"], "tasks": [TASK], "tiers": ["lite"], "repeats": 2}
        settings |= {"sandbox": "bubblewrap", "network": "none", "retry_seconds": 0.2}
        if model is not None:
            profile = {"kind": "chat", "model": "test/model", "base_url": model.server.url, "prices": PRICES}
            profile |= {"context_tokens": 100_000, "max_output_tokens": 1000}
            profile["retries"] = {"tries": 4, "first_wait": 0.05, "longest_wait": 0.2, "total_wait": 60}
            (self.place / "agents.yaml").write_text(yaml.safe_dump({"agents": {"asker": profile}}))
            settings |= {"agents": ["asker"], "agents_file": "agents.yaml"}
        self.path = self.place / "SWEEP.yaml"
        self.path.write_text(yaml.safe_dump(settings | form))
        return self

    def arguments(self, name, *rest):
        taking_data = ["--data", str(self.data)] if name in ("plan", "lock", "run") else []
        target = self.path if name in ("plan", "lock") else self.folder.root
        root = ["--sweeps", str(self.place / "sweeps")]
        return [*(sys.executable, "-m", "runner", "sweep", name, str(target)), *root, *taking_data, *rest]

    def __call__(self, name, *rest):
        done = subprocess.run(
            self.arguments(name, *map(str, rest)),
            capture_output=True,
            text=True,
            timeout=300,
            cwd=REPOSITORY,
            env=self.environment,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, *rest):
        return subprocess.Popen(
            self.arguments("run", "--quiet", *map(str, rest)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env=self.environment,
            start_new_session=True,
        )

    def locked(self, *rest):
        answer = self("lock", *rest)
        assert answer.code == 0, answer.err
        return self

    def status(self):
        return self("status", "--json").json

    def records(self):
        return sorted(self.folder.runs.glob("*/*/*/r*/record.json"))
