"""How sandboxes end: stopped, killed, orphaned, reaped."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from runner.sandbox import Backend, Mount, Sandbox, SandboxDead, SandboxSpec
from runner.sandbox.owner import Owner

Make = Callable[..., Sandbox]


def sh(sandbox: Sandbox, script: str) -> str:
    """Output of a shell script that must succeed."""
    result = sandbox.exec(["sh", "-c", script], deadline=20)
    assert result.exit_code == 0, result
    return result.output.decode()


def test_stop_leaves_nothing_and_may_be_repeated(make, host_processes, eventually):
    sandbox = make()
    word = f"94{secrets.randbelow(10**9)}"
    sh(sandbox, f"setsid sleep {word} >/dev/null 2>&1 &")
    assert eventually(lambda: len(host_processes(word)) == 1)
    sandbox.stop()
    assert host_processes(word) == []
    assert not sandbox.alive()
    sandbox.stop()
    with pytest.raises(SandboxDead):
        sandbox.exec(["true"], deadline=5)


def test_a_sandbox_killed_from_outside_is_reported_dead(backend, make, host_processes, eventually):
    run_id = secrets.token_hex(4)
    sandbox = make(run_id=run_id)
    word = f"93{secrets.randbelow(10**9)}"

    def kill() -> None:
        assert eventually(lambda: any(process.name() == "sleep" for process in host_processes(word)))
        kill_from_outside(backend, run_id, host_processes(word))

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SandboxDead, match="killed"):
        sandbox.exec(["sleep", word], deadline=20)
    killer.join()
    assert not sandbox.alive()
    with pytest.raises(SandboxDead):
        sandbox.exec(["true"], deadline=5)


def kill_from_outside(backend: Backend, run_id: str, processes: list[psutil.Process]) -> None:
    for container in leftovers(backend, run_id):
        subprocess.run(["docker", "kill", container], check=True, capture_output=True)
    if backend.name == "bubblewrap":
        inside = next(process for process in processes if process.name() == "sleep")
        namespace = namespace_of(inside.pid)
        first = min(pid for pid in psutil.pids() if namespace_of(pid) == namespace)
        os.kill(first, signal.SIGKILL)


def namespace_of(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


RUNNER = """
import sys, time
from contextlib import closing
from pathlib import Path
from typing import Any
from runner.sandbox import Mount, SandboxSpec, choose_backend
backend, workspace, run_id, word = sys.argv[1:]
spec = SandboxSpec("agent", run_id, (Mount(Path(workspace), "/workspace", writable=True),), memory_mb=256, pids=64)
with choose_backend(backend).create(spec) as sandbox:
    sandbox.exec(["sh", "-c", f"setsid sleep {word} >/dev/null 2>&1 &"], deadline=10)
    ready = lambda output: print(output.decode(), flush=True)
    sandbox.exec(["sh", "-c", f"echo ready; sleep {word}"], deadline=600, on_output=ready)
"""


def test_kill_9_of_the_runner_leaves_nothing(backend: Backend, tmp_path: Path, host_processes, eventually):
    word = f"92{secrets.randbelow(10**9)}"
    command = [sys.executable, "-c", RUNNER, backend.name, str(tmp_path), f"run-{word}", word]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        assert len(host_processes(f"sleep {word}")) + len(host_processes(word)) > 2
        runner.kill()
    assert eventually(lambda: host_processes(word) == [], seconds=10)
    assert eventually(lambda: backend.reap() == [] and leftovers(backend, f"run-{word}") == [])


def leftovers(backend: Backend, run_id: str) -> list[str]:
    if backend.name != "docker":
        return []
    with closing(engine()) as client:
        found = client.containers(all=True, filters={"label": f"automedbench.run={run_id}"})
    return [container["Id"] for container in found]


def engine() -> Any:
    import docker

    return docker.APIClient()


def test_reap_touches_only_the_dead(backend: Backend, make: Make, eventually):
    living = make()
    with subprocess.Popen(["true"]) as ended:
        pass
    here = Owner.current()
    dead = replace(here, pid=ended.pid)
    foreign = [
        replace(here, pid=ended.pid, pid_namespace="1"),
        replace(here, pid=ended.pid, boot_id="another-boot"),
        "not ours",
    ]
    kept = [plant(backend, str(owner)) for owner in foreign]
    gone = plant(backend, str(dead))
    try:
        assert len(backend.reap()) >= 1
        assert eventually(lambda: not gone.alive())
        assert all(planted.alive() for planted in kept)
        assert living.exec(["true"], deadline=10).exit_code == 0
        assert eventually(lambda: backend.reap() == [])
    finally:
        for planted in [*kept, gone]:
            planted.end()


class Planted:
    """What a runner left behind, made by hand so that nothing ends it by itself."""

    def __init__(self, alive: Callable[[], bool], end: Callable[[], object]) -> None:
        self.alive = alive
        self.end = end


def plant(backend: Backend, owner: str) -> Planted:
    if backend.name == "docker":
        return planted_container(backend, owner)
    process = subprocess.Popen(
        ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "sleep", "60"],
        env={"PATH": os.environ["PATH"], "AUTOMEDBENCH_OWNER": owner},
    )
    while len(inside := psutil.Process(process.pid).children(recursive=True)) < 2:
        time.sleep(0.01)

    def end() -> None:
        for one in inside:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()

    return Planted(lambda: process.poll() is None, end)


def planted_container(backend: Backend, owner: str) -> Planted:
    from runner.sandbox.docker import OWNER_LABEL

    client = engine()
    image = backend.environment_digest("agent")
    container = client.create_container(image, ["sleep", "60"], labels={OWNER_LABEL: owner})["Id"]
    client.start(container)

    def alive() -> bool:
        return bool(client.containers(filters={"id": container}))

    def end() -> None:
        if client.containers(all=True, filters={"id": container}):
            client.remove_container(container, force=True)
        client.close()

    return Planted(alive, end)


def test_sandboxes_side_by_side(backend: Backend, spec: SandboxSpec, tmp_path: Path):
    failures: list[BaseException] = []

    def one(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            with backend.create(
                replace(spec, mounts=(Mount(folder, "/workspace", writable=True),))
            ) as sandbox:
                assert sh(sandbox, f"echo {number} > n; ls; cat n") == f"home\nn\n{number}\n"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_protections_are_all_declared(backend: Backend):
    names = [protection.name for protection in backend.protections()]
    assert names == [
        *(
            "network",
            "uid",
            "capabilities",
            "no_new_privs",
            "seccomp",
            "kernel",
            "memory",
            "pids",
            "cpu",
            "disk",
            "fsize",
        ),
        *("read_only_root", "private_data", "dead_mans_switch", "gpu"),
    ]


def test_the_environment_has_a_digest(backend: Backend):
    digests = {backend.environment_digest("agent"), backend.environment_digest("evaluator")}
    assert len(digests) == 2
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in digests)
