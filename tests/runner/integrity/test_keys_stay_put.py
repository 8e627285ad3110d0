"""Keys come from the environment or the keyring, and end nowhere: no file, no command line, no log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from runner import keys

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))

from scripted_server import Answer, ScriptedServer, execute, submit, whole

REPOSITORY = Path(__file__).parents[3]
LOOK = """
import glob, os
print(dict(os.environ))
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try: print(open(path).read())
    except OSError: pass
"""
KEY = "sk-planted-0123456789abcdef"


@pytest.fixture
def keyring(monkeypatch):
    """The real package with a backend in memory."""
    package = pytest.importorskip("keyring")
    from keyring.backend import KeyringBackend

    class InMemory(KeyringBackend):
        priority = 1
        held: dict[tuple[str, str], str] = {}  # noqa: RUF012 - the package makes one instance of a class

        def get_password(self, service, username):
            return self.held.get((service, username))

        def set_password(self, service, username, password):
            self.held[service, username] = password

    before = package.get_keyring()
    package.set_keyring(InMemory())
    monkeypatch.delenv("A_KEY", raising=False)
    yield package
    package.set_keyring(before)


def test_the_environment_comes_first_then_the_keyring(keyring, monkeypatch):
    assert keys.find_key("A_KEY") is None
    keyring.set_password("automedbench", "A_KEY", f" {KEY}\n")
    assert keys.find_key("A_KEY") == KEY
    monkeypatch.setenv("A_KEY", "from-the-environment")
    assert keys.find_key("A_KEY") == "from-the-environment"


def test_a_keyring_that_does_not_run_is_no_key(keyring):
    from keyring.backends.fail import Keyring

    keyring.set_keyring(Keyring())
    assert keys.find_key("A_KEY") is None


class Listener(threading.Thread):
    """Looks at every command line of the machine until it is told to stop."""

    def __init__(self, word: str) -> None:
        super().__init__(daemon=True)
        self.word = word
        self.seen: list[list[str]] = []
        self.looks = 0
        self.enough = threading.Event()

    def run(self) -> None:
        while not self.enough.wait(0.05):
            self.looks += 1
            for process in psutil.process_iter(["cmdline"]):
                if any(self.word in part for part in process.info["cmdline"] or ()):
                    self.seen.append(process.info["cmdline"])


@pytest.mark.bubblewrap
def test_a_key_is_in_no_file_no_command_line_and_no_log(tmp_path, data):
    """A whole run against a server that is rude enough to repeat the key in its errors."""
    said = json.dumps({"error": {"message": f"wait, {KEY}!"}}).encode()
    rude = Answer(said, status=429, headers={"Retry-After": "0"})
    answers = [rude, whole(calls=[execute(LOOK)]), whole(calls=[submit()]), whole(calls=[submit("s2")])]
    with ScriptedServer(answers) as server:
        profile = {
            "kind": "chat", "model": "m", "base_url": server.url, "key_env": "PLANTED_KEY", "context_tokens": 100_000,
            "retries": {"first_wait": 0.01},
        }  # fmt: skip
        (tmp_path / "agents.yaml").write_text(json.dumps({"agents": {"talker": profile}}))
        listener = Listener(KEY)
        listener.start()
        words = [
            "run",
            "--agent",
            "talker",
            "--task",
            "vqa-rad-task",
            "--sandbox",
            "bubblewrap",
            "--data",
            data,
        ]
        words += ["--runs-dir", tmp_path / "runs", "--agents", tmp_path / "agents.yaml", "--network", "none"]
        done = subprocess.run(
            [sys.executable, "-m", "runner", *map(str, words)],
            capture_output=True, text=True, cwd=REPOSITORY, env={**os.environ, "PLANTED_KEY": KEY},
        )  # fmt: skip
        listener.enough.set()
        listener.join()
        assert done.returncode == 0, done.stderr
        sent = [request.headers for request in server.requests]
    assert all(KEY in str(headers) for headers in sent)  # it was used
    assert KEY not in done.stdout + done.stderr
    assert listener.looks > 3
    assert listener.seen == []
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(path.name == "trace.jsonl" and b"[key]" in path.read_bytes() for path in written)
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
