"""The proxy behind one run's socket: HTTP is spoken by h11, TLS passes through CONNECT untouched.

One thread per connection and one more per tunnel, all daemons: they end with the run at the latest, and with the
runner in any case. A name is resolved once, here, and what is connected to is the very address that was checked.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from runner.egress.addresses import Resolve, forbidden, resolve
from runner.egress.ledger import Download, Ledger
from runner.egress.rules import Decision, Rules

CHUNK = 128 * 1024
HEADER_BYTES = 32 * 1024
CONNECT_SECONDS = 15.0
REQUEST_SECONDS = 30.0
SILENCE_SECONDS = 300.0
MOST_CONNECTIONS = 128
HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"trailer", b"upgrade")
)

Headers = list[tuple[bytes, bytes]]


class _Refused(Exception):
    """An answer of ours instead of the host's."""

    def __init__(self, status: int, reason: str, rule: str = "request") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.rule = rule


@dataclass
class _Traffic:
    """What passed in one request, and how it went."""

    method: str = "?"
    host: str = "?"
    port: int = 0
    path: str | None = None
    verdict: str = "failed"
    rule: str = "request"
    reason: str = ""
    sent: int = 0
    received: int = 0


class Proxy:
    """Serves connections until it is closed.

    Parameters
    ----------
    rules : Rules
        Of this run.
    ledger : Ledger
        Gets one line a request; it is not closed here.
    resolve : callable
        Host and port to addresses; replaced in tests.
    """

    def __init__(self, rules: Rules, ledger: Ledger, resolve: Resolve = resolve) -> None:
        self._rules = rules
        self._ledger = ledger
        self._resolve = resolve
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def serve(self, listener: socket.socket) -> None:
        """Accept connections until the listener is shut down."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                crowded = self._closed or len(self._threads) >= MOST_CONNECTIONS
                if not crowded:
                    thread = threading.Thread(target=self._serve, args=(client,), name="egress", daemon=True)
                    self._threads.add(thread)
                    thread.start()
            if crowded:
                client.close()

    def close(self, patience: float = 5.0) -> None:
        """End all connections and wait until each has written its line; one that hangs in a name server is let go."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        give_up = time.monotonic() + patience
        for thread in threads:
            thread.join(max(0.0, give_up - time.monotonic()))

    def _serve(self, client: socket.socket) -> None:
        began = self._ledger.clock()
        traffic = _Traffic()
        try:
            with self._held(client):
                self._answer(client, traffic)
            if traffic.method != "?":
                self._write_down(traffic, began)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _write_down(self, traffic: _Traffic, began: float) -> None:
        now = self._ledger.clock()
        times = {"t": round(now, 3), "seconds": round(now - began, 3)}
        with contextlib.suppress(OSError):  # a full disk ends the run elsewhere
            self._ledger.write(Download.model_validate({**vars(traffic), **times}))

    @contextlib.contextmanager
    def _held(self, connection: socket.socket) -> Iterator[socket.socket]:
        """Closed in the end, and known until then, so that :meth:`close` can end it."""
        with self._lock:
            self._sockets.add(connection)
            if self._closed:
                connection.close()
        try:
            yield connection
        finally:
            with self._lock:
                self._sockets.discard(connection)
            connection.close()

    def _answer(self, client: socket.socket, traffic: _Traffic) -> None:
        inside = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES)
        try:
            client.settimeout(REQUEST_SECONDS)
            request = _next(inside, client)
            if not isinstance(request, h11.Request):
                return
            traffic.method = request.method.decode("ascii", "replace")
            with self._upstream(request, traffic) as (upstream, authority):
                if request.method == b"CONNECT":
                    self._tunnel(inside, client, upstream, traffic)
                else:
                    _forward(inside, client, request, (upstream, authority), traffic)
            traffic.verdict = "allowed"
        except _Refused as refused:
            traffic.verdict = "refused" if refused.status == 403 else "failed"
            traffic.rule, traffic.reason = refused.rule, refused.reason
            _say(inside, client, refused)
        except h11.ProtocolError as error:
            traffic.reason = f"not HTTP as it should be: {error}"
            _say(inside, client, _Refused(400, traffic.reason))
        except OSError as error:
            traffic.reason = error.strerror or "the connection ended early"

    # --- who is asked ---

    @contextlib.contextmanager
    def _upstream(self, request: h11.Request, traffic: _Traffic) -> Iterator[tuple[socket.socket, bytes]]:
        """A connection to the host that was asked for and its real name, where the rules allow it.

        Raises :class:`_Refused`.
        """
        traffic.host, traffic.port, traffic.path = _target(request)
        decision = self._rules.decide(traffic.host, traffic.port, traffic.path)
        traffic.host, traffic.rule = decision.shown, decision.rule
        if not decision.allowed:
            raise _Refused(403, decision.reason, decision.rule)
        with self._held(self._connect(decision)) as upstream:
            upstream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            name = f"[{decision.host}]" if ":" in decision.host else decision.host
            yield upstream, (name if decision.port == 80 else f"{name}:{decision.port}").encode()

    def _connect(self, decision: Decision) -> socket.socket:
        try:
            addresses = self._resolve(decision.host, decision.port)
        except (OSError, UnicodeError):
            raise _Refused(502, f"{decision.shown} has no address", decision.rule) from None
        found = [(address, None if decision.private else forbidden(address)) for address in addresses]
        allowed = [address for address, why in found if why is None]
        if not allowed:
            why = next((why for _, why in found), None) or "nowhere"
            raise _Refused(403, f"{decision.shown} leads to {why}, which no run may reach", "address")
        trouble = ""
        for address in allowed:
            try:
                upstream = socket.create_connection((address, decision.port), timeout=CONNECT_SECONDS)
                upstream.settimeout(SILENCE_SECONDS)
                return upstream
            except OSError as error:
                trouble = error.strerror or "timed out"
        raise _Refused(502, f"{decision.shown} cannot be reached: {trouble}", decision.rule)

    # --- what passes ---

    def _tunnel(
        self, inside: h11.Connection, client: socket.socket, upstream: socket.socket, traffic: _Traffic
    ) -> None:
        early, _ = inside.trailing_data
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        client.settimeout(None)
        upstream.settimeout(None)
        upstream.sendall(early)
        traffic.sent += len(early)

        def count_sent(size: int) -> None:
            traffic.sent += size

        def count_received(size: int) -> None:
            traffic.received += size

        up = threading.Thread(
            target=_pump, args=(client, upstream, count_sent), name="egress-up", daemon=True
        )
        up.start()
        _pump(upstream, client, count_received)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        up.join()


