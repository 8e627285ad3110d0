"""The proxy itself, over real sockets: what passes, what is refused and why, and what is written down."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest

from runner.egress.ledger import Ledger, read_ledger
from runner.egress.proxy import MOST_CONNECTIONS, Proxy
from runner.egress.rules import Endpoint, Hosts, Rules

LISTED = Hosts(packages=("index.test",), hubs=("hub.test",), models=("models.test",))


class Echo(BaseHTTPRequestHandler):
    """Says what it was asked; bodies come back as they are."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer(f"{self.path} {self.headers['Host']} {self.headers.get('Proxy-Connection')}".encode())

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(body)

    def _answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Open:
    """A proxy on a unix socket, its log, and a client."""

    def __init__(self, place, rules, **options) -> None:
        self.log = place / "downloads.jsonl"
        self.ledger = Ledger(self.log)
        self.proxy = Proxy(rules, self.ledger, **options)
        self.address = str(place / "s")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen(256)
        self.thread = threading.Thread(target=self.proxy.serve, args=(self.listener,))
        self.thread.start()

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(10)
        client.connect(self.address)
        return client

    def say(self, data: bytes) -> bytes:
        """Send and read until the other side closes."""
        with self.connect() as client:
            client.sendall(data)
            return read_all(client)

    def entries(self):
        self.close()
        return list(read_ledger(self.log))

    def close(self) -> None:
        if self.thread.is_alive():
            self.listener.shutdown(socket.SHUT_RDWR)
            self.thread.join()
            self.proxy.close()
        self.listener.close()
        self.ledger.close()


def read_all(client: socket.socket) -> bytes:
    data = b""
    while chunk := client.recv(65536):
        data += chunk
    return data


@pytest.fixture
def echo(serve):
    return serve(Echo)


@pytest.fixture
def opened(tmp_path):
    """Open a proxy: ``opened(rules, ...)``."""
    made = []

    def open_(rules, **options):
        place = tmp_path / str(len(made))
        place.mkdir()
        made.append(Open(place, rules, **options))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def operator(service) -> Rules:
    return Rules(operator=(Endpoint("127.0.0.1", service.port, private=True),), hosts=LISTED)


def test_a_plain_request_goes_to_the_operators_index_under_our_name(opened, echo):
    proxy = opened(operator(echo))
    answer = proxy.say(
        b"GET http://package-index/simple/six/?a=b HTTP/1.1\r\nHost: package-index\r\nProxy-Connection: x\r\n\r\n"
    )
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert (
        body == f"/simple/six/?a=b 127.0.0.1:{echo.port} None".encode()
    )  # the index's own name, for its own sites
    (entry,) = proxy.entries()
    assert (entry.method, entry.host, entry.path, entry.verdict) == (
        "GET",
        "package-index",
        "/simple/six/?a=b",
        "allowed",
    )
    assert entry.rule == "operator"
    assert entry.received > len(body)
    assert entry.sent > 0


def test_another_host_cannot_be_asked_for_behind_a_permitted_one(opened, echo):
    proxy = opened(operator(echo))
    answer = proxy.say(b"GET http://package-index/x HTTP/1.1\r\nHost: labels.test\r\n\r\n")
    assert answer.endswith(f"/x 127.0.0.1:{echo.port} None".encode())


def test_a_tunnel_passes_bytes_both_ways_untouched(opened, echo):
    proxy = opened(operator(echo))
    hello = (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n"
        + b"\xff\0" * 150_000
    )
    with proxy.connect() as client:
        client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % echo.port + hello[:1000])
        client.sendall(hello[1000:])
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200")
    assert answer.endswith(b"\xff\0" * 150_000)
    (entry,) = proxy.entries()
    assert (entry.method, entry.path, entry.verdict) == ("CONNECT", None, "allowed")
    assert entry.sent == len(hello)
    assert entry.received == len(answer) - len(b"HTTP/1.1 200 Connection established\r\n\r\n")


def test_a_body_is_forwarded_whole(opened, echo):
    proxy = opened(operator(echo))
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    head = b"POST http://package-index/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert proxy.say(head + chunks).endswith(b"\r\n\r\nhello world")


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (b"CONNECT example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n", 403, b"not among the package indexes"),
        (b"GET http://example.test/ HTTP/1.1\r\nHost: x\r\n\r\n", 403, b"not among the package indexes"),
        (b"CONNECT labels.test:443 HTTP/1.1\r\nHost: x\r\n\r\n", 403, b"data or labels of this task"),
        (b"CONNECT index.test:22 HTTP/1.1\r\nHost: x\r\n\r\n", 403, b"only ports 80 and 443"),
        (b"GET /local HTTP/1.1\r\nHost: x\r\n\r\n", 400, b"absolute http:// address"),
        (b"GET https://index.test/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, b"https goes through CONNECT"),
        (b"CONNECT index.test HTTP/1.1\r\nHost: x\r\n\r\n", 400, b"expected CONNECT host:port"),
        (b"CONNECT index.test:99999 HTTP/1.1\r\nHost: x\r\n\r\n", 400, b"expected CONNECT host:port"),
        (b"CONNECT [::1:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400, b"expected CONNECT host:port"),
        (b"nonsense\r\n\r\n", 400, b"not HTTP"),
        (b"GET http://index.test/ HTTP/1.1\r\n" + b"A: " + b"x" * 70_000, 400, b"not HTTP"),
    ],
)  # fmt: skip
def test_a_refusal_says_why_in_the_status_line_and_in_the_body(opened, request_, status, words):
    proxy = opened(Rules(labels=frozenset({"labels.test"}), hosts=LISTED))
    head, _, body = proxy.say(request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert words in head.splitlines()[0]
    assert words in body
    for entry in proxy.entries():
        assert entry.verdict == ("refused" if status == 403 else "failed")
        assert words.decode() in entry.reason


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1", "the machine that runs the benchmark"),
        ("169.254.169.254", "metadata service"),
        ("192.168.0.7", "private or reserved network"),
        ("fd00::7", "private or reserved network"),
        ("::ffff:10.0.0.7", "private or reserved network"),
    ],
)
def test_a_listed_name_that_leads_to_a_forbidden_address_is_refused(opened, echo, address, words):
    proxy = opened(Rules(hosts=LISTED), resolve=lambda host, port: [address])
    answer = proxy.say(b"CONNECT index.test:443 HTTP/1.1\r\nHost: x\r\n\r\n").decode()
    assert answer.startswith("HTTP/1.1 403 index.test leads to")
    assert words in answer
    (entry,) = proxy.entries()
    assert entry.rule == "address"


