"""Read what a chat-completions endpoint sent: one JSON body, or server-sent events, into one reply.

Foreign data: nothing is taken for granted but what is used, and what is not a reply is an
:class:`Unreadable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluator.trace import Call, Usage
from runner.trace import plain

LENGTH_REASONS = ("length", "max_tokens", "max_output_tokens")


class Unreadable(Exception):
    """The body is not a chat completion, or ends before the reply does."""


class ErrorBody(Exception):
    """The body is an error under a success status."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Completion:
    """One reply of a model. ``usage`` is None when the endpoint does not say.

    ``reasoning`` is the provider's own record of its thinking; some models need it back with the next
    request.
    """

    text: str
    calls: tuple[Call, ...]
    finish: str
    usage: Usage | None
    reasoning: tuple[Any, ...] = ()


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Function(_Foreign):
    name: str | None = None
    arguments: Any = None


class _ToolCall(_Foreign):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _Message(_Foreign):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    reasoning_details: list[Any] | None = None


class _Choice(_Foreign):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    error: Any = None


class _Cached(_Foreign):
    cached_tokens: int | None = None


class _Usage(_Foreign):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None


class _Body(_Foreign):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


def read_json(body: bytes) -> Completion:
    """A whole completion.

    Raises
    ------
    Unreadable
        Not JSON (a proxy's HTML page, say), or no reply in it.
    ErrorBody
        It says that the request failed.
    """
    draft = _Draft()
    parsed = _parse(body)
    draft.add(parsed)
    if not parsed.choices or parsed.choices[0].message is None:
        raise Unreadable("the answer holds no reply")
    return draft.finished()


def read_events(body: bytes) -> Completion:
    """A completion in server-sent events.

    Raises
    ------
    Unreadable
        The stream ended before the reply did.
    ErrorBody
        It broke off with an error.
    """
    draft = _Draft()
    for data in _data_lines(body):
        draft.add(_parse(data))
    if not draft.finish:
        raise Unreadable("the stream was cut before the reply was complete")
    return draft.finished()


def _data_lines(body: bytes) -> Iterator[bytes]:
    for line in body.splitlines():
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                return
            yield data


def _parse(data: bytes) -> _Body:
    try:
        body = _Body.model_validate(_clean(json.loads(data)))
    except (ValidationError, ValueError, RecursionError):
        start = data[:80].decode(errors="replace")
        raise Unreadable(f"the answer is not a chat completion: {start!r}") from None
    for error in (body.error, *(choice.error for choice in body.choices or ())):
        if error is not None:
            raise _error(error)
    return body


def _error(error: Any) -> ErrorBody:
    if not isinstance(error, dict):
        return ErrorBody(None, str(error))
    code = str(error.get("code"))
    status = int(code) if re.fullmatch(r"[1-5]\d\d", code) else None
    return ErrorBody(status, str(error.get("message") or error))


def _clean(value: Any) -> Any:
    """Without lone surrogates, which JSON can spell and UTF-8 cannot."""
    match value:
        case str():
            return plain(value)
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {plain(key): _clean(item) for key, item in value.items()}
    return value


@dataclass
class _CallDraft:
    id: str = ""
    name: str = ""
    arguments: str = ""
    value: Any = None

    def add(self, part: _ToolCall) -> None:
        self.id = self.id or part.id or ""
        self.name = self.name or part.function.name or ""
        if isinstance(part.function.arguments, str):
            self.arguments += part.function.arguments
        elif part.function.arguments is not None:
            self.value = part.function.arguments

    def finished(self, position: int) -> Call:
        """An id that the endpoint left out is filled in: answers need one."""
        name = self.id or f"call_{position}"
        if self.value is not None:
            return Call(id=name, name=self.name, arguments=json.dumps(self.value), as_value=True)
        return Call(id=name, name=self.name, arguments=self.arguments)


@dataclass
class _Draft:
    """A reply while its parts come in."""

    text: str = ""
    refusal: str = ""
    finish: str = ""
    usage: Usage | None = None
    calls: dict[int, _CallDraft] = field(default_factory=dict)
    reasoning: list[Any] = field(default_factory=list)

    def add(self, body: _Body) -> None:
        if body.usage is not None:
            self.usage = _usage(body.usage)
        if not body.choices:
            return
        choice = body.choices[0]
        self.finish = choice.finish_reason or self.finish
        message = choice.message or choice.delta
        if message is not None:
            self.text += _text(message.content)
            self.refusal += message.refusal or ""
            self.reasoning += message.reasoning_details or []
            self._add_calls(message.tool_calls or ())

    def _add_calls(self, parts: Iterable[_ToolCall]) -> None:
        for part in parts:
            self.calls.setdefault(self._slot(part), _CallDraft()).add(part)

    def _slot(self, part: _ToolCall) -> int:
        """Which call a part belongs to; endpoints that leave out ``index`` begin a new call with a new id."""
        if part.index is not None:
            return part.index
        latest = max(self.calls, default=-1)
        if (
            latest >= 0
            and (part.id is None or part.id == self.calls[latest].id)
            and part.function.name is None
        ):
            return latest
        return latest + 1

    def finished(self) -> Completion:
        calls = tuple(self.calls[slot].finished(position) for position, slot in enumerate(sorted(self.calls)))
        finish = "length" if self.finish.lower() in LENGTH_REASONS else self.finish
        return Completion(self.text or self.refusal, calls, finish, self.usage, tuple(self.reasoning))


def _text(content: str | list[Any] | None) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def _usage(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details
    return Usage(
        input=_count(usage.prompt_tokens),
        output=_count(usage.completion_tokens),
        cached=_count(details.cached_tokens if details else None),
    )


def _count(tokens: int | None) -> int:
    """A provider's count, of which anything may be said; no reply has a thousand billion tokens."""
    return min(max(0, tokens or 0), 10**12)
