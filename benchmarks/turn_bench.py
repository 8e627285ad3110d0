"""What the harness costs a turn: time without the sandbox's, and trace bytes beyond the tool's output."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import table
from evaluator.trace import Call, Usage, read_trace
from runner.agents.chat import ChatAgent
from runner.agents.profiles import ChatProfile
from runner.limits import Budget
from runner.sandbox.base import ExecResult
from runner.session import Session
from runner.trace import TraceWriter
from tasks.brief import render
from tasks.registry import load_task
from tasks.schema import Limits, Release, Tier

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "runner" / "agents"))
from scripted_server import ScriptedServer, execute, whole

TURNS = 200
OUTPUT = b"epoch 1: loss 0.5, dice 0.71\n" * 95
CODE = "import numpy as np\nvolume = np.load('/data/public/case/input.npy')\nprint(volume.shape)\n" * 4
FILES = 400


class Instant:
    """In the sandbox's place: the same output at once, and one more file in the workspace."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._calls = 0

    def exec(self, *_, **__) -> ExecResult:
        self._calls += 1
        (self._workspace / f"result_{self._calls}.txt").write_bytes(b"x")
        return ExecResult(0, OUTPUT, len(OUTPUT), 0, 0.0)


def new_session(place: Path) -> Session:
    workspace = place / "workspace"
    for number in range(FILES):
        folder = workspace / "outputs" / f"case-{number % 20:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.npy").touch()
    task = load_task("ldct-denoising-task")
    limits = Limits(turns=10 * TURNS, tokens=10**9)
    cases = [f"case-{number:02d}" for number in range(20)]
    return Session(
        task=task,
        brief=render(task, Tier.LITE, release=Release.PHANTOM, n_cases=20, limits=limits),
        sandbox=Instant(workspace),
        trace=TraceWriter(place / "trace.jsonl"),
        budget=Budget(limits),
        workspace=workspace,
        case_ids=cases,
    )


def session_alone(place: Path) -> float:
    """Median seconds of a turn: record, parse, look at the workspace, answer."""
    session = new_session(place)
    arguments = json.dumps({"language": "python", "code": CODE})
    times = []
    for turn in range(TURNS):
        call = Call(id=f"call_{turn}", name="execute_code", arguments=arguments)
        started = time.perf_counter()
        session.turn("I look at the data.", [call], usage=Usage(input=20_000, output=300), cost_usd=0.01)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def with_a_model(place: Path) -> float:
    """Mean seconds of a turn of the chat agent, HTTP and the scripted server in this same process included."""
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    with ScriptedServer([whole("I look at the data.", [execute(CODE)])] * TURNS) as server:
        profile = ChatProfile(kind="chat", model="m", base_url=server.url, context_tokens=200_000)
        session = new_session(place)
        session.budget.limits = session.budget.limits.model_copy(update={"turns": TURNS})
        started = time.perf_counter()
        ChatAgent("bench", profile, None).run(session)
        return (time.perf_counter() - started) / TURNS


def bytes_per_turn(trace: Path) -> float:
    """Bytes a turn beyond the tool's output and the code, which a trace keeps in full."""
    events = read_trace(trace)
    kept = [event.output for event in events if event.type == "exec"]
    replies = [event for event in events if event.type == "reply"]
    kept += [call.arguments for reply in replies for call in reply.calls]
    return (trace.stat().st_size - sum(len(json.dumps(text)) - 2 for text in kept)) / len(replies)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        alone = session_alone(place / "alone")
        looped = with_a_model(place / "looped")
        size = bytes_per_turn(place / "alone" / "trace.jsonl")
    setting = f"{TURNS} turns, {len(OUTPUT)} B output, {FILES} files"
    table(
        [
            (f"harness time per turn ({setting})", f"{1e3 * alone:.1f} ms", "goal 5 ms; Inspect 19-26 ms"),
            ("the same with a model server over HTTP, both in one process", f"{1e3 * looped:.1f} ms", ""),
            ("trace per turn beyond output and code", f"{size:.0f} B", "goal 1024 B"),
        ]
    )


if __name__ == "__main__":
    main()