def test_what_is_connected_to_is_the_address_that_was_checked(opened, monkeypatch):
    """DNS rebinding: a name that answers with another address each time is asked once."""
    answers = iter(["1.1.1.1", "127.0.0.1", "169.254.169.254"])
    connected = []

    def connect(address, timeout):
        connected.append(address)
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr("runner.egress.proxy.socket.create_connection", connect)
    proxy = opened(Rules(hosts=LISTED), resolve=lambda host, port: [next(answers)])
    assert b"502" in proxy.say(b"CONNECT index.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert connected == [("1.1.1.1", 443)]
    assert b"403" in proxy.say(b"CONNECT index.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert len(connected) == 1


def test_among_several_addresses_only_the_allowed_ones_are_tried(opened, monkeypatch):
    connected = []

    def connect(address, timeout):
        connected.append(address[0])
        raise TimeoutError

    monkeypatch.setattr("runner.egress.proxy.socket.create_connection", connect)
    proxy = opened(Rules(hosts=LISTED), resolve=lambda *_: ["10.0.0.1", "1.1.1.1", "127.0.0.1", "1.0.0.1"])
    answer = proxy.say(b"CONNECT hub.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"cannot be reached: timed out" in answer
    assert connected == ["1.1.1.1", "1.0.0.1"]
    assert [entry.verdict for entry in proxy.entries()] == ["failed"]


def test_an_index_of_pips_settings_may_not_lie_on_a_private_address(opened, echo):
    proxy = opened(Rules(operator=(Endpoint("127.0.0.1", echo.port),), hosts=LISTED))
    assert b"403 package-index leads to the machine" in proxy.say(
        b"GET http://package-index/ HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert echo.asked == []


def test_a_name_that_does_not_exist_is_said_to_have_no_address(opened):
    proxy = opened(Rules(hosts=LISTED))
    assert b"502 models.test has no address" in proxy.say(
        b"CONNECT models.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    )


def test_closing_ends_open_tunnels_and_every_one_has_its_line(opened):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        rules = Rules(operator=(Endpoint("127.0.0.1", port, private=True),), hosts=LISTED)
        proxy = opened(rules)
        clients = [proxy.connect() for _ in range(20)]
        for client in clients:
            client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % port)
        assert all(b"200" in client.recv(100) for client in clients)
        began = time.monotonic()
        assert len(proxy.entries()) == 20
        assert time.monotonic() - began < 3
        for client in clients:
            client.close()


def test_a_connection_that_comes_while_it_closes_troubles_nobody(opened):
    proxy = opened(Rules(hosts=LISTED))
    proxy.proxy.close()
    client, other = socket.socketpair()
    with other:
        proxy.proxy._serve(client)
        assert other.recv(10) == b""


def test_more_connections_than_are_served_are_closed_and_the_others_go_on(opened, echo):
    proxy = opened(operator(echo))
    idle = [proxy.connect() for _ in range(MOST_CONNECTIONS)]
    deadline = time.monotonic() + 5
    while len(proxy.proxy._threads) < MOST_CONNECTIONS and time.monotonic() < deadline:
        time.sleep(0.01)
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        assert proxy.say(b"") == b""
    for client in idle:
        client.close()
    while proxy.proxy._threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert proxy.say(b"GET http://package-index/ HTTP/1.1\r\nHost: h\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_host_that_cuts_its_answer_ends_the_request(opened):
    def cut(server):
        client, _ = server.accept()
        client.recv(1000)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        client.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=cut, args=(server,), daemon=True).start()
        proxy = opened(Rules(operator=(Endpoint("127.0.0.1", server.getsockname()[1], True),), hosts=LISTED))
        answer = proxy.say(b"GET http://package-index/ HTTP/1.1\r\nHost: h\r\n\r\n")
    assert answer.endswith(b"short")
    (entry,) = proxy.entries()
    assert entry.verdict == "failed"


@pytest.mark.parametrize(
    ("answer", "version", "status", "verdict"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n",
            b"1.0",
            b"200",
            "allowed",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n",
            b"1.1",
            b"200",
            "allowed",
        ),
        (b"", b"1.1", b"502", "failed"),
        (b"SSH-2.0-x\r\n\r\n", b"1.1", b"502", "failed"),
    ],
)
def test_whatever_a_host_answers_the_request_has_its_line(opened, answer, version, status, verdict):
    def say(server):
        client, _ = server.accept()
        client.recv(1000)
        client.sendall(answer)
        client.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=say, args=(server,), daemon=True).start()
        proxy = opened(Rules(operator=(Endpoint("127.0.0.1", server.getsockname()[1], True),), hosts=LISTED))
        said = proxy.say(b"GET http://package-index/ HTTP/" + version + b"\r\nHost: h\r\n\r\n")
    assert said.split()[1] == status
    (entry,) = proxy.entries()
    assert entry.verdict == verdict
