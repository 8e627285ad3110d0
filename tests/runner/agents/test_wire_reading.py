import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.agents.wire import Completion, ErrorBody, Unreadable, read_events, read_json


def events(*bodies, done=True):
    lines = [f"data: {json.dumps(body)}\n\n" for body in bodies] + ["data: [DONE]\n\n"] * done
    return "".join(lines).encode()


def delta(finish=None, **fields):
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def part(name=None, arguments=None, **fields):
    return {**fields, "function": {"name": name, "arguments": arguments}}


def test_calls_that_come_in_turns_are_kept_apart():
    read = read_events(
        events(
            delta(tool_calls=[part("f", '{"a"', index=0, id="x"), part("g", "{", index=1, id="y")]),
            delta(tool_calls=[part(None, "}", index=1), part(None, ":1}", index=0)]),
            delta("tool_calls"),
        )
    )
    assert [(made.id, made.name, made.arguments) for made in read.calls] == [
        ("x", "f", '{"a":1}'),
        ("y", "g", "{}"),
    ]


def test_calls_without_an_index_begin_with_their_name():
    read = read_events(
        events(
            delta(tool_calls=[part("f", "{", id="x")]),
            delta(tool_calls=[part(None, "}")]),
            delta(tool_calls=[part("g", "{}", id="y"), part("h", "{}")]),
            delta("stop"),
        )
    )
    assert [(made.id, made.name, made.arguments) for made in read.calls] == [
        ("x", "f", "{}"),
        ("y", "g", "{}"),
        ("call_2", "h", "{}"),
    ]


def test_content_in_parts_and_refusals():
    message = {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}
    assert read_json(json.dumps({"choices": [{"message": message}]}).encode()).text == "ab"
    message = {"content": None, "refusal": "I cannot"}
    assert read_json(json.dumps({"choices": [{"message": message}]}).encode()).text == "I cannot"


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "max_output_tokens"])
def test_names_of_the_length_limit(reason):
    assert read_events(events(delta(reason, content="x"))).finish == "length"


def test_usage_is_none_only_when_it_is_missing():
    choices = [{"message": {"content": "x"}}]
    assert read_json(json.dumps({"choices": choices}).encode()).usage is None
    counted = {"prompt_tokens": 5, "completion_tokens": None, "prompt_tokens_details": None}
    read = read_json(json.dumps({"choices": choices, "usage": counted}).encode())
    assert (read.usage.input, read.usage.output, read.usage.cached) == (5, 0, 0)
    huge = {"prompt_tokens": 10**30, "completion_tokens": -(10**30)}
    read = read_json(json.dumps({"choices": choices, "usage": huge}).encode())
    assert (read.usage.input, read.usage.output) == (10**12, 0)


def test_error_codes_that_are_no_status():
    for code, status in (("rate_limited", None), (99999, None), (502, 502), ("429", 429), (None, None)):
        with pytest.raises(ErrorBody) as caught:
            read_json(json.dumps({"error": {"code": code, "message": "m"}}).encode())
        assert caught.value.status == status


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "delta",
                    "tool_calls",
                    "function",
                    "arguments",
                    "usage",
                    "error",
                    "content",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(json_values)
def test_any_json_is_a_reply_or_a_named_failure(value):
    for read, body in ((read_json, json.dumps(value).encode()), (read_events, events(value))):
        with contextlib.suppress(Unreadable, ErrorBody):
            assert isinstance(read(body), Completion)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_named_failure(body):
    for read in (read_json, read_events):
        with pytest.raises((Unreadable, ErrorBody)):
            read(body)
