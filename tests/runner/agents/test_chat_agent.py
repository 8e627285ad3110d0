import json
import re
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from scripted_server import Answer, call, execute, failure, html, streamed, submit, usage, whole

from evaluator.trace import EndReason
from runner.errors import UsageProblem

KEY = "sk-test-0123456789abcdef"


def end_of(stage):
    (end,) = stage.events("end")
    return end


def run(agent, stage):
    agent.run(stage.session)
    assert KEY not in stage.trace_path.read_text()
    assert KEY not in stage.session.detail
    return end_of(stage)


def tool_messages(request):
    return [message for message in request.body["messages"] if message["role"] == "tool"]


def assert_history_is_valid(request):
    """What strict endpoints ask for: one answer a call, in order, under its own id; arguments are objects."""
    waiting = []
    for message in request.body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        if message["role"] == "assistant":
            calls = message.get("tool_calls", [])
            assert calls or message["content"]
            waiting = [made["id"] for made in calls]
            assert len(set(waiting)) == len(waiting)
            for made in calls:
                assert isinstance(json.loads(made["function"]["arguments"]), dict)
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made["function"]["name"])
    assert not waiting


# --- the loop -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [whole, streamed])
def test_happy_path(new_stage, serve, chat, form):
    server = serve(form("I look.", [execute("print(1)")], counted=usage(1000, 50, 400)), form("", [submit()]))
    stage = new_stage()
    stage.sandbox.act = lambda code: (stage.write_outputs("case-a", "case-b"), b"it ran")[1]
    end = run(chat(server, stream=form is streamed), stage)
    assert end.reason is EndReason.SUBMITTED
    assert stage.sandbox.codes == ["print(1)"]
    first, second = server.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["model"] == "test/model"
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["execute_code", "submit_results"]
    assert [message["role"] for message in first.body["messages"]] == ["system", "user"]
    assert first.body["messages"][1]["content"] == stage.session.brief.text
    assert "it ran" in tool_messages(second)[0]["content"]
    assert_history_is_valid(second)
    reply = stage.events("reply")[0]
    assert (reply.text, reply.usage.input, reply.usage.output, reply.usage.cached) == (
        "I look.",
        1000,
        50,
        400,
    )
    assert reply.cost_usd == pytest.approx((600 * 2 + 400 * 0.5 + 50 * 10) / 1e6)
    assert end.cost_usd == pytest.approx(sum(event.cost_usd for event in stage.events("reply")))


@pytest.mark.parametrize("form", [whole, streamed])
def test_parallel_calls(new_stage, serve, chat, form):
    server = serve(
        form("", [execute("one", "a"), execute("two", "b", "bash"), execute("three", "c")]),
        form("", [submit("x")]),
        form("", [submit("y")]),
    )
    stage = new_stage()
    assert run(chat(server, stream=form is streamed), stage).reason is EndReason.SUBMITTED
    assert stage.sandbox.codes == ["one", "two", "three"]
    answers = tool_messages(server.requests[1])
    assert [answer["tool_call_id"] for answer in answers] == ["a", "b", "c"]
    assert_history_is_valid(server.requests[2])
    assert "case-a/organ.nii.gz" in tool_messages(server.requests[2])[-1]["content"]


@pytest.mark.parametrize("form", [whole, streamed])
def test_a_reply_cut_at_its_length(new_stage, serve, chat, form):
    cut = call("execute_code", '{"language": "python", "code": "print(', "b")
    server = serve(
        form("", [execute("whole", "a"), cut], finish="length"),
        form("Let me think", finish="length"),
        form("", [submit("x")]),
        form("", [submit("y")]),
    )
    stage = new_stage()
    run(chat(server, stream=form is streamed), stage)
    assert stage.sandbox.codes == ["whole"]
    assert "cut off" in tool_messages(server.requests[1])[1]["content"]
    note = server.requests[2].body["messages"][-1]
    assert note["role"] == "user"
    assert "cut off" in note["content"]
    assert_history_is_valid(server.requests[3])


