"""The session against a real sandbox: what the agent's code finds there and what the host sees of it."""

from __future__ import annotations

import json
import os

import pytest

from evaluator.trace import Call, EndReason
from runner.limits import Budget
from runner.sandbox import choose_backend
from runner.sandbox.base import AGENT_UID, Mount, SandboxSpec
from runner.session import Session
from runner.trace import TraceWriter
from tasks.brief import render
from tasks.registry import load_task
from tasks.schema import Limits, Release, Tier

pytestmark = pytest.mark.bubblewrap

CASES = ("case-a", "case-b")


@pytest.fixture
def session(tmp_path):
    task = load_task("ldct-denoising-task")
    limits = Limits(wall_seconds=120, call_seconds=20, memory_mb=512, disk_mb=200)
    workspace, public = tmp_path / "workspace", tmp_path / "public"
    for place in (workspace, workspace / "outputs", workspace / "home", public):
        place.mkdir()
        if os.geteuid() == 0:
            os.chown(place, AGENT_UID, AGENT_UID)
    spec = SandboxSpec(
        role="agent",
        run_id="session-test",
        mounts=(Mount(public, "/data/public"), Mount(workspace, "/workspace", writable=True)),
        env={"HOME": "/workspace/home"},
        memory_mb=limits.memory_mb,
        disk_mb=limits.disk_mb,
        lease_seconds=300,
    )
    brief = render(task, Tier.LITE, release=Release.PHANTOM, n_cases=len(CASES), limits=limits)
    with TraceWriter(tmp_path / "trace.jsonl") as trace, choose_backend("bubblewrap").create(spec) as sandbox:
        made = Session(task, brief, sandbox, trace, Budget(limits), workspace, CASES)
        made.events = []
        made._watch = lambda event, session: made.events.append(event)
        yield made


def run(session, code, language="python"):
    arguments = json.dumps({"language": language, "code": code})
    (reply,) = session.turn("", [Call(id="c", name="execute_code", arguments=arguments)])
    ran = next((event for event in reversed(session.events) if event.type == "exec"), None)
    return reply.text, ran


def test_a_traceback_names_the_call_and_its_line(session):
    text, ran = run(session, "def f():\n    return 1 / 0\n\nf()")
    assert ran.exit_code == 1
    assert 'call-0001.py", line 2, in f' in text
    assert "return 1 / 0" in text


def test_a_fresh_process_in_the_workspace_with_an_empty_stdin(session):
    text, _ = run(session, "import os, sys; print(os.getcwd(), repr(sys.stdin.read())); leftover = 1")
    assert "/workspace ''" in text
    text, ran = run(session, "print(leftover)")
    assert "NameError" in text
    text, ran = run(session, "pwd; cat; echo over; exit 7", "bash")
    assert "/workspace\nover" in text
    assert ran.exit_code == 7


def test_modules_and_workers_as_in_a_script_of_the_workspace(session):
    run(session, "open('helper.py', 'w').write('answer = 42')")
    text, _ = run(
        session,
        "import multiprocessing, helper\n"
        "def work(x): return x + helper.answer\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: print(pool.map(work, [0, 1]))\n",
    )
    assert "[42, 43]" in text


def test_stdout_and_stderr_come_together_in_order(session):
    text, _ = run(session, "echo one; echo two >&2; echo three", "bash")
    assert "one\ntwo\nthree" in text


def test_code_of_any_content(session):
    code = "print('''quotes \" ' $HOME `id` \\\\ é漢😀''')\n" + "# " + "x" * 900_000
    text, ran = run(session, code)
    assert "quotes \" ' $HOME `id` \\ é漢😀" in text
    assert ran.exit_code == 0


def test_the_deadline(session):
    session.budget.limits = session.budget.limits.model_copy(update={"call_seconds": 1})
    text, ran = run(session, "print('begun', flush=True)\nimport time; time.sleep(60)")
    assert ran.timed_out
    assert "begun" in text
    assert "limit of one call" in text
    assert "ended" not in str(session.ended)


def test_outputs_are_seen_being_written_read_and_handed_in(session):
    write = "import pathlib\nfor case in ('case-b', 'case-a'):\n    p = pathlib.Path('outputs', case); p.mkdir()\n"
    run(session, write + "    (p / 'enhanced.npy').write_bytes(b'x' * 10)\n")
    files = session.events[-1]
    assert files.new_cases == ("case-b", "case-a")
    assert files.complete_cases == 2
    run(session, "import time; time.sleep(0.05); print(open('outputs/case-a/enhanced.npy').read())")
    assert session.events[-1].read_cases in (("case-a",), ())  # () where access times are not kept
    arguments = json.dumps({"summary": "done"})
    session.turn("", [Call(id="s", name="submit_results", arguments=arguments)])
    assert session.ended is EndReason.SUBMITTED


def test_a_dead_sandbox_is_an_infrastructure_error(session):
    session._sandbox.stop()
    text, _ = run(session, "print(1)")
    assert session.ended is EndReason.INFRA_ERROR
    assert "ended" in text
