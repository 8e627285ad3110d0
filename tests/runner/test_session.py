import json
import shlex
from datetime import UTC, datetime

import pytest

from evaluator.trace import Call, EndReason, Usage, read_trace
from runner.cell import CellFile
from runner.sandbox.base import ExecResult, SandboxDead
from runner.session import Session
from runner.trace import TraceWriter, verify_chain
from tasks.schema import Limits, Release, Tier


def execute(code="print(1)", call_id="c", language="python"):
    return Call(id=call_id, name="execute_code", arguments=json.dumps({"language": language, "code": code}))


def submit(call_id="s", summary="done"):
    return Call(id=call_id, name="submit_results", arguments=json.dumps({"summary": summary}))


BAD = Call(id="b", name="execute_code", arguments="{")


def end_of(stage):
    ends = stage.events("end")
    assert len(ends) == 1
    assert stage.events()[-1] == ends[0]
    return ends[0]


def test_a_turn_is_recorded_and_answered(new_stage):
    stage = new_stage()
    (reply,) = stage.session.turn(
        "I look around.", [execute("ls")], usage=Usage(input=10, output=5), cost_usd=0.1
    )
    assert not reply.is_error
    assert "exit code 0" in reply.text
    assert "ran: ls" in reply.text
    assert "99 turns" in reply.text
    recorded, ran, files = stage.events()
    assert (recorded.type, recorded.turn, recorded.text) == ("reply", 1, "I look around.")
    assert (ran.type, ran.call, ran.output, ran.exit_code) == ("exec", "c", "ran: ls", 0)
    assert files.type == "files"
    assert stage.seen == stage.events()
    assert verify_chain(stage.trace_path) is None


def test_the_run_event_comes_first(tmp_path, new_stage):
    stage = new_stage()
    cell = CellFile(
        run_id="x",
        task="kidney-seg-task",
        tier=Tier.LITE,
        release=Release.PHANTOM,
        agent="glm-5",
        model="z-ai/glm-5",
        repeat=0,
        attempt=1,
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        limits=Limits(),
        network="none",
        sandbox="docker",
        agent_environment="e",
        harness_version="1",
        code_sha256="c",
        task_sha256="t",
        manifest_sha256="m",
        brief_sha256="b",
        n_cases=2,
        price_source=None,
        cpu_count=2,
        memory_mb=1,
    )
    with TraceWriter(tmp_path / "t.jsonl") as trace:
        session = stage.session
        Session(
            session.task, session.brief, stage.sandbox, trace, stage.budget, stage.workspace, (), cell=cell
        )
    (started,) = read_trace(tmp_path / "t.jsonl")
    assert (started.type, started.agent, started.model, started.cases) == ("run", "glm-5", "z-ai/glm-5", 2)
    assert started.at == "2026-01-02T00:00:00.000000+00:00"


def test_code_goes_in_by_stdin_and_lies_in_a_named_file(new_stage):
    stage = new_stage()
    stage.session.turn("", [execute("import os", "1"), execute("ls", "2", "bash")])
    assert stage.sandbox.codes == ["import os", "ls"]
    python, bash = (shlex.join(argv) for argv in stage.sandbox.argvs)
    assert "/tmp/calls/call-0001.py" in python
    assert "/tmp/calls/call-0002.sh" in bash


def test_calls_run_in_order_and_each_has_its_answer(new_stage):
    stage = new_stage()
    replies = stage.session.turn("", [execute("one", "1"), BAD, execute("two", "2")])
    assert [reply.call_id for reply in replies] == ["1", "b", "2"]
    assert [reply.is_error for reply in replies] == [False, True, False]
    assert stage.sandbox.codes == ["one", "two"]
    (error,) = stage.events("tool_error")
    assert (error.call, error.kind) == ("b", "bad_json")


def test_a_repeated_id_is_refused_within_a_reply_only(new_stage):
    stage = new_stage()
    first, second = stage.session.turn("", [execute("one", "x"), execute("two", "x")])
    assert (first.is_error, second.is_error) == (False, True)
    (third,) = stage.session.turn("", [execute("three", "x")])
    assert not third.is_error
    assert stage.sandbox.codes == ["one", "three"]


def test_after_a_length_cut_the_last_call_is_not_run(new_stage):
    stage = new_stage()
    replies = stage.session.turn("", [execute("one", "1"), execute("two", "2")], finish="length")
    assert [reply.is_error for reply in replies] == [False, True]
    assert "cut off" in replies[1].text
    assert stage.sandbox.codes == ["one"]
    assert stage.events("tool_error")[0].kind == "cut_off"


