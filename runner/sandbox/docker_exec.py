"""One exec in a container as a stream of bytes, with the engine's framing taken off."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.sandbox.base import SandboxDead

if TYPE_CHECKING:
    from docker import APIClient

CHUNK = 256 * 1024
FRAME_HEADER = 8


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn the engine's refusals into ``SandboxDead``: the container is gone, or the engine is."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except APIError as error:
        raise SandboxDead(f"{what}: {error.explanation or error}") from None
    except (DockerException, RequestException, HTTPError, OSError) as error:
        raise SandboxDead(f"{what}: the container engine does not answer ({error})") from None


class Frames:
    """Takes the 8-byte headers off a multiplexed stream; payload is passed on as it comes, however it is cut."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        payload = bytearray()
        position = 0
        while position < len(data):
            if self._left:
                part = data[position : position + self._left]
                payload += part
                self._left -= len(part)
                position += len(part)
            else:
                part = data[position : position + FRAME_HEADER - len(self._header)]
                self._header += part
                position += len(part)
                if len(self._header) == FRAME_HEADER:
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header.clear()
        return bytes(payload)


class ExecStream:
    """A started exec: its output as it comes, its standard input, and how it ended."""

    def __init__(
        self,
        api: APIClient,
        container: str,
        argv: Sequence[str],
        *,
        user: str,
        env: Mapping[str, str],
        stdin: bytes | None = None,
    ) -> None:
        self._api = api
        self._began = time.monotonic()
        self._frames = Frames()
        with engine_errors("the sandbox takes no more commands"):
            created = api.exec_create(
                container, list(argv), stdin=stdin is not None, environment=dict(env), user=user
            )
            self._id = created["Id"]
            self._stream: Any = api.exec_start(self._id, socket=True)
        stream: Any = self._stream
        self._socket: socket.socket = getattr(stream, "_sock", stream)
        self._socket.setblocking(False)
        self._early = read_ahead(self._stream)
        self._stdin = memoryview(stdin or b"")
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        if stdin is not None:
            self._write()
        self._next_look = self._began + 0.2

    def read(self, timeout: float) -> bytes | None:
        if self._early:
            early, self._early = self._early, b""
            return self._frames.feed(early)
        for _, events in self._selector.select(timeout):
            if events & selectors.EVENT_WRITE:
                self._write()
            if events & selectors.EVENT_READ and (data := self._receive()) is not None:
                return self._frames.feed(data) if data else None
        return self._leftovers() if self._ended_silently() else b""

    def running(self) -> bool:
        return self._state()["Running"] is True

    def finish(self, patience: float = 5.0) -> int | None:
        """Close the stream; the exit code, or None when the command still runs after ``patience`` seconds."""
        give_up = time.monotonic() + patience
        self._selector.close()
        close_stream(self._stream)
        pause = 0.002
        while (state := self._state())["Running"]:
            if time.monotonic() > give_up:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        code = state["ExitCode"]
        return None if code is None else int(code)

    def _state(self) -> dict[str, Any]:
        with engine_errors("the sandbox ended while a command ran"):
            state: dict[str, Any] = self._api.exec_inspect(self._id)
            return state

    def _receive(self) -> bytes | None:
        try:
            return self._socket.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def _write(self) -> None:
        """Send what the engine takes of standard input, then close it."""
        try:
            while self._stdin:
                self._stdin = self._stdin[self._socket.send(self._stdin) :]
            self._socket.shutdown(socket.SHUT_WR)
        except (BlockingIOError, InterruptedError):
            self._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            return
        except OSError:
            self._stdin = memoryview(b"")  # the command does not read
        self._selector.modify(self._socket, selectors.EVENT_READ)

    def _ended_silently(self) -> bool:
        """Whether the command ended while something it left behind keeps its output open; asked now and then."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + min(1.0, max(0.2, (now - self._began) / 10))
        return not self.running()

    def _leftovers(self) -> bytes | None:
        data = self._receive()
        return self._frames.feed(data) if data else None


def close_stream(stream: Any) -> None:
    """Close a stream the SDK handed out, and the socket below it, which it would leave to the garbage collector."""
    bare = getattr(stream, "_sock", None)
    stream.close()
    if bare is not None:
        bare.close()


def read_ahead(stream: Any) -> bytes:
    """Output that was read along with the answer's HTTP headers, which the bare socket would never give.

    The engine's answer is parsed through a buffered reader, where output stays that came in the same packet.
    """
    reader = getattr(getattr(getattr(stream, "_response", None), "raw", None), "_fp", None)
    buffer = getattr(reader, "fp", None)
    if buffer is None or not hasattr(buffer, "peek"):
        return b""
    waiting = buffer.peek()
    return bytes(buffer.read(len(waiting))) if waiting else b""
