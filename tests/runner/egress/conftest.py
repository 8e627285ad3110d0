"""A package index and other services on loopback, and sandboxes with a way out."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runner.egress import egress
from runner.egress.index import VARIABLE
from runner.egress.ledger import read_ledger
from runner.sandbox import Mount, SandboxSpec, SandboxUnavailable, choose_backend
from tasks.registry import load_task

TASK = "colon-seg-task"
BACKENDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Service:
    """An HTTP server on loopback that keeps the paths it was asked for."""

    def __init__(self, handler) -> None:
        self.asked: list[str] = []
        service = self

        class Recording(handler):
            def parse_request(self):
                done = super().parse_request()
                service.asked.append(getattr(self, "path", "?"))
                return done

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Recording)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def serve() -> Iterator:
    """Start services; closed in the end."""
    with ExitStack() as stack:

        def start(handler) -> Service:
            service = Service(handler)
            stack.callback(service.close)
            return service

        yield start


@pytest.fixture
def secret_service(serve):
    """A service of the host that no agent may see."""

    class Secret(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"the host's secret")

        def log_message(self, *args):
            pass

    return serve(Secret)


@pytest.fixture(scope="session")
def index_folder(tmp_path_factory) -> Path:
    """A simple index with one tiny wheel, as pip reads it."""
    root = tmp_path_factory.mktemp("index")
    project = root / "simple" / "tinywheel"
    project.mkdir(parents=True)
    name, info = "tinywheel-1.0-py3-none-any.whl", "tinywheel-1.0.dist-info"
    files = {
        "tinywheel.py": "WORD = 'installed'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinywheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(project / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    digest = hashlib.sha256((project / name).read_bytes()).hexdigest()
    (project / "index.html").write_text(f'<a href="{name}#sha256={digest}">{name}</a>')
    return root


@pytest.fixture
def package_index(serve, index_folder, monkeypatch) -> Service:
    """The index on loopback, permitted by the operator."""
    service = serve(_in(index_folder))
    monkeypatch.setenv(VARIABLE, f"http://127.0.0.1:{service.port}/simple")
    return service


def _in(folder: Path):
    class InFolder(Quiet):
        def __init__(self, *args, **options):
            super().__init__(*args, directory=str(folder), **options)

    return InFolder


@pytest.fixture(params=BACKENDS)
def backend(request):
    try:
        return choose_backend(request.param)
    except SandboxUnavailable as reason:
        (pytest.fail if os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") else pytest.skip)(str(reason))


class Cell:
    """A sandbox with its way out, as a run has it."""

    def __init__(self, sandbox, opening, log: Path) -> None:
        self.sandbox = sandbox
        self.opening = opening
        self.log = log

    def sh(self, script: str, deadline: float = 60):
        argv = ["/bin/sh", "-c", f"{self.opening.before_call}exec 2>&1; {script}"]
        return self.sandbox.exec(argv, deadline=deadline)

    def fetch(self, url: str) -> str:
        """What Python's own client says about an address: status and body, or the error."""
        code = (
            "import sys, urllib.request as u, urllib.error as e\n"
            "try: r = u.urlopen(sys.argv[1], timeout=20); print(r.status, r.read().decode()[:300])\n"
            "except e.HTTPError as error: print(error.code, error.read().decode()[:300])\n"
            "except OSError as error: print(error)"
        )
        return self.sh(f"python3 -c '{code}' '{url}'").output.decode()

    def requests(self):
        return list(read_ledger(self.log))


@pytest.fixture
def cell(tmp_path) -> Iterator:
    """Open a cell: ``cell(backend)``; several may be open at once."""
    with ExitStack() as stack:
        count = iter(range(100))

        def open_(backend, task=TASK) -> Cell:
            place = tmp_path / f"cell{next(count)}"
            workspace = place / "workspace"
            workspace.mkdir(parents=True)
            log = place / "downloads.jsonl"
            opening = stack.enter_context(egress("allowlist", load_task(task), log))
            spec = SandboxSpec(
                role="agent",
                run_id="egress-test",
                mounts=(Mount(workspace, "/workspace", writable=True), *opening.mounts),
                env=opening.env,
                memory_mb=1024,
                pids=64,
                disk_mb=200,
                lease_seconds=300,
            )
            return Cell(stack.enter_context(backend.create(spec)), opening, log)

        yield open_
