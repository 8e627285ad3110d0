"""Real sweeps through the real command line."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
sys.path.insert(0, str(Path(__file__).parent))

from scripted_server import ScriptedServer
from sweep_parts import Forever, Model, Sweep

from runner.sandbox import all_backends

REQUIRED = os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") == "1"


@pytest.fixture
def model(monkeypatch):
    """Start the model: ``model(code=..., before=...)``."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ExitStack() as stack:

        def start(**settings):
            made = Model(**settings)
            made.server = ScriptedServer([])
            made.server.steps = Forever(made)
            stack.enter_context(made.server)
            return made

        yield start


@pytest.fixture(scope="session")
def usable():
    """Skip, or fail where CI requires it, when a sandbox is not to be had."""

    def check(name):
        backend = next(backend for backend in all_backends() if backend.name == name)
        availability = backend.available()
        if not availability.ok:
            (pytest.fail if REQUIRED else pytest.skip)(f"{name}: {availability.detail}")
        return name

    return check


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Staged phantoms, made once."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def sweep(tmp_path, data):
    return Sweep(tmp_path, data)
