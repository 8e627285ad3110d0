"""A host with canaries on it, and sandboxes for an agent that looks for them."""

from __future__ import annotations

import http.server
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from usable_backend import usable

from runner.sandbox import Backend

BACKENDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return usable(request.param)


@dataclass
class Canary:
    """Everything that must stay unseen carries ``token``; ``visits`` counts who came to the host's service."""

    token: str
    port: int
    abstract: str
    key_variable: str
    folder: Path
    visits: list[str] = field(default_factory=list)

    @property
    def host_file(self) -> Path:
        return self.folder / "host-canary.txt"

    @property
    def other_cell(self) -> Path:
        return self.folder / "other-cell"

    @property
    def address(self) -> str:
        """An address of the host that is not loopback."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
                return str(probe.getsockname()[0])
            except OSError:
                return "127.0.0.2"


@pytest.fixture(scope="session")
def canary(tmp_path_factory) -> Iterator[Canary]:
    """A service on every address and one in the abstract socket namespace, a file, a key in the runner's environment,
    and another cell's workspace.
    """
    token = f"canary-{secrets.token_hex(12)}"
    folder = tmp_path_factory.mktemp("host")
    folder.chmod(0o755)
    made = Canary(token, 0, f"automedbench-{token[-8:]}", "OPENROUTER_API_KEY", folder)

    class Service(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.visits.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(token.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Service)
    made.port = server.server_address[1]
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0{made.abstract}")
    abstract.listen()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.host_file.write_text(token)
    (made.other_cell / "workspace").mkdir(parents=True)
    (made.other_cell / "workspace" / "secret.txt").write_text(token)
    patch = pytest.MonkeyPatch()
    patch.setenv(made.key_variable, f"sk-{token}")
    yield made
    patch.undo()
    abstract.close()
    server.shutdown()
    server.server_close()
