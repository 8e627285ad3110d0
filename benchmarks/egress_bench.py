"""What the way out costs a run that does not use it, what a call pays for it, and how fast bytes pass through."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.figures import seconds, table
from runner.egress import egress
from runner.egress.index import VARIABLE
from runner.sandbox import all_backends
from runner.sandbox.base import Backend, Mount, SandboxSpec
from tasks.registry import load_task

MEGABYTES = 200
TASK = "vqa-rad-task"


def opened_and_closed(place: Path) -> float:
    """Median seconds of opening and closing a way out that nobody uses."""

    def once() -> None:
        with egress("allowlist", load_task(TASK), place / "log"):
            pass

    return seconds(once, repeats=20)


def per_call(backend: Backend, place: Path) -> tuple[float, float]:
    """Seconds that the first call pays for the forwarder, and that every later one pays for looking after it."""
    workspace = place / backend.name
    workspace.mkdir()
    with egress("allowlist", load_task(TASK), place / "log") as opening:
        mounts = (Mount(workspace, "/workspace", writable=True), *opening.mounts)
        with backend.create(SandboxSpec("agent", "bench", mounts, env=opening.env)) as sandbox:

            def call(script: str) -> float:
                return sandbox.exec(["/bin/sh", "-c", script], deadline=60).seconds

            bare = sorted(call("true") for _ in range(15))[7]
            first = call(f"{opening.before_call}true")
            later = sorted(call(f"{opening.before_call}true") for _ in range(15))[7]
    return first - bare, later - bare


def throughput(place: Path) -> float:
    """MB/s of one download through a tunnel, client and server in this process too."""
    payload = b"x" * (1 << 20)

    def send(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            for _ in range(MEGABYTES):
                connection.sendall(payload)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        os.environ[VARIABLE] = f"http://127.0.0.1:{port}/simple"
        threading.Thread(target=send, args=(server,), daemon=True).start()
        with (
            egress("allowlist", load_task(TASK), place / "log") as opening,
            socket.socket(socket.AF_UNIX) as client,
        ):
            client.connect(str(opening.mounts[0].source / "proxy.sock"))
            client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % port)
            started = time.perf_counter()
            received = 0
            while data := client.recv(1 << 20):
                received += len(data)
            elapsed = time.perf_counter() - started
        del os.environ[VARIABLE]
    return received / elapsed / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = [
            (
                "way out opened and closed, unused",
                f"{1e3 * opened_and_closed(place):.1f} ms",
                "goal 30 ms a run",
            )
        ]
        for backend in all_backends():
            if backend.available().ok:
                first, later = per_call(backend, place)
                rows.append((f"first call, {backend.name}: forwarder starts", f"{1e3 * first:.0f} ms", ""))
                rows.append((f"later calls, {backend.name}", f"{1e3 * later:.0f} ms", ""))
        rows.append((f"download of {MEGABYTES} MB through a tunnel", f"{throughput(place):.0f} MB/s", ""))
    table(rows)


if __name__ == "__main__":
    main()
