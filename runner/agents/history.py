"""What a model is shown of its run: the brief, its replies, the answers to its calls, and less of them when
room runs out.

The rule of leaving out: when the estimate of the history's tokens is more than the context has room for,
the outputs of the oldest calls are replaced by a line that says so, oldest first, until the estimate is
below 70 % of the room. The newest three outputs, short outputs, the brief and everything the model itself
wrote stay. If the provider finds a history too long all the same, the same is done again with what it had
accepted as the new room, and the newest outputs may go as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.trace import Call
from runner.agents.wire import Completion
from runner.session import ToolReply
from runner.tools import MAX_ARGUMENT_BYTES, TOOL_SCHEMAS

KEPT_OUTPUTS = 3
SHORT_CHARS = 400
AIM = 0.7
FIRST_TOKENS_PER_CHAR = 1 / 3
UNREADABLE_CHARS = 2000

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

Message = dict[str, Any]


@dataclass(frozen=True, eq=False)
class _Output:
    """Where the answer to a call stands."""

    call_id: str
    message: Message


class History:
    """The messages of the next request.

    Parameters
    ----------
    system, brief : str
        The first messages.
    room : int
        Tokens that a request may have.
    """

    def __init__(self, system: str, brief: str, room: int) -> None:
        self.messages: list[Message] = [
            {"role": "system", "content": system},
            {"role": "user", "content": brief},
        ]
        self._room: float = room
        self._chars = len(system) + len(brief) + len(json.dumps(TOOL_SCHEMAS))
        self._tokens_per_char = FIRST_TOKENS_PER_CHAR
        self._outputs: list[_Output] = []

    def estimate(self) -> int:
        """Tokens of the next request, about; learned from what the provider counted before."""
        return round(self._chars * self._tokens_per_char)

    def learn(self, input_tokens: int) -> None:
        """Take the provider's count of the request that has just been answered as the measure of the next."""
        if input_tokens > 0:
            self._tokens_per_char = input_tokens / self._chars

    def add_note(self, text: str) -> None:
        """A message of the host that answers no call."""
        self._add({"role": "user", "content": text}, len(text))

    def add_turn(self, completion: Completion, replies: Sequence[ToolReply]) -> None:
        """A reply and the answers to its calls, in a form that every endpoint takes back.

        Ids are made unique within the reply and arguments that cannot be read are wrapped, so that one
        malformed call does not make every later request invalid.
        """
        message: Message = {"role": "assistant", "content": completion.text or None}
        if completion.reasoning:
            message["reasoning_details"] = list(completion.reasoning)
        ids = _unique_ids(completion.calls)
        if completion.calls:
            message["tool_calls"] = [
                _sendable(call, name) for call, name in zip(completion.calls, ids, strict=True)
            ]
        elif not completion.text:
            message["content"] = "(empty reply)"
        self._add(message, len(json.dumps(message, ensure_ascii=False)))
        for name, reply in zip(ids, replies, strict=True):
            answer: Message = {"role": "tool", "tool_call_id": name, "content": reply.text}
            self._add(answer, len(reply.text))
            self._outputs.append(_Output(reply.call_id, answer))

    def fit(self) -> tuple[str, ...]:
        """Leave out old outputs if the estimate exceeds the room; returns the ids of their calls."""
        if self.estimate() <= self._room:
            return ()
        return self._leave_out(KEPT_OUTPUTS)

    def shrink(self) -> tuple[str, ...]:
        """Leave out outputs because the provider found the history too long.

        Returns the ids of their calls; none when nothing is left to leave out.
        """
        self._room = min(self._room, self.estimate())
        return self._leave_out(KEPT_OUTPUTS) or self._leave_out(0)

    def _leave_out(self, kept: int) -> tuple[str, ...]:
        gone = []
        for output in self._outputs[: max(0, len(self._outputs) - kept)]:
            if self.estimate() <= AIM * self._room:
                break
            text = output.message["content"]
            if len(text) <= SHORT_CHARS:
                continue
            note = f"[left out to make room: {len(text)} characters of an old output]"
            output.message["content"] = note
            self._chars -= len(text) - len(note)
            gone.append(output)
        self._outputs = [output for output in self._outputs if output not in gone]
        return tuple(output.call_id for output in gone)

    def _add(self, message: Message, chars: int) -> None:
        self.messages.append(message)
        self._chars += chars


def _unique_ids(calls: Sequence[Call]) -> list[str]:
    ids: list[str] = []
    for call in calls:
        name = call.id
        while name in ids:
            name += "_"
        ids.append(name)
    return ids


def _sendable(call: Call, call_id: str) -> Message:
    name = call.name if _TOOL_NAME.fullmatch(call.name) else "unreadable_name"
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": _arguments(call)}}


def _arguments(call: Call) -> str:
    """The arguments if they are a JSON object, else their beginning inside one."""
    if len(call.arguments) <= MAX_ARGUMENT_BYTES:
        try:
            if isinstance(json.loads(call.arguments), dict):
                return call.arguments
        except (ValueError, RecursionError):
            pass
    return json.dumps({"unreadable": call.arguments[:UNREADABLE_CHARS]})