def test_text_only_replies_get_a_nudge_and_then_end_the_run(new_stage, serve, chat):
    server = serve(*[whole("I am done.")] * 3)
    stage = new_stage()
    assert run(chat(server), stage).reason is EndReason.AGENT_STOP
    assert len(server.requests) == 3
    assert "no tool call" in server.requests[1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (call("execute_code", '{}""'), "bad_json"),
        (call("execute_code", '{"language": "python", "code'), "bad_json"),
        (call("execute_code", "[1]"), "not_object"),
        (call("execute_code", "{}"), "bad_arguments"),
        (call("run", {"code": "x"}), "unknown_tool"),
        (call("naïve tool " * 20, {}), "unknown_tool"),
        ({"id": "c1", "type": "function", "function": {"name": "execute_code"}}, "bad_json"),
        ({"id": "c1", "type": "function"}, "unknown_tool"),
        (
            {
                "id": "c1",
                "function": {"name": "execute_code", "arguments": {"language": "bash", "code": "x"}},
            },
            "bad_arguments",
        ),
        (call("execute_code", {"language": "bash", "code": "#" * (5 << 20)}), "too_large"),
    ],
)
def test_malformed_calls_are_answered_and_the_run_goes_on(new_stage, serve, chat, bad, kind):
    server = serve(whole("", [bad]), whole("", [execute("good", "g")]), whole("", [submit("x"), submit("y")]))
    stage = new_stage()
    assert run(chat(server), stage).reason is EndReason.SUBMITTED
    (error,) = stage.events("tool_error")
    assert error.kind == kind
    assert stage.sandbox.codes == ["good"]
    assert "not run" in tool_messages(server.requests[1])[0]["content"]
    assert_history_is_valid(server.requests[2])
    assert len(json.dumps(server.requests[2].body)) < 200_000