def test_five_malformed_calls_in_a_row_end_the_run(new_stage):
    stage = new_stage()
    for _ in range(4):
        stage.session.turn("", [BAD])
    stage.session.turn("", [execute()])
    for _ in range(4):
        stage.session.turn("", [BAD])
    assert stage.session.ended is None
    replies = stage.session.turn("", [BAD, execute("late", "2")])
    assert stage.session.ended is EndReason.MALFORMED
    assert replies[1].is_error
    assert "late" not in stage.sandbox.codes
    assert end_of(stage).reason is EndReason.MALFORMED


def test_three_replies_of_text_in_a_row_end_the_run(new_stage):
    stage = new_stage()
    stage.session.turn("hm")
    stage.session.turn("hm", finish="length")
    stage.session.turn("hm")
    stage.session.turn("", [execute()])
    for _ in range(2):
        stage.session.turn("hm")
    assert stage.session.ended is None
    stage.session.turn("hm")
    assert end_of(stage).reason is EndReason.AGENT_STOP


def test_a_content_filter_is_named_and_disqualifies_nobody(new_stage):
    stage = new_stage()
    for _ in range(3):
        stage.session.turn("", finish="content_filter")
    assert end_of(stage).reason is EndReason.AGENT_STOP
    assert "content filter" in end_of(stage).detail


def test_an_incomplete_submission_is_refused_once(new_stage):
    stage = new_stage()
    stage.write_outputs("case-a")
    (refused,) = stage.session.turn("", [submit()])
    assert refused.is_error
    assert "case-b/organ.nii.gz" in refused.text
    assert "case-a" not in refused.text
    assert stage.session.ended is None
    (final,) = stage.session.turn("", [submit()])
    assert not final.is_error
    first, second = stage.events("submit")
    assert (first.accepted, first.missing_total, second.accepted) == (False, 2, True)
    assert end_of(stage).reason is EndReason.SUBMITTED


def test_a_complete_submission_ends_the_run_and_what_follows_is_not_run(new_stage):
    stage = new_stage()
    stage.write_outputs("case-a", "case-b")
    replies = stage.session.turn("", [submit(), execute("late")])
    assert [reply.is_error for reply in replies] == [False, True]
    assert stage.sandbox.codes == []
    (late,) = stage.session.turn("more", [execute()])
    assert late.is_error
    assert end_of(stage).reason is EndReason.SUBMITTED


def test_a_long_list_of_missing_files_is_cut(new_stage):
    stage = new_stage(cases=[f"k{number:03d}" for number in range(100)])
    (refused,) = stage.session.turn("", [submit()])
    event = stage.events("submit")[0]
    assert (len(event.missing), event.missing_total) == (50, 200)
    assert "and 150 more" in refused.text


def test_the_summary_may_be_anything(new_stage):
    stage = new_stage()
    stage.session.turn("\ud800", [submit(summary="\x00\u202e" + "x" * 10_000)])
    assert stage.events("reply")[0].text == "\ufffd"
    assert len(stage.events("submit")[0].summary) == 10_002


def test_the_last_turn_still_runs_its_calls(new_stage):
    stage = new_stage(limits={"turns": 2})
    stage.session.turn("", [execute("one")])
    assert stage.session.ended is None
    (reply,) = stage.session.turn("", [execute("two")])
    assert not reply.is_error
    assert "0 turns" in reply.text
    assert stage.sandbox.codes == ["one", "two"]
    assert end_of(stage).reason is EndReason.TURNS
    (hit,) = stage.events("limit")
    assert (hit.limit, hit.used, hit.allowed) == ("turns", 2, 2)


def test_tokens_and_cost_end_the_run_after_the_reply_that_was_paid_for(new_stage):
    stage = new_stage(limits={"tokens": 100})
    stage.session.turn("", [execute("one")], usage=Usage(input=90, output=20))
    assert stage.sandbox.codes == ["one"]
    end = end_of(stage)
    assert (end.reason, end.usage.input, end.usage.output) == (EndReason.TOKENS, 90, 20)
    stage = new_stage(limits={"cost_usd": 1.0})
    stage.session.turn("", [execute("one")], cost_usd=1.25)
    end = end_of(stage)
    assert (end.reason, end.cost_usd) == (EndReason.COST, 1.25)


def test_a_call_gets_no_more_time_than_the_run_has_left(new_stage):
    stage = new_stage(limits={"wall_seconds": 100, "call_seconds": 60})

    def slow(code):
        stage.clock.pass_(60)
        return b""

    stage.sandbox.act = slow
    stage.session.turn("", [execute("one", "1"), execute("two", "2"), execute("three", "3")])
    assert stage.sandbox.deadlines == [60, 40]
    assert stage.sandbox.codes == ["one", "two"]
    end = end_of(stage)
    assert (end.reason, end.working_seconds) == (EndReason.TIME, 120)


