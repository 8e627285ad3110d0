"""Sandboxes for the tests. AUTOMEDBENCH_REQUIRE_SANDBOXES=1 makes a missing back end a failure instead of a skip."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from runner.sandbox import Backend, Mount, Sandbox, SandboxSpec, SandboxUnavailable, choose_backend

BACKENDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
Make = Callable[..., Sandbox]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    try:
        return choose_backend(request.param)
    except SandboxUnavailable as reason:
        if os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES"):
            pytest.fail(str(reason))
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> SandboxSpec:
    """One case's public and private data on the host, of which the agent is to see the public part alone."""
    root = tmp_path_factory.mktemp("cell")
    for name in ("workspace", "public", "private"):
        (root / name).mkdir()
    (root / "public" / "image.txt").write_text("pixels")
    (root / "private" / "reference.txt").write_text("the answer")
    mounts = (Mount(root / "workspace", "/workspace", writable=True), Mount(root / "public", "/data/public"))
    return SandboxSpec("agent", "conformance", mounts, memory_mb=512, pids=64, disk_mb=100, lease_seconds=600)


@pytest.fixture(scope="module")
def sandbox(backend: Backend, spec: SandboxSpec) -> Iterator[Sandbox]:
    """One sandbox that the harmless tests share."""
    with backend.create(spec) as started:
        yield started


@pytest.fixture
def make(backend: Backend, spec: SandboxSpec, tmp_path: Path) -> Iterator[Make]:
    """Start a sandbox of one's own, with some fields of the spec changed."""
    with ExitStack() as stack:

        def start(**changes: object) -> Sandbox:
            workspace = tmp_path / "workspace"
            workspace.mkdir(exist_ok=True)
            mounts = (Mount(workspace, "/workspace", writable=True),)
            return stack.enter_context(backend.create(replace(spec, **{"mounts": mounts, **changes})))

        yield start


@pytest.fixture(scope="session")
def host_processes() -> Callable[[str], list[psutil.Process]]:
    return find_host_processes


@pytest.fixture(scope="session")
def eventually() -> Callable[..., bool]:
    return wait_until


def find_host_processes(word: str) -> list[psutil.Process]:
    """Processes of the whole machine, sandboxes included, with this word in their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if any(word in part for part in words) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def wait_until(true: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