def _pump(source: socket.socket, sink: socket.socket, count: Callable[[int], None]) -> None:
    """Copy until one side ends, and pass that end on."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
            count(len(data))
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _target(request: h11.Request) -> tuple[str, int, str | None]:
    """Host, port and, of a plain request, path. Raises :class:`_Refused`."""
    text = request.target.decode("ascii", "replace")
    tunnel = request.method == b"CONNECT"
    try:
        parts = urlsplit(f"//{text}" if tunnel else text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or (port is None if tunnel else parts.scheme != "http"):
        wanted = "CONNECT host:port" if tunnel else "an absolute http:// address; https goes through CONNECT"
        raise _Refused(400, f"expected {wanted}, found {text[:80]!r}")
    if tunnel:
        return host, port or 443, None
    return host, port or 80, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def _forward(
    inside: h11.Connection,
    client: socket.socket,
    request: h11.Request,
    host: tuple[socket.socket, bytes],
    traffic: _Traffic,
) -> None:
    """One plain HTTP exchange; the connection ends with it.

    ``Host`` is set to what was decided on: under another name, a server of many sites would answer for another one.
    """
    upstream, authority = host
    outside = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_BYTES)

    def send(event: h11.Event) -> None:
        data = outside.send(event) or b""
        traffic.sent += len(data)
        upstream.sendall(data)

    kept = [(name, value) for name, value in _kept(request.headers) if name != b"host"]
    headers = [(b"host", authority), *kept, (b"connection", b"close")]
    send(h11.Request(method=request.method, target=(traffic.path or "/").encode(), headers=headers))
    if inside.they_are_waiting_for_100_continue:
        client.sendall(inside.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
    while not isinstance(event := _next(inside, client), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            return
        send(event)
    send(h11.EndOfMessage())
    for answer in _answers(outside, upstream):
        data = inside.send(answer) or b""
        traffic.received += len(data)
        client.sendall(data)


def _answers(outside: h11.Connection, upstream: socket.socket) -> Iterator[h11.Event]:
    """What the host answers, as it goes on to the client. Raises :class:`_Refused` where that is no HTTP."""
    while True:
        try:
            event = _next(outside, upstream)
        except h11.RemoteProtocolError as error:
            raise _Refused(502, f"what the host answers is not HTTP as it should be: {error}") from None
        match event:
            case h11.Response():
                headers = [*_kept(event.headers), (b"connection", b"close")]
                yield h11.Response(status_code=event.status_code, reason=event.reason, headers=headers)
            case h11.Data():
                yield event
            case h11.EndOfMessage():
                yield h11.EndOfMessage()  # trailers end here: a client of HTTP/1.0 could not be sent any
                return
            case h11.ConnectionClosed():
                return


def _kept(headers: h11._headers.Headers) -> Headers:
    return [(name, value) for name, value in headers if name not in HOP_BY_HOP]


def _next(connection: h11.Connection, source: socket.socket) -> h11.Event:
    """The next event, read from the socket as needed."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(source.recv(CHUNK))
    if not isinstance(event, h11.Event):  # paused: what follows belongs to another request
        return h11.ConnectionClosed()
    return event


def _say(inside: h11.Connection, client: socket.socket, refused: _Refused) -> None:
    """Our own answer. Most clients show only the status line of a refused tunnel, so the sentence stands there too."""
    sentence = refused.reason.encode("ascii", "replace")
    body = sentence + b"\n"
    headers = [
        (b"content-type", b"text/plain; charset=us-ascii"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    response = h11.Response(status_code=refused.status, reason=sentence, headers=headers)
    with contextlib.suppress(OSError, h11.LocalProtocolError):
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            client.sendall(inside.send(event) or b"")
