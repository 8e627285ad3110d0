"""From inside a real sandbox: what an agent's ordinary clients reach, what they are told, and what they cannot see."""

from __future__ import annotations

import os
import socket

import pytest


def test_pip_installs_from_the_operators_index(backend, cell, package_index):
    one = cell(backend)
    result = one.sh(
        "python3 -m venv --without-pip /workspace/v 2>/dev/null; python3 -m pip install -q --target "
        "/workspace/lib tinywheel && PYTHONPATH=/workspace/lib python3 -c 'import tinywheel; print(tinywheel.WORD)'"
    )
    assert result.exit_code == 0, result.output.decode()
    assert b"installed" in result.output
    requests = one.requests()
    assert {request.verdict for request in requests} == {"allowed"}
    assert {request.host for request in requests} == {"package-index"}
    assert any(request.path.endswith(".whl") and request.received > 300 for request in requests)
    assert str(package_index.port) not in one.log.read_text()


def test_refusals_are_readable_and_nothing_of_the_host_or_its_network_is_reached(
    backend, cell, secret_service
):
    one = cell(backend)  # the colon task: its labels come from the Decathlon
    for url, words in {
        "https://medicaldecathlon.com/x": "403 medicaldecathlon.com holds data or labels of this task",
        "http://msd-for-monai.s3-us-west-2.amazonaws.com/Task10_Colon.tar": "holds data or labels of this task",
        "https://example.com/": "403 example.com is not among the package indexes and model hubs",
        "http://169.254.169.254/latest/meta-data/": "not among the package indexes",
        f"http://{_address_of_this_machine()}:{secret_service.port}/": "not among the package indexes",
        "http://192.168.1.1/": "not among the package indexes",
        f"http://host.docker.internal:{secret_service.port}/": "not among the package indexes",
    }.items():
        assert words in one.fetch(url), url
    assert {request.verdict for request in one.requests()} == {"refused"}
    assert [request.rule for request in one.requests()][:2] == ["labels", "labels"]
    # Past the proxy variables there is no way at all, and the name of this machine is its own loopback.
    for host in ("127.0.0.1", _address_of_this_machine(), "172.17.0.1", "169.254.169.254", "1.1.1.1"):
        code = f'import socket; socket.create_connection(("{host}", {secret_service.port}), 3)'
        assert b"Error" in one.sh(f"python3 -c '{code}'").output, host
    asked = f"CONNECT 127.0.0.1:{secret_service.port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
    assert b"403" in one.sh(f"python3 -c '{_through_socket(asked)}'").output
    assert secret_service.asked == []


def test_tools_of_the_shell_and_of_python_see_why(backend, cell):
    one = cell(backend)
    words = b"medicaldecathlon.com holds data or labels of this task"
    pip = one.sh("python3 -m pip install --retries 1 --index-url https://medicaldecathlon.com/simple six")
    assert pip.exit_code != 0
    assert words in pip.output
    curl = one.sh(
        "command -v curl >/dev/null || { echo absent; exit 0; }; curl -sS https://medicaldecathlon.com/ -v"
    )
    assert words in curl.output or b"absent" in curl.output


def test_no_other_cell_can_reach_the_socket_and_none_is_left(backend, cell, tmp_path):
    one, other = cell(backend), cell(backend)
    folder = one.opening.mounts[0].source
    assert folder.parent.stat().st_mode & 0o077 == 0  # closed to other users of this machine
    state = (folder / "proxy.sock").lstat()
    assert state.st_mode & 0o077 == 0
    assert (
        other.sh(f"ls -la {folder} {folder.parent}; find / -name proxy.sock 2>/dev/null").output.count(
            b"proxy.sock"
        )
        == 1
    )
    assert b"Read-only" in one.sh("touch /opt/egress/x; rm -f /opt/egress/proxy.sock; ls /opt/egress").output
    one.fetch("http://first.example/")
    other.fetch("http://second.example/")
    assert [request.host for request in one.requests()] == ["first.example"]
    assert [request.host for request in other.requests()] == ["second.example"]


def test_the_forwarder_runs_as_the_agent_once_and_comes_back_when_it_is_killed(backend, cell):
    one = cell(backend)
    find = (
        "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^python3 -IS' "
        "&& stat -c '%u %n' $p; done"
    )
    uid, process = one.sh(find).output.split()
    assert uid == str(os.getuid() or 10001).encode()
    assert one.sh(find).output.split() == [uid, process]
    one.sh(f"kill -9 {process.decode().removeprefix('/proc/')}")
    assert "403" in one.fetch("http://example.com/")
    slow = one.sh("sleep 60", deadline=1)
    assert slow.timed_out
    assert "403" in one.fetch("http://example.com/")


def test_local_servers_of_the_agent_are_reached_without_the_proxy(backend, cell):
    one = cell(backend)
    result = one.sh(
        "cd /workspace && echo mine > page.txt;"
        "(python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &); sleep 1;"
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/page.txt\").read())'"
    )
    assert b"mine" in result.output
    assert one.requests() == []


def _address_of_this_machine() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no network at all")
        return probe.getsockname()[0]


def _through_socket(text: str) -> str:
    return (
        'import socket; s = socket.socket(socket.AF_UNIX); s.connect("/opt/egress/proxy.sock"); '
        f's.sendall(b"{text}"); print(s.recv(500))'
    )
