"""The two tools that every agent has on every task, and the strict reading of what a model wrote to call
them.

Arguments are never guessed: what is not exactly a call is answered with an error that the model can read,
and nothing is run.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from evaluator.trace import Call

EXECUTE_CODE = "execute_code"
SUBMIT_RESULTS = "submit_results"
MAX_ARGUMENT_BYTES = 1024 * 1024

Language = Literal["python", "bash"]
ErrorKind = Literal[
    "bad_json", "not_object", "unknown_tool", "duplicate_id", "bad_arguments", "too_large", "cut_off"
]

TOOL_SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": EXECUTE_CODE,
            "description": "Run code in your sandbox, in /workspace. Every call is a fresh process: keep "
            "what must last in files. Returns the exit code and the output (stdout and stderr together; the "
            "middle of a long output is left out).",
            "parameters": {
                "type": "object",
                "properties": {
                    "language": {"type": "string", "enum": ["python", "bash"]},
                    "code": {"type": "string", "description": "The whole program"},
                },
                "required": ["language", "code"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": SUBMIT_RESULTS,
            "description": "Hand in what is in /workspace/outputs and end the run. An incomplete submission "
            "is refused once, with the list of what is missing; the next call is final.",
            "parameters": {
                "type": "object",
                "properties": {
                    "summary": {"type": "string", "description": "What was done and what to know about it"}
                },
                "required": ["summary"],
                "additionalProperties": False,
            },
        },
    },
]

NUDGE = (
    f"Your reply has no tool call, so nothing was run. Go on with {EXECUTE_CODE}; "
    f"when the outputs are ready, call {SUBMIT_RESULTS}."
)
"""What the model is told after a reply of text alone."""


@dataclass(frozen=True)
class ExecuteCode:
    id: str
    language: Language
    code: str


@dataclass(frozen=True)
class SubmitResults:
    id: str
    summary: str


@dataclass(frozen=True)
class Malformed:
    """A call that is not run. ``message`` is for the model: what was expected and what was found."""

    id: str
    kind: ErrorKind
    message: str


class _Refused(Exception):
    """Why a call is malformed, on its way to :func:`parse_call`."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


def parse_call(
    call: Call, earlier_ids: Collection[str] = (), *, cut_off: bool = False
) -> ExecuteCode | SubmitResults | Malformed:
    """Read one tool call of a reply.

    Parameters
    ----------
    call : Call
        As the model wrote it.
    earlier_ids : collection of str
        Ids of the calls before it in the same reply; a repeated one is refused.
    cut_off : bool
        The reply ended at the length limit inside this call. It is refused even if its arguments happen to
        parse.
    """
    try:
        _check_envelope(call, earlier_ids, cut_off)
        value = _read_object(call.arguments)
        parsed = _READERS[call.name](call.id, value)
        if parsed is None:
            raise _Refused("bad_arguments", _complaint(call.name, value))
    except _Refused as refused:
        return Malformed(call.id, refused.kind, f"{refused} The call was not run.")
    return parsed


def _check_envelope(call: Call, earlier_ids: Collection[str], cut_off: bool) -> None:
    if cut_off:
        raise _Refused(
            "cut_off", "Your reply was cut off at its length limit inside this call; write a shorter one."
        )
    if call.id in earlier_ids:
        raise _Refused(
            "duplicate_id", f"Two calls of this reply have the id {call.id[:80]!r}; every call needs its own."
        )
    if call.name not in _READERS:
        tools = f"{EXECUTE_CODE} and {SUBMIT_RESULTS}"
        raise _Refused("unknown_tool", f"There is no tool {call.name[:80]!r}; the tools are {tools}.")
    if len(call.arguments.encode()) > MAX_ARGUMENT_BYTES:
        raise _Refused(
            "too_large", "The arguments are larger than 1 MiB; write data from code instead of passing it."
        )
    if call.as_value:
        raise _Refused(
            "bad_arguments", "The arguments must be a JSON text (a string), but came as a JSON value."
        )


def _read_object(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments, object_pairs_hook=_unique)
    except RecursionError:
        raise _Refused("bad_json", "The arguments are nested too deeply.") from None
    except ValueError as error:
        raise _Refused("bad_json", f"The arguments are not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise _Refused("not_object", f"The arguments must be a JSON object, but are {_kind(value)}.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused("bad_arguments", f"The argument {twice[:80]!r} is given twice.")
    return value


def _read_execute(call_id: str, value: dict[str, Any]) -> ExecuteCode | None:
    match value:
        case {"language": "python" | "bash" as language, "code": str(code)} if len(value) == 2 and _encodable(
            code
        ):
            return ExecuteCode(call_id, language, code)
    return None


def _read_submit(call_id: str, value: dict[str, Any]) -> SubmitResults | None:
    match value:
        case {"summary": str(summary)} if len(value) == 1 and _encodable(summary):
            return SubmitResults(call_id, summary)
    return None


_READERS = {EXECUTE_CODE: _read_execute, SUBMIT_RESULTS: _read_submit}
_EXPECTED = {
    EXECUTE_CODE: {"language": '"python" or "bash"', "code": "a text"},
    SUBMIT_RESULTS: {"summary": "a text"},
}


def _complaint(tool: str, value: dict[str, Any]) -> str:
    expected = _EXPECTED[tool]
    wanted = " and ".join(f"{name} ({what})" for name, what in expected.items())
    missing = [name for name in expected if name not in value]
    extra = [name[:40] for name in value if name not in expected][:5]
    if missing:
        found = f"missing: {', '.join(missing)}"
    elif extra:
        found = f"not known: {', '.join(extra)}"
    else:
        found = ", ".join(f"{name} is {_kind(value[name])}" for name in expected)
    return f"{tool} takes {wanted}; {found}."


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return f"the text {value[:40]!r}" if _encodable(value) else "a text with half a surrogate pair"
        case list():
            return "a list"
    return "an object"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
