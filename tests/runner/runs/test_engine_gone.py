"""The Docker engine goes away in the middle of a run: nobody's failure, one line, and the next run finishes."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest

from hf_datasets.records import load_record
from runner.sandbox import SandboxUnavailable, choose_backend

ENGINE = "/var/run/docker.sock"
pytestmark = pytest.mark.docker


class Proxy:
    """Passes on to the real engine, until it goes away with all its connections."""

    def __init__(self, path):
        self.path = path
        self._open = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(ENGINE)
                self._open += [client, engine]
                for ends in ((client, engine), (engine, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    @staticmethod
    def _pass_on(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def go_away(self):
        self.path.unlink(missing_ok=True)
        for one in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    try:
        choose_backend("docker")
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    if not Path(ENGINE).exists():
        pytest.skip("the engine is not on this machine")
    made = Proxy(tmp_path / "engine.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{made.path}")
    yield made
    made.go_away()


def test_an_engine_that_goes_away_is_no_agents_failure(command, replayed, proxy, monkeypatch):
    slow = replayed("import time; open('started', 'w').close(); time.sleep(120)")
    cell = dict(agents=slow, agent="scripted", sandbox="docker")
    folder = command.folder(agent="scripted")
    process = command.start(**cell)
    give_up = time.monotonic() + 60
    while not (folder / "workspace" / "started").exists():
        assert time.monotonic() < give_up
        time.sleep(0.05)
    proxy.go_away()
    _, err = process.communicate(timeout=60)
    assert b"Traceback" not in err
    assert process.returncode == 4, err
    record = load_record(folder / "unscored.json")
    assert (record.end_reason, record.overall) == ("infra_error", None)
    graded = command("regrade", folder, data=command.cell()["data"], sandbox="bubblewrap")
    assert graded.code == 3
    assert "no submission to grade" in graded.err

    answer = command.run(**cell)
    assert answer.code == 3
    assert "engine" in answer.err
    monkeypatch.delenv("DOCKER_HOST")
    assert command.run(**{**cell, "agents": replayed("pass")}).code == 0
    assert load_record(folder / "record.json").attempt == 2
