"""The parts both back ends are made of, each on its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.sandbox import Mount, SandboxSpec, SandboxUnavailable, cgroups, choose_backend, endcall, selftest
from runner.sandbox.base import ExecResult, SandboxDead
from runner.sandbox.disk import DiskMeter
from runner.sandbox.docker_exec import Frames, read_ahead
from runner.sandbox.inside import CALL_VARIABLE, CallMarks, ids, workdir
from runner.sandbox.output import BoundedOutput
from runner.sandbox.owner import Owner
from runner.sandbox.supervise import supervise


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


# --- output -----------------------------------------------------------------------------------------------


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_output_keeps_head_and_tail_however_it_is_cut(data: bytes, places: list[int]):
    output = BoundedOutput(head=64, tail=64)
    for chunk in cut(data, places):
        output.feed(chunk)
    kept, dropped = output.finish()
    assert output.total == len(data)
    if len(data) <= 128:
        assert (kept, dropped) == (data, 0)
        return
    head, tail = kept.split(b"\n[... %d bytes dropped ...]\n" % dropped, 1)
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) + len(tail) + dropped == len(data)
    assert 60 <= len(head) <= 64
    assert 60 <= len(tail) <= 64


@given(st.text(alphabet="aé€𝄞", min_size=200, max_size=300))
def test_output_is_cut_between_characters(text: str):
    output = BoundedOutput(head=50, tail=50)
    output.feed(text.encode())
    output.finish()[0].decode()


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=8),
    st.lists(st.integers(0, 400)),
)
def test_frames_are_taken_off_however_the_stream_is_cut(frames: list[tuple[int, bytes]], places: list[int]):
    stream = b"".join(bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for kind, data in frames)
    taken = Frames()
    assert b"".join(taken.feed(part) for part in cut(stream, places)) == b"".join(data for _, data in frames)


def test_output_that_came_with_the_http_headers_is_not_lost():
    ours, engine = socket.socketpair()
    with ours, engine:
        engine.sendall(b"HTTP/1.1 101 UPGRADED\r\nfirst bytes")
        reader = ours.makefile("rb")
        assert reader.readline() == b"HTTP/1.1 101 UPGRADED\r\n"
        ours.setblocking(False)
        stream = SimpleNamespace(
            _response=SimpleNamespace(raw=SimpleNamespace(_fp=SimpleNamespace(fp=reader)))
        )
        assert read_ahead(stream) == b"first bytes"
        assert read_ahead(stream) == b""
        reader.close()


# --- marks and owners -------------------------------------------------------------------------------------


def test_marks_tell_earlier_calls_from_this_one():
    marks, other = CallMarks(), CallMarks()
    lease, job, call, later = marks.first(), marks.next(), marks.next(), marks.next()

    def earlier(mark: str, than: str = call) -> bool:
        environ = f"A=1\0{CALL_VARIABLE}={mark}\0B=2\0".encode()
        return endcall.is_earlier(environ, CALL_VARIABLE.encode(), than.encode())

    assert [earlier(mark) for mark in (lease, job, call, later, other.first(), "", "x.y")] == [
        True,
        True,
    ] + 5 * [False]
    assert earlier(lease, than=marks.beyond())
    assert not earlier(job, than=marks.beyond())
    assert not endcall.is_earlier(b"", CALL_VARIABLE.encode(), call.encode())


def test_ending_a_call_spares_the_processes_of_earlier_ones():
    marks = CallMarks()
    jobs = {mark: sleeper(mark) for mark in (marks.next(), marks.next())}
    earlier, this = jobs.items()
    unmarked = sleeper(None)
    mine = [process.pid for process in (*jobs.values(), unmarked)]

    def candidates() -> list[int]:
        return [pid for pid in mine if endcall.uid_of(pid) is not None]

    try:
        assert endcall.end_call(CALL_VARIABLE, this[0], candidates, patience=5)
        assert earlier[1].poll() is None
        assert state(earlier[1].pid) == "S"  # it was stopped for a moment, and goes on
        assert this[1].wait(5) == unmarked.wait(5) == -9
    finally:
        for process in (*jobs.values(), unmarked):
            process.kill()
            process.wait()


def sleeper(mark: str | None) -> subprocess.Popen[bytes]:
    environment = {} if mark is None else {CALL_VARIABLE: mark}
    process = subprocess.Popen(["/bin/sleep", "60"], env=environment)
    while b"sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
        time.sleep(0.001)
    return process


def state(pid: int) -> str:
    time.sleep(0.05)
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_owner_is_dead_only_when_that_is_certain():
    here = Owner.current()
    assert Owner.parse(str(here)) == here
    assert not here.is_dead()
    assert replace(here, start_time="1").is_dead()  # the pid was given to another process
    assert not replace(here, start_time="1", boot_id="x").is_dead()
    assert not replace(here, start_time="1", pid_namespace="2").is_dead()
    assert [Owner.parse(text) for text in ("", "a:b:c:d", "a:1:2", "a:1:2:3:4")] == [None] * 4


def test_a_zombie_is_a_dead_owner():
    with subprocess.Popen(["true"]) as process:
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert replace(Owner.current(), pid=process.pid).is_dead()


# --- the disk ---------------------------------------------------------------------------------------------


def test_the_meter_counts_blocks_entries_and_hard_links_once(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 1_000_000)
    (tmp_path / "link").hardlink_to(tmp_path / "a" / "file")
    (tmp_path / "loop").symlink_to(tmp_path)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10**12)
    usage = DiskMeter([tmp_path], disk_mb=10).measure()
    assert usage.entries == 5
    assert 1_000_000 <= usage.size < 1_100_000


def test_a_tree_too_deep_to_walk_is_over_the_cap(tmp_path: Path):
    script = "import os\nfor _ in range(600):\n os.mkdir('d' * 200); os.chdir('d' * 200)"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    with DiskMeter([tmp_path], disk_mb=1000).watching() as watch:
        pass
    assert watch.full
    subprocess.run(["rm", "-rf", str(tmp_path / ("d" * 200))], check=True)


# --- waiting ----------------------------------------------------------------------------------------------


class FakeCommand:
    """Speaks for ever, until it is killed."""

    killed = finished = False

    def read(self, timeout: float) -> bytes | None:
        time.sleep(min(timeout, 0.01))
        return None if self.killed else b"word "

    def kill(self) -> None:
        self.killed = True

    def finish(self) -> int:
        self.finished = True
        return 137

    def ran_out_of_memory(self) -> bool:
        return False


def wait_for(command: FakeCommand, on_output: Callable[[bytes], None] | None = None) -> ExecResult:
    return supervise(command, deadline=0.1, disk=DiskMeter([], 1), on_output=on_output)


def test_a_deadline_holds_while_output_never_pauses():
    result = wait_for(FakeCommand())
    assert (result.exit_code, result.timed_out) == (None, True)
    assert result.total_bytes > 0


def test_an_error_of_the_listener_kills_the_command_and_goes_on():
    def broken(_: bytes) -> None:
        raise RuntimeError("listener")

    command = FakeCommand()
    with pytest.raises(RuntimeError, match="listener"):
        wait_for(command, broken)
    assert command.killed
    assert command.finished


# --- control groups ---------------------------------------------------------------------------------------


def test_oom_kills_are_read_from_both_versions():
    assert cgroups.parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n") == 3
    assert cgroups.parse_oom_kills("low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 0\n") == 2
    assert cgroups.parse_oom_kills("") == 0


def test_a_version_2_group_is_made_in_the_nearest_delegated_ancestor(tmp_path: Path, monkeypatch):
    """On plain folders: no such hierarchy with controllers is mounted everywhere tests run."""
    scope = tmp_path / "user.slice" / "app.slice" / "runner.scope"
    scope.mkdir(parents=True)
    for folder, enabled in (
        (scope, ""),
        (scope.parent, "cpu memory pids"),
        (scope.parent.parent, "memory pids"),
    ):
        (folder / "cgroup.subtree_control").write_text(enabled)
        (folder / "cgroup.procs").write_text("")
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"": "/user.slice/app.slice/runner.scope"})
    cgroups.writable_parents.cache_clear()
    try:
        group = cgroups.create("automedbench.test", cgroups.Limits(2**20, 7, 0.5))
    finally:
        cgroups.writable_parents.cache_clear()
    made = scope.parent / "automedbench.test"
    assert group is not None
    assert group.controllers == {"memory", "pids", "cpu"}
    assert group.join_files() == [made / "cgroup.procs"]
    written = {
        name: (made / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.max")
    }
    assert written == {
        "memory.max": "1048576",
        "memory.swap.max": "0",
        "pids.max": "7",
        "cpu.max": "50000 100000",
    }
    assert group.child("call1").join_files() == [made / "call1" / "cgroup.procs"]


# --- choosing ---------------------------------------------------------------------------------------------


def test_an_unknown_back_end_is_named():
    with pytest.raises(SandboxUnavailable, match=r"'podman'.*docker or bubblewrap"):
        choose_backend("podman")  # type: ignore[arg-type]


def test_without_any_back_end_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailable, match=r"(?s)Docker.*install.*bwrap not found; install bubblewrap"):
        choose_backend("auto")


def test_a_wall_that_does_not_stand_makes_the_sandbox_unavailable():
    class Leaky:
        """Runs the probe on the host itself."""

        def exec(self, argv, *, deadline):
            done = subprocess.run([sys.executable, *argv[1:]], capture_output=True, timeout=deadline)
            return ExecResult(0, done.stdout, 0, 0, 0.0)

    with pytest.raises(SandboxUnavailable, match=r"failed its self-test.*network.*private data"):
        selftest.check(Leaky(), limited=False)  # type: ignore[arg-type]


def test_importing_the_package_loads_no_back_end():
    script = "import runner.sandbox, sys; print([m for m in ('docker', 'pydantic', 'requests') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_the_working_folder_is_one_that_exists():
    spec = SandboxSpec("evaluator", "r", (Mount(Path("/x"), "/out", writable=True),))
    assert workdir(spec) == "/tmp"
    assert workdir(replace(spec, workdir="/out/below")) == "/out/below"
    assert workdir(replace(spec, workdir="/outside")) == "/tmp"


def test_a_missing_source_is_named(tmp_path: Path):
    from runner.sandbox.files import prepare

    with pytest.raises(ValueError, match="does not exist"):
        prepare(SandboxSpec("agent", "r", (Mount(tmp_path / "no", "/workspace"),)))


def test_ids_are_unprivileged():
    assert ids() == ((10001, 10001) if os.getuid() == 0 else (os.getuid(), os.getgid()))


def test_sandbox_dead_while_killing_is_passed_on():
    class Gone(FakeCommand):
        def kill(self) -> None:
            raise SandboxDead("gone")

    with pytest.raises(SandboxDead, match="gone"):
        wait_for(Gone())
