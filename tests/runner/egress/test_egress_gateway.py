"""Opening and closing a way out: what is left of it, and what is said when it cannot be had."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import tempfile
import threading

import pytest

from runner.egress import egress, forward, gateway, require_egress
from runner.errors import EnvironmentProblem
from tasks.registry import load_task

TASK = load_task("colon-seg-task")


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("egress")]


def test_other_networks_open_nothing(tmp_path):
    for network in ("none", "open"):
        require_egress(network)
        with egress(network, TASK, tmp_path / "log") as opening:
            assert (opening.mounts, dict(opening.env), opening.before_call) == ((), {}, "")
            assert threads() == []


def test_nothing_is_left_of_one_that_was_never_used(tmp_path):
    with egress("allowlist", TASK, tmp_path / "log") as opening:
        folder = opening.mounts[0].source
        assert not opening.mounts[0].writable
        assert threads() == ["egress-accept"]
    assert threads() == []
    assert not folder.parent.exists()
    assert not (tmp_path / "log").exists()


def test_an_error_inside_closes_it_too(tmp_path):
    with pytest.raises(KeyboardInterrupt), egress("allowlist", TASK, tmp_path / "log"):
        raise KeyboardInterrupt
    assert threads() == []


def test_a_connection_that_says_nothing_ends_with_the_run(tmp_path):
    with socket.socket(socket.AF_UNIX) as client:
        with egress("allowlist", TASK, tmp_path / "log") as opening:
            client.connect(str(opening.mounts[0].source / gateway.SOCKET))
            client.sendall(b"CONNECT ")
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(100) == b""
    assert threads() == []


def test_forwarder_and_host_agree_on_port_and_socket():
    assert forward.PORT == gateway.PORT
    assert forward.SOCKET.endswith(f"/{gateway.SOCKET}")


def test_a_machine_without_h11_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        EnvironmentProblem, match="needs the package h11; install it, or choose --network none"
    ):
        require_egress("allowlist")


def test_a_place_for_the_socket_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with (
        pytest.raises(EnvironmentProblem, match=r"socket cannot be made below .*absent.*set TMPDIR"),
        egress("allowlist", TASK, tmp_path / "log"),
    ):
        pass


def test_a_long_path_is_no_hindrance(tmp_path, monkeypatch):
    place = tmp_path / ("x" * 120)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with egress("allowlist", TASK, tmp_path / "log") as opening:
        assert (opening.mounts[0].source / gateway.SOCKET).is_socket()
