import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scripted_server import ScriptedServer

from runner.agents.chat import ChatAgent
from runner.agents.profiles import ChatProfile

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def serve(monkeypatch):
    """Start a scripted server: ``serve(step, step, ...)``."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ExitStack() as stack:
        yield lambda *steps: stack.enter_context(ScriptedServer(steps))


@pytest.fixture
def chat():
    """Make a chat agent for a server; it does not really sleep unless it is told to."""

    def make(server, sleep=None, **profile):
        naps = []
        settings = {
            "kind": "chat",
            "model": "test/model",
            "base_url": server.url,
            "key_env": "TEST_KEY",
            "context_tokens": 100_000,
            "prices": {"input": 2, "output": 10, "cached": 0.5, "source": "a test", "date": "2026-01-01"},
        }
        made = ChatProfile.model_validate({**settings, **profile})
        agent = ChatAgent("tester", made, KEY, sleep=sleep or naps.append, jitter=lambda: 0.5)
        agent.naps = naps
        return agent

    return make