def test_a_streamed_call_with_arguments_as_a_value(new_stage, serve, chat):
    part = {"index": 0, "id": "c1", "function": {"name": "execute_code", "arguments": {"code": "x"}}}
    events = [
        {"choices": [{"delta": {"tool_calls": [part]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    server = serve(Answer(body, content_type="text/event-stream"), streamed("", [submit("x"), submit("y")]))
    stage = new_stage()
    run(chat(server, stream=True), stage)
    assert stage.events("tool_error")[0].kind == "bad_arguments"


def test_two_calls_with_one_id(new_stage, serve, chat):
    server = serve(
        whole("", [execute("one", "same"), execute("two", "same")]),
        whole("", [submit("x"), submit("y")]),
    )
    stage = new_stage()
    run(chat(server), stage)
    assert stage.sandbox.codes == ["one"]
    assert stage.events("tool_error")[0].kind == "duplicate_id"
    assert_history_is_valid(server.requests[1])


def test_ids_that_are_left_out_are_filled_in(new_stage, serve, chat):
    nameless = [call("execute_code", {"language": "bash", "code": code}, None) for code in ("one", "two")]
    server = serve(whole("", nameless), whole("", [submit("x"), submit("y")]))
    stage = new_stage()
    run(chat(server), stage)
    assert stage.sandbox.codes == ["one", "two"]
    assert_history_is_valid(server.requests[1])


def test_malformed_without_end_ends(new_stage, serve, chat):
    server = serve(*[whole("", [call("execute_code", "{")])] * 6)
    stage = new_stage()
    assert run(chat(server), stage).reason is EndReason.MALFORMED
    assert len(server.requests) == 5


def test_no_request_after_a_limit(new_stage, serve, chat):
    server = serve(*[whole("", [execute("x")], counted=usage(600, 10))] * 5)
    stage = new_stage(limits={"tokens": 1000})
    assert run(chat(server), stage).reason is EndReason.TOKENS
    assert len(server.requests) == 2


def test_the_cost_limit(new_stage, serve, chat):
    server = serve(*[whole("", [execute("x")], counted=usage(1_000_000, 0))] * 5)
    stage = new_stage(limits={"cost_usd": 3.0, "tokens": 10**9})
    assert run(chat(server), stage).reason is EndReason.COST
    assert len(server.requests) == 2


def test_a_cost_limit_without_prices_is_refused(new_stage, serve, chat):
    server = serve()
    stage = new_stage(limits={"cost_usd": 3.0})
    with pytest.raises(UsageProblem, match="needs prices"):
        chat(server, prices=None).run(stage.session)
    assert server.requests == []


def test_tokens_are_estimated_when_the_endpoint_does_not_count(new_stage, serve, chat):
    server = serve(*[whole("x" * 3000, [execute("x")], counted={})] * 3)
    stage = new_stage(limits={"turns": 1})
    run(chat(server), stage)
    counted = stage.events("reply")[0].usage
    assert counted.input == 0  # an empty usage says zero; only a missing one is estimated
    answer = json.loads(whole("x" * 3000, [execute("x")]).body)
    del answer["usage"]
    server = serve(Answer(json.dumps(answer).encode()))
    stage = new_stage(limits={"turns": 1})
    run(chat(server), stage)
    counted = stage.events("reply")[0].usage
    assert counted.input > 1000
    assert counted.output > 1000


def test_decoding_and_reasoning_are_handed_through(new_stage, serve, chat):
    thought = [{"type": "reasoning.encrypted", "data": "abc"}]
    server = serve(
        whole("", [execute("x")], reasoning_details=thought), whole("", [submit("x"), submit("y")])
    )
    stage = new_stage()
    run(
        chat(server, decoding={"temperature": 0, "reasoning": {"effort": "low"}}, max_output_tokens=500),
        stage,
    )
    body = server.requests[1].body
    assert (body["temperature"], body["reasoning"], body["max_tokens"]) == (0, {"effort": "low"}, 500)
    assert body["messages"][2]["reasoning_details"] == thought


def test_lone_surrogates_from_the_model(new_stage, serve, chat):
    code = '{"language": "python", "code": "\\ud800"}'
    body = whole("PLACE", [call("execute_code", code)]).body.replace(b"PLACE", rb"a\ud83db")
    server = serve(Answer(body), whole("", [submit("x"), submit("y")]))
    stage = new_stage()
    run(chat(server), stage)
    assert stage.events("reply")[0].text == "a\ufffdb"
    assert stage.events("tool_error")[0].kind == "bad_arguments"


# --- a provider in trouble --------------------------------------------------------------------------------


def finish():
    return whole("", [submit("x"), submit("y")])


def test_retry_after_in_seconds_is_waited_for(new_stage, serve, chat):
    server = serve(failure(429, headers={"Retry-After": "0.4"}), finish())
    stage = new_stage(clock=time.monotonic)
    agent = chat(server, sleep=time.sleep, retries={"first_wait": 0.01})
    assert run(agent, stage).reason is EndReason.SUBMITTED
    first, second = server.requests
    assert second.at - first.at >= 0.4
    (error,) = stage.events("provider_error")
    assert (error.status, error.attempt, error.wait) == (429, 1, 0.4)
    reply = stage.events("reply")[0]
    assert reply.waited == pytest.approx(0.4)
    assert reply.seconds >= 0.4
    end = end_of(stage)
    assert end.wall_seconds - end.working_seconds >= 0.4


def test_retry_after_as_a_date_is_waited_for(new_stage, serve, chat):
    moment = datetime.now(UTC) + timedelta(seconds=2)
    server = serve(failure(503, headers={"Retry-After": format_datetime(moment, usegmt=True)}), finish())
    agent = chat(server, sleep=time.sleep, retries={"first_wait": 0.01})
    assert run(agent, new_stage(clock=time.monotonic)).reason is EndReason.SUBMITTED
    assert datetime.now(UTC) >= moment.replace(microsecond=0)


def test_a_wait_beyond_all_patience_ends_the_run_at_once(new_stage, serve, chat):
    server = serve(failure(429, headers={"Retry-After": "3600"}))
    stage = new_stage()
    agent = chat(server)
    assert run(agent, stage).reason is EndReason.PROVIDER_ERROR
    assert agent.naps == []
    assert len(server.requests) == 1


def test_bursts_of_500_are_outlasted_with_growing_waits(new_stage, serve, chat):
    server = serve(failure(500), failure(502), failure(529), failure(503), finish())
    stage = new_stage()
    agent = chat(server, retries={"first_wait": 2})
    assert run(agent, stage).reason is EndReason.SUBMITTED
    assert agent.naps == [1.5, 3, 6, 12]
    assert [error.attempt for error in stage.events("provider_error")] == [1, 2, 3, 4]
    assert stage.events("reply")[0].turn == 1


def test_failed_tries_are_not_working_time_but_the_good_one_is(new_stage, serve, chat):
    stage = new_stage()

    def takes(seconds, answer):
        return lambda request: (stage.clock.pass_(seconds), answer)[1]

    server = serve(takes(50, failure(500)), takes(60, html()), takes(7, finish()))
    end = run(chat(server), stage)
    assert (end.wall_seconds, end.working_seconds) == (117, 7)
    reply = stage.events("reply")[0]
    assert reply.seconds == 117


def test_tries_are_bounded(new_stage, serve, chat):
    server = serve(*[failure(500, "down")] * 9)
    stage = new_stage()
    end = run(chat(server, retries={"tries": 3}), stage)
    assert end.reason is EndReason.PROVIDER_ERROR
    assert "down" in end.detail
    assert len(server.requests) == 3
    assert [error.wait > 0 for error in stage.events("provider_error")] == [True, True, False]


def test_the_wait_of_a_turn_is_bounded(new_stage, serve, chat):
    server = serve(*[failure(500)] * 9)
    agent = chat(server, retries={"first_wait": 10, "total_wait": 40})
    assert run(agent, new_stage()).reason is EndReason.PROVIDER_ERROR
    assert agent.naps == [7.5, 15]


def test_the_wait_of_a_run_is_bounded(new_stage, serve, chat):
    server = serve(*[failure(500), whole("", [execute("x")])] * 9)
    stage = new_stage(limits={"wall_seconds": 20})
    agent = chat(server, sleep=stage.clock.pass_, retries={"first_wait": 8})
    end = run(agent, stage)
    assert end.reason is EndReason.PROVIDER_ERROR
    assert (end.wall_seconds, end.working_seconds) == (18, 0)
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    "trouble",
    [
        html(),
        html(502),
        Answer(b""),
        Answer(b"null"),
        Answer(b'{"choices": []}'),
        Answer(b'{"choices": [{"message": null}]}'),
        Answer(b'{"choices": "x"}'),
        Answer(b"[" * 100_000),
        Answer(whole("x" * 500).body, cut=200),
        Answer(b"", cut=0),
        Answer(b'{"error": {"code": 502, "message": "upstream"}}'),
        Answer(b'{"error": "overloaded"}'),
        Answer(
            b'{"choices": [{"message": {"content": "x"}, "error": {"code": 502, "message": "upstream"}}]}'
        ),
        failure(408),
    ],
    ids=lambda answer: f"{answer.status}-{len(answer.body)}-{answer.cut}",
)
def test_passing_trouble_is_tried_again(new_stage, serve, chat, trouble):
    server = serve(trouble, finish())
    stage = new_stage()
    assert run(chat(server), stage).reason is EndReason.SUBMITTED
    assert len(stage.events("provider_error")) == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize("place", ["inside an event", "between events", "clean end without finish"])
def test_a_cut_stream_is_tried_again_and_nothing_of_it_is_run(new_stage, serve, chat, place):
    answer = streamed("I think", [execute("half")])
    lines = answer.body.split(b"\n\n")
    if place == "inside an event":
        answer.cut = len(b"\n\n".join(lines[:7])) - 9
    elif place == "between events":
        answer.cut = len(b"\n\n".join(lines[:6])) + 2
    else:
        answer.body = b"\n\n".join(lines[:-4]) + b"\n\n"
    server = serve(answer, streamed("", [submit("x"), submit("y")]))
    stage = new_stage()
    assert run(chat(server, stream=True), stage).reason is EndReason.SUBMITTED
    assert stage.sandbox.codes == []
    assert len(stage.events("provider_error")) == 1


def test_an_error_inside_a_stream(new_stage, serve, chat):
    body = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
    body += b'data: {"error":{"code":429,"message":"slow down"}}\n\n'
    server = serve(Answer(body, content_type="text/event-stream"), streamed("", [submit("x"), submit("y")]))
    stage = new_stage()
    assert run(chat(server, stream=True), stage).reason is EndReason.SUBMITTED
    assert stage.events("provider_error")[0].status == 429


def test_a_stream_without_its_last_line_is_whole_when_the_reply_is(new_stage, serve, chat):
    server = serve(streamed("", [submit("x"), submit("y")], done=False))
    assert run(chat(server, stream=True), new_stage()).reason is EndReason.SUBMITTED


@pytest.mark.parametrize("delay", [{"delay": 1.0}, {"drip": 0.05}])
def test_a_slow_answer_is_given_up(new_stage, serve, chat, delay):
    server = serve(Answer(whole("x").body, **delay), finish())
    stage = new_stage()
    started = time.monotonic()
    assert run(chat(server, request_seconds=0.3), stage).reason is EndReason.SUBMITTED
    assert time.monotonic() - started < 2
    assert "in time" in stage.events("provider_error")[0].message or "within" in (
        stage.events("provider_error")[0].message
    )


def test_a_request_gets_no_more_than_the_working_time(new_stage, serve, chat):
    server = serve(Answer(whole("x").body, delay=3.0))
    stage = new_stage(limits={"wall_seconds": 1}, clock=time.monotonic)
    end = run(chat(server), stage)
    assert end.reason is EndReason.TIME
    assert end.wall_seconds < 2.5
    assert stage.events("provider_error") == []


def test_nobody_listens(new_stage, serve, chat):
    server = serve()
    agent = chat(server, base_url="http://127.0.0.1:9/v1", retries={"tries": 2})
    end = run(agent, new_stage())
    assert end.reason is EndReason.PROVIDER_ERROR
    assert "connection" in end.detail.lower()


@pytest.mark.parametrize(
    "answer",
    [
        failure(401, f"Incorrect API key provided: {KEY}"),
        failure(402, "more credits needed"),
        failure(403),
        failure(404, "no such model"),
        failure(422),
        failure(429, "You exceeded your current quota", code="insufficient_quota"),
        Answer(b'{"error": {"code": 401, "message": "bad key"}}'),
    ],
    ids=lambda answer: str(answer.status),
)
def test_what_no_retry_can_cure_ends_the_run_at_once(new_stage, serve, chat, answer):
    server = serve(answer)
    stage = new_stage()
    agent = chat(server)
    end = run(agent, stage)
    assert end.reason is EndReason.PROVIDER_ERROR
    assert len(server.requests) == 1
    assert agent.naps == []
    assert len(stage.events("provider_error")) == 1


def test_the_key_is_nowhere_but_in_the_header(new_stage, serve, chat, capfd, caplog):
    caplog.set_level("DEBUG")
    server = serve(failure(500, f"echo {KEY}"), failure(401, f"echo {KEY}"))
    stage = new_stage()
    agent = chat(server)
    run(agent, stage)
    assert "[key]" in stage.events("provider_error")[0].message
    assert KEY not in json.dumps([request.body for request in server.requests])
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err + caplog.text + repr(agent)


# --- a history that grows ---------------------------------------------------------------------------------

OVERFLOW = failure(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")


def test_old_outputs_are_left_out_before_the_context_is_full(new_stage, serve, chat):
    server = serve(*[whole("", [execute("x", f"c{n}")], counted={}) for n in range(9)], finish())
    stage = new_stage(act=lambda code: b"o" * 10_000)
    assert run(chat(server, context_tokens=32_000), stage).reason is EndReason.SUBMITTED
    elided = [name for event in stage.events("elided") for name in event.calls]
    assert elided[:2] == ["c0", "c1"]
    assert "c8" not in elided
    last = tool_messages(server.requests[-1])
    assert last[0]["content"].startswith("[left out")
    assert len(last[-1]["content"]) > 10_000
    assert all(event.output == "o" * 10_000 for event in stage.events("exec"))
    assert_history_is_valid(server.requests[-1])


def test_the_provider_finds_the_history_too_long(new_stage, serve, chat):
    server = serve(*[whole("", [execute("x", f"c{n}")]) for n in range(5)], OVERFLOW, finish())
    stage = new_stage(act=lambda code: b"o" * 5000)
    agent = chat(server)
    assert run(agent, stage).reason is EndReason.SUBMITTED
    assert stage.events("elided")[0].calls[0] == "c0"
    assert agent.naps == []
    sizes = [len(json.dumps(request.body)) for request in server.requests]
    assert sizes[6] < 0.8 * sizes[5]


def test_a_history_that_cannot_shrink_ends_with_tokens(new_stage, serve, chat):
    server = serve(OVERFLOW)
    stage = new_stage()
    end = run(chat(server), stage)
    assert end.reason is EndReason.TOKENS
    assert "context" in end.detail
    assert len(server.requests) == 1


def test_overflow_without_end_ends(new_stage, serve, chat):
    server = serve(*[whole("", [execute("x", f"c{n}")]) for n in range(6)], *[OVERFLOW] * 20)
    stage = new_stage(act=lambda code: b"o" * 8000)
    assert run(chat(server), stage).reason is EndReason.TOKENS
    elided = [name for event in stage.events("elided") for name in event.calls]
    assert sorted(elided) == [f"c{n}" for n in range(6)]