def test_a_reply_after_the_time_is_recorded_but_not_run(new_stage):
    stage = new_stage(limits={"wall_seconds": 100})
    stage.clock.pass_(101)
    (reply,) = stage.session.turn("late", [execute()], usage=Usage(input=7))
    assert reply.is_error
    assert "time" in reply.text
    assert stage.sandbox.codes == []
    assert stage.events("reply")[0].text == "late"
    assert end_of(stage).usage.input == 7


def test_a_late_submit_counts_as_time(new_stage):
    stage = new_stage(limits={"wall_seconds": 100})
    stage.write_outputs("case-a", "case-b")
    stage.clock.pass_(101)
    (reply,) = stage.session.turn("", [submit()])
    assert reply.is_error
    assert end_of(stage).reason is EndReason.TIME


def test_a_dead_sandbox_ends_the_run_at_once(new_stage):
    def die(code):
        raise SandboxDead("exit code 137")

    stage = new_stage(act=die)
    replies = stage.session.turn("", [execute("one", "1"), execute("two", "2")])
    assert all(reply.is_error for reply in replies)
    assert stage.sandbox.codes == ["one"]
    end = end_of(stage)
    assert end.reason is EndReason.INFRA_ERROR
    assert "exit code 137" in end.detail


def test_only_the_first_end_counts(new_stage):
    stage = new_stage()
    stage.session.end(EndReason.AGENT_STOP, "first")
    stage.session.end(EndReason.TIME, "second")
    assert end_of(stage).detail == "first"


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (ExecResult(3, b"oops", 4, 0, 1.0), "exit code 3"),
        (ExecResult(0, b"", 0, 0, 1.0), "no output"),
        (ExecResult(None, b"part", 4, 0, 60.0, timed_out=True), "limit of one call"),
        (ExecResult(137, b"", 0, 0, 1.0, oom=True), "Out of memory"),
        (ExecResult(None, b"", 0, 0, 1.0, disk_full=True), "disk is full"),
    ],
)
def test_the_agent_is_told_in_words(new_stage, result, says):
    stage = new_stage(act=lambda code: result, limits={"call_seconds": 60})
    (reply,) = stage.session.turn("", [execute()])
    assert says in reply.text
    assert not reply.is_error
    event = stage.events("exec")[0]
    assert (event.exit_code, event.timed_out, event.oom, event.disk_full) == (
        result.exit_code,
        result.timed_out,
        result.oom,
        result.disk_full,
    )


def test_a_flood_is_cut_for_the_agent_and_bounded_in_the_trace(new_stage):
    flood = "é".encode() * 32_768
    stage = new_stage(act=lambda code: ExecResult(0, flood, 10**9, 10**9 - len(flood), 1.0))
    (reply,) = stage.session.turn("", [execute()])
    assert len(reply.text.encode()) < 17 * 1024
    assert "\ufffd" not in reply.text
    assert f"{10**9 - 16_384} bytes left out" in reply.text
    event = stage.events("exec")[0]
    assert event.output == flood.decode()
    assert event.output_bytes == 10**9


def test_bytes_that_are_no_text(new_stage):
    stage = new_stage(act=lambda code: b"\xff\x00\x1b[2J\xf0\x9f\x92")
    (reply,) = stage.session.turn("", [execute()])
    assert "\ufffd\x00\x1b[2J\ufffd" in reply.text
    assert "\x1b" not in stage.trace_path.read_text()


def test_five_megabytes_of_arguments_are_answered_and_bounded_in_the_trace(new_stage):
    stage = new_stage()
    code = json.dumps({"language": "python", "code": "#" * (5 << 20)})
    (reply,) = stage.session.turn("", [Call(id="c", name="execute_code", arguments=code)])
    assert reply.is_error
    assert "1 MiB" in reply.text
    assert stage.events("tool_error")[0].kind == "too_large"
    assert stage.trace_path.stat().st_size < 1.1 * (1 << 20)


def test_files_written_during_a_call_are_in_its_event(new_stage):
    stage = new_stage()

    def write(code):
        stage.write_outputs("case-b")
        return b""

    stage.sandbox.act = write
    stage.session.turn("", [execute()])
    (files,) = stage.events("files")
    assert files.new_cases == ("case-b",)
    assert [change.path for change in files.changes] == [
        "outputs/case-b/lesion.nii.gz",
        "outputs/case-b/organ.nii.gz",
    ]


def test_a_turn_costs_little_beyond_its_output(new_stage):
    stage = new_stage(act=lambda code: b"o" * 500)
    code = "import numpy as np\n" * 10
    before = stage.trace_path.stat().st_size
    for turn in range(10):
        stage.session.turn(
            "I look at it.", [execute(code, f"call_{turn}")], usage=Usage(input=20_000, output=300)
        )
    per_turn = (stage.trace_path.stat().st_size - before) / 10
    assert per_turn - 500 - len(code) <= 1024
