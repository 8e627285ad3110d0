"""One request to an OpenAI-compatible endpoint: a reply, or a failure that says whether trying again can
help.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Self, cast

import openai

from runner.agents.failure import Failure, FailureKind
from runner.agents.gate import FREE, Ticket
from runner.agents.profiles import EndpointProfile
from runner.agents.wire import Completion, ErrorBody, Unreadable, read_events, read_json
from runner.tools import TOOL_SCHEMAS
from runner.trace import plain

MAX_BODY_BYTES = 64 * 1024 * 1024
CONNECT_SECONDS = 30.0
MESSAGE_CHARS = 300
WITH_TOOLS: Mapping[str, Any] = {"tools": TOOL_SCHEMAS}

_REFUSED = frozenset({401, 402, 403})
_PASSING = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(
    r"context.{0,12}(length|window|limit)|maximum context|(prompt|input|request).{0,12}too (long|large)"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient.{0,2}(quota|credit|balance|fund)", re.IGNORECASE)


class Provider:
    """The endpoint of one profile. It tries once; patience is the caller's.

    Parameters
    ----------
    profile : EndpointProfile
        Where and how to ask.
    key : str or None
        Sent in the request's header and nowhere else; every message that leaves this class is free of it.
    """

    def __init__(self, profile: EndpointProfile, key: str | None) -> None:
        self._profile = profile
        self._key = key
        self._client = openai.OpenAI(api_key=key or "none", base_url=profile.base_url, max_retries=0)

    def ask(
        self,
        messages: list[dict[str, Any]],
        timeout: float,
        fields: Mapping[str, Any] = WITH_TOOLS,
        ticket: Ticket = FREE,
    ) -> Completion:
        """Send the messages and read the reply, within ``timeout`` seconds (silence may last as long again).

        ``fields`` go into the request as they are; an agent's hold its tools. The outcome is booked on ``ticket``.

        Raises
        ------
        Failure
            Whatever went wrong on the way.
        """
        try:
            completion = self._ask_once(messages, timeout, fields, ticket.id)
        except Failure as failure:
            ticket.failed(failure)
            raise
        usage, prices = completion.usage, self._profile.prices
        ticket.paid(usage, prices.cost(usage) if prices and usage else None)
        return completion

    def _ask_once(
        self, messages: list[dict[str, Any]], timeout: float, fields: Mapping[str, Any], request_id: str
    ) -> Completion:
        try:
            return self._ask(messages, timeout, fields, request_id)
        except openai.APIStatusError as error:
            text = f"{error.message} {error.body if isinstance(error.body, dict) else ''}"
            raise self._failure(error.status_code, error.message, text, error.response.headers) from None
        except openai.APITimeoutError:
            raise Failure("retry", f"no answer within {timeout:.0f} s") from None
        except ErrorBody as error:
            raise self._failure(error.status, str(error), str(error), {}) from None
        except Unreadable as error:
            raise Failure("retry", self._say(str(error))) from None
        except Exception as error:
            if not _is_transport(error):
                raise
            raise Failure(
                "retry", self._say(f"the connection failed: {error or type(error).__name__}")
            ) from None

    def _ask(
        self, messages: list[dict[str, Any]], timeout: float, fields: Mapping[str, Any], request_id: str
    ) -> Completion:
        profile = self._profile
        body: dict[str, Any] = {**profile.decoding, "messages": messages, **fields}
        if profile.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if profile.max_output_tokens is not None:
            body["max_tokens"] = profile.max_output_tokens
        ends = time.monotonic() + timeout
        create = cast(Any, self._client.chat.completions.with_streaming_response.create)
        # Everything goes in as ``extra_body``, which is sent as it is: the package checks its own arguments key by
        # key, which takes longer than all the rest of a turn when the history is long.
        with create(
            model=profile.model,
            messages=[],
            extra_body=body,
            extra_headers={"X-Client-Request-Id": request_id} if request_id else None,
            timeout=openai.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout)),
        ) as response:
            is_stream = "text/event-stream" in response.headers.get("content-type", "")
            answer = self._read(response, ends, is_stream)
        return read_events(answer) if is_stream else read_json(answer)

    def _read(self, response: Any, ends: float, is_stream: bool) -> bytes:
        """The whole body; a server that drips bytes does not get more time than one that is silent."""
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise Failure("fatal", f"the answer is larger than {MAX_BODY_BYTES >> 20} MiB")
            if is_stream and body[-32:].rstrip().endswith(b"data: [DONE]"):
                break
            if time.monotonic() > ends:
                raise Failure("retry", "the answer did not end in time")
        return bytes(body)

    def _failure(self, status: int | None, message: str, text: str, headers: Mapping[str, str]) -> Failure:
        return Failure(_kind(status, text), self._say(message), status, retry_after(headers))

    def _say(self, text: str) -> str:
        """``text`` on one line, short, without the key."""
        if self._key:
            text = text.replace(self._key, "[key]")
        line = " ".join(plain(text).split())
        return line if len(line) <= MESSAGE_CHARS else line[: MESSAGE_CHARS - 1] + "…"

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _kind(status: int | None, text: str) -> FailureKind:
    if status in _REFUSED or _NO_CREDIT.search(text):
        return "fatal"
    if status == 413 or (status != 429 and _TOO_LONG.search(text)):
        return "too_long"
    if status is None or status in _PASSING or status >= 500:
        return "retry"
    return "fatal"


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that the provider asks to wait, from ``Retry-After`` as a number or an HTTP date; None when
    it does not say.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def _is_transport(error: Exception) -> bool:
    """Whether the HTTP library raised it; the ``openai`` package hands these through while a body is read."""
    return isinstance(error, openai.APIConnectionError | OSError) or type(error).__module__.split(".")[0] in (
        "httpx",
        "httpx2",
    )
