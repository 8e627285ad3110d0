import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.trace import Call
from runner.tools import TOOL_SCHEMAS, ExecuteCode, Malformed, SubmitResults, parse_call


def call(arguments, name="execute_code", **more):
    return Call(id="c1", name=name, arguments=arguments, **more)


GOOD = json.dumps({"language": "python", "code": "print(1)"})


def test_a_whole_call_is_read():
    assert parse_call(call(GOOD)) == ExecuteCode("c1", "python", "print(1)")
    assert parse_call(call('{"summary": "done"}', "submit_results")) == SubmitResults("c1", "done")
    assert parse_call(call(' {"language":"bash","code":""}\n')) == ExecuteCode("c1", "bash", "")


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ("", "bad_json", "not JSON"),
        ('{}""', "bad_json", "not JSON"),
        (GOOD[:-2], "bad_json", "not JSON"),
        (GOOD + GOOD, "bad_json", "not JSON"),
        ("[" * 100_000, "bad_json", "nested"),
        ('[{"language": "bash", "code": ""}]', "not_object", "a list"),
        ("null", "not_object", "null"),
        (json.dumps(GOOD), "not_object", "the text"),
        ("{}", "bad_arguments", "missing: language, code"),
        ('{"language": "python"}', "bad_arguments", "missing: code"),
        ('{"language": "r", "code": "1"}', "bad_arguments", "'r'"),
        ('{"language": "Python", "code": "1"}', "bad_arguments", "'Python'"),
        ('{"language": "python", "code": 1}', "bad_arguments", "code is a number"),
        ('{"language": "python", "code": ["a"]}', "bad_arguments", "code is a list"),
        ('{"language": "python", "code": "", "timeout": 5}', "bad_arguments", "not known: timeout"),
        ('{"language": "python", "code": "a", "code": "b"}', "bad_arguments", "'code' is given twice"),
        ('{"language": "python", "code": "\\ud800"}', "bad_arguments", "surrogate"),
        ("x" * (5 << 20), "too_large", "1 MiB"),
        (json.dumps({"language": "bash", "code": "é" * (1 << 19)}, ensure_ascii=False), "too_large", "1 MiB"),
    ],
)
def test_everything_else_is_refused_by_name(arguments, kind, says):
    refused = parse_call(call(arguments))
    assert isinstance(refused, Malformed)
    assert refused.kind == kind
    assert says in refused.message
    assert len(refused.message) < 500


def test_envelopes():
    assert parse_call(call(GOOD, "run_shell")).kind == "unknown_tool"
    assert parse_call(call(GOOD, "")).kind == "unknown_tool"
    assert parse_call(call(GOOD), {"c1"}).kind == "duplicate_id"
    assert parse_call(call(GOOD, as_value=True)).kind == "bad_arguments"
    assert parse_call(call(GOOD), cut_off=True).kind == "cut_off"
    assert isinstance(parse_call(call(GOOD), {"c0"}), ExecuteCode)


@given(st.text(max_size=60) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_no_text_is_run_by_accident(arguments):
    assert isinstance(parse_call(call(arguments)), Malformed)


def test_the_schemas_and_the_reader_agree():
    for schema in TOOL_SCHEMAS:
        function = schema["function"]
        parameters = function["parameters"]
        values = {name: spec.get("enum", ["text"])[0] for name, spec in parameters["properties"].items()}
        assert parameters["required"] == list(values)
        assert not isinstance(parse_call(call(json.dumps(values), function["name"])), Malformed)
        extended = json.dumps({**values, "more": 1})
        assert isinstance(parse_call(call(extended, function["name"])), Malformed)
