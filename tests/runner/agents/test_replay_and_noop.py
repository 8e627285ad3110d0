import json

import pytest

from evaluator.trace import Call, EndReason, Usage
from runner.agents import load_agent
from runner.agents.noop import NoopAgent
from runner.agents.replay import ReplayAgent
from runner.errors import UsageProblem


def execute(code, call_id):
    return Call(id=call_id, name="execute_code", arguments=json.dumps({"language": "bash", "code": code}))


def without_time(event):
    return event.model_copy(update={"t": 0, "prev": "", "wall_seconds": 0, "working_seconds": 0})


def test_noop_submits_twice(new_stage):
    stage = new_stage()
    NoopAgent().run(stage.session)
    assert [event.type for event in stage.events()] == ["reply", "submit", "reply", "submit", "end"]
    assert stage.session.ended is EndReason.SUBMITTED
    assert load_agent("noop").name == "noop"


def test_a_replay_does_the_same_again(new_stage):
    def act(code):
        new_stage.current.write_outputs(code)
        return code.encode()

    def stage_():
        new_stage.current = new_stage(act=act)
        return new_stage.current

    first = stage_()
    first.session.turn("one", [execute("case-a", "1"), execute("x", "1")], usage=Usage(input=5), cost_usd=0.1)
    first.session.turn("words alone")
    first.session.turn("", [Call(id="b", name="execute_code", arguments="{", as_value=True)])
    first.session.turn(
        "", [execute("case-b", "2"), execute("cut", "3")], finish="length", seconds=2, waited=1
    )
    NoopAgent().run(first.session)

    second = stage_()
    ReplayAgent("again", first.trace_path).run(second.session)
    assert [without_time(event) for event in second.events()] == [
        without_time(event) for event in first.events()
    ]


def test_a_replay_of_half_a_run_says_so(new_stage):
    first, second = new_stage(), new_stage()
    first.session.turn("", [execute("one", "1")])
    ReplayAgent("again", first.trace_path).run(second.session)
    assert second.sandbox.codes == ["one"]
    assert second.session.ended is EndReason.AGENT_STOP
    assert "trace ends here" in second.session.detail


def test_a_replay_stops_at_its_own_limits(new_stage):
    first, second = new_stage(), new_stage(limits={"turns": 1})
    for number in range(3):
        first.session.turn("", [execute(f"{number}", "1")])
    ReplayAgent("again", first.trace_path).run(second.session)
    assert second.sandbox.codes == ["0"]
    assert second.session.ended is EndReason.TURNS


def test_a_profile_names_its_trace_relative_to_itself(new_stage, tmp_path):
    stage = new_stage()
    stage.session.turn("hello")
    (tmp_path / "kept.jsonl").write_bytes(stage.trace_path.read_bytes())
    profiles = tmp_path / "mine.yaml"
    profiles.write_text("agents: {again: {kind: replay, trace: kept.jsonl}}")
    assert load_agent("again", profiles).name == "again"


@pytest.mark.parametrize(
    ("content", "says"), [(None, "No such file"), (b"", "no reply"), (b"x\n{}\n", "cannot replay")]
)
def test_what_cannot_be_replayed_is_one_line(tmp_path, content, says):
    path = tmp_path / "t.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageProblem, match=says):
        ReplayAgent("again", path)


@pytest.mark.parametrize(
    "wrong",
    [
        '"usage": {"input": -1}',
        '"usage": {"output": -1}',
        '"cost_usd": NaN',
        '"cost_usd": -1',
        '"cost_usd": 1e400',
        '"cost_usd": 1e308',
        '"seconds": NaN',
        '"waited": Infinity',
    ],
)
def test_a_recorded_meter_that_cannot_be_is_refused_before_anything_runs(tmp_path, wrong):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"type": "reply", "turn": 1, ' + wrong + "}\n")
    with pytest.raises(UsageProblem, match=r"cannot replay: .*trace.jsonl:1"):
        ReplayAgent("odd", trace)
