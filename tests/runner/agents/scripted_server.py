"""An OpenAI-compatible server on loopback: answers from a script and keeps what it was asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One HTTP answer. ``cut`` sends that many bytes of the body and then drops the connection."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    delay: float = 0.0
    drip: float = 0.0


@dataclass(frozen=True)
class Request:
    at: float
    headers: dict[str, str]
    body: dict[str, Any]


def call(name: str, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def execute(code: str, call_id: str = "c1", language: str = "python") -> dict[str, Any]:
    return call("execute_code", {"language": language, "code": code}, call_id)


def submit(call_id: str = "s1") -> dict[str, Any]:
    return call("submit_results", {"summary": "done"}, call_id)


def usage(tokens_in: int = 100, tokens_out: int = 10, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def whole(
    text: str | None = None,
    calls: Sequence[dict[str, Any]] = (),
    finish: str | None = None,
    counted: dict[str, Any] | None = None,
    **message: Any,
) -> Answer:
    """A completion in one JSON body."""
    message = {"role": "assistant", "content": text, **message}
    if calls:
        message["tool_calls"] = list(calls)
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": finish or ("tool_calls" if calls else "stop"),
    }
    body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}
    body["usage"] = usage() if counted is None else counted
    return Answer(json.dumps(body).encode())


def streamed(
    text: str = "",
    calls: Sequence[dict[str, Any]] = (),
    finish: str | None = None,
    counted: dict[str, Any] | None = None,
    done: bool = True,
) -> Answer:
    """The same in server-sent events: text and arguments come in pieces, with comments between them."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + 5]} for at in range(0, len(text), 5)]
    for index, wanted in enumerate(calls):
        function = wanted["function"]
        head = {"index": index, "id": wanted["id"], "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": {"name": function["name"], "arguments": ""}}]})
        arguments = function["arguments"]
        for at in range(0, len(arguments), 7):
            part = {"index": index, "function": {"arguments": arguments[at : at + 7]}}
            deltas.append({"tool_calls": [part]})
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last = finish or ("tool_calls" if calls else "stop")
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": last}]})
    events.append({"choices": [], "usage": usage() if counted is None else counted})
    lines = [": still working\n\n"] + [f"data: {json.dumps(event)}\n\n" for event in events]
    if done:
        lines.append("data: [DONE]\n\n")
    return Answer("".join(lines).encode(), content_type="text/event-stream")


def failure(
    status: int, message: str = "no", headers: dict[str, str] | None = None, code: Any = None
) -> Answer:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Answer(body, status=status, headers=headers or {})


def html(status: int = 200) -> Answer:
    return Answer(b"<!doctype html><html><body>Bad gateway</body></html>", status, "text/html")


Step = Answer | Callable[[Request], Answer]


class ScriptedServer:
    """``url`` is the base URL. Past the end of the script every answer is a 418, which no client retries."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.requests: list[Request] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                server._answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers["content-length"])
        body = json.loads(handler.rfile.read(length))
        request = Request(time.monotonic(), {k.lower(): v for k, v in handler.headers.items()}, body)
        self.requests.append(request)
        number = len(self.requests) - 1
        step = self.steps[number] if number < len(self.steps) else failure(418, "the script has ended")
        self._send(handler, step if isinstance(step, Answer) else step(request))

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        time.sleep(answer.delay)
        try:
            handler.send_response(answer.status)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            handler.send_header("content-type", answer.content_type)
            handler.send_header("content-length", str(len(answer.body)))
            handler.end_headers()
            if answer.cut is not None:
                handler.wfile.write(answer.body[: answer.cut])
                handler.wfile.flush()
                handler.connection.shutdown(socket.SHUT_RDWR)
                handler.close_connection = True
            elif answer.drip:
                for byte in answer.body:
                    handler.wfile.write(bytes([byte]))
                    handler.wfile.flush()
                    time.sleep(answer.drip)
            else:
                handler.wfile.write(answer.body)
        except OSError:
            handler.close_connection = True

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
