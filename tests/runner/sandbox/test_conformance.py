"""What every back end must do, tried on the real thing."""

from __future__ import annotations

import hashlib
import os
import resource
import secrets
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.sandbox import Mount, Sandbox, SandboxDead
from runner.sandbox.inside import ids

Make = Callable[..., Sandbox]
UID = ids()[0]


def sh(sandbox: Sandbox, script: str, deadline: float = 20, **options: object) -> str:
    """Output of a shell script that must succeed."""
    result = sandbox.exec(["sh", "-c", script], deadline=deadline, **options)
    assert result.exit_code == 0, result
    return result.output.decode()


def python(sandbox: Sandbox, script: str, deadline: float = 30) -> str:
    result = sandbox.exec(["python3", "-c", script], deadline=deadline)
    assert result.exit_code == 0, result.output.decode(errors="replace")
    return result.output.decode()


# --- commands and their output ----------------------------------------------------------------------------


def test_exit_codes(sandbox):
    assert [
        sandbox.exec(["sh", "-c", f"exit {code}"], deadline=10).exit_code for code in (0, 1, 42, 255)
    ] == [*(0, 1, 42, 255)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_an_end_by_signal_is_128_plus_its_number(sandbox, number):
    result = sandbox.exec(["sh", "-c", f"kill -{int(number)} $$"], deadline=10)
    assert (result.exit_code, result.timed_out, result.oom) == (128 + number, False, False)


def test_a_missing_program_is_127(sandbox):
    result = sandbox.exec(["no-such-program"], deadline=10)
    assert result.exit_code == 127
    assert b"no-such-program" in result.output


def test_command_lines_that_cannot_be_are_refused_alike(sandbox):
    for argv in ([], ["echo", "a\0b"], ["echo", "x" * 131_072]):
        with pytest.raises(ValueError, match="command line"):
            sandbox.exec(argv, deadline=10)
    assert sandbox.exec(["echo", "a\ud800b"], deadline=10).output == b"a?b\n"


def test_binary_output_arrives_unchanged(sandbox):
    result = sandbox.exec(["python3", "-c", "import os; os.write(1, bytes(range(256)) * 200)"], deadline=10)
    assert result.output == bytes(range(256)) * 200
    assert (result.total_bytes, result.dropped_bytes) == (51_200, 0)


def test_stdout_and_stderr_are_merged_in_order(sandbox):
    assert sh(sandbox, "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three") == "one\ntwo\nthree\n"


def test_utf8_survives_being_cut_between_writes(sandbox):
    script = "import os, time\nfor b in '€𝄞é'.encode():\n os.write(1, bytes([b])); time.sleep(0.01)"
    chunks: list[bytes] = []
    result = sandbox.exec(["python3", "-c", script], deadline=10, on_output=chunks.append)
    assert result.output.decode() == b"".join(chunks).decode() == "€𝄞é"


def test_output_streams_while_the_command_runs(sandbox):
    seen: list[float] = []
    began = time.monotonic()
    sandbox.exec(
        ["sh", "-c", "echo a; sleep 1"], deadline=10, on_output=lambda _: seen.append(time.monotonic())
    )
    assert seen[0] - began < 0.7


@pytest.mark.parametrize("size", [300_000_000, pytest.param(2_000_000_000, marks=pytest.mark.slow)])
def test_a_flood_leaves_the_runners_memory_flat(sandbox, size):
    sandbox.exec(["true"], deadline=10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = sandbox.exec(["sh", "-c", f"echo first; head -c {size} /dev/zero; echo last"], deadline=120)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.exit_code == 0
    assert result.total_bytes == size + 11
    assert result.output.startswith(b"first\n")
    assert result.output.endswith(b"last\n")
    assert f"[... {result.dropped_bytes} bytes dropped ...]".encode() in result.output
    assert len(result.output) < 70_000
    assert grown_kib < 16 * 1024


def test_a_line_of_50_mb(sandbox):
    result = sandbox.exec(["sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x"], deadline=60)
    assert (result.exit_code, result.total_bytes) == (0, 50_000_000)


def test_standard_input_is_given_and_closed(sandbox):
    payload = os.urandom(3_000_000)
    result = sandbox.exec(["sh", "-c", "sha256sum"], deadline=30, stdin=payload)
    assert result.output.split()[0].decode() == hashlib.sha256(payload).hexdigest()
    assert sandbox.exec(["cat"], deadline=10, stdin=b"").output == b""
    assert sandbox.exec(["cat"], deadline=10).exit_code == 0
    assert sandbox.exec(["true"], deadline=10, stdin=payload).exit_code == 0  # never read


def test_environment_and_working_folder(sandbox, monkeypatch):
    monkeypatch.setenv("PROVIDER_KEY", "secret")
    assert (
        sh(sandbox, "pwd; echo $HOME; echo $X", env={"X": "a=b c"}) == "/workspace\n/workspace/home\na=b c\n"
    )
    assert sh(sandbox, "pwd", cwd="/data/public") == "/data/public\n"
    assert "secret" not in sh(sandbox, "env")
    assert sandbox.exec(["true"], deadline=10, cwd="/nowhere").exit_code not in (0, None)


def test_the_locked_packages_are_there(sandbox):
    script = "import numpy, scipy, skimage, PIL, nibabel, pandas, matplotlib; print(numpy.__file__)"
    assert python(sandbox, script, deadline=60).startswith("/opt/site/")


# --- time -------------------------------------------------------------------------------------------------


def test_a_deadline_ends_children_that_left_the_session_and_ignore_term(sandbox, host_processes):
    word = f"98{secrets.randbelow(10**9)}"
    script = (
        f"setsid sh -c 'trap \"\" TERM; sleep {word}; true' & echo begun; trap '' TERM; sleep {word}; true"
    )
    result = sandbox.exec(["sh", "-c", script], deadline=1)
    assert (result.timed_out, result.exit_code, result.output) == (True, None, b"begun\n")
    assert result.seconds < 5
    assert host_processes(word) == []


def test_a_deadline_ends_processes_that_hide_their_mark(sandbox, host_processes):
    word = f"97{secrets.randbelow(10**9)}"
    sandbox.exec(["sh", "-c", f"env -i setsid sleep {word} & sleep 30"], deadline=1)
    assert host_processes(word) == []


def test_background_jobs_of_earlier_calls_outlive_a_later_deadline(sandbox, host_processes):
    word = f"96{secrets.randbelow(10**9)}"
    began = time.monotonic()
    sh(sandbox, f"(sleep {word}; true) & echo started; (while sleep 0.05; do echo noise; done) &")
    assert time.monotonic() - began < 3  # though the jobs hold the output open
    assert sandbox.exec(["sleep", "30"], deadline=1).timed_out
    assert len(host_processes(f"sleep {word}")) >= 1
    assert "noise" not in sh(sandbox, "echo quiet")
    sh(sandbox, "for p in /proc/[0-9]*; do grep -qs '[n]oise' $p/cmdline && kill -9 ${p#/proc/}; done; true")


def test_a_fork_bomb_ends_with_its_call(sandbox):
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    result = sandbox.exec(["python3", "-c", bomb], deadline=2)
    assert result.timed_out
    assert result.seconds < 15
    assert sh(sandbox, "echo fine") == "fine\n"


def test_an_interrupted_wait_ends_the_command(sandbox, host_processes, eventually):
    word = f"95{secrets.randbelow(10**9)}"

    def interrupt(chunk: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sandbox.exec(["sh", "-c", f"echo go; sleep {word}"], deadline=30, on_output=interrupt)
    assert eventually(lambda: host_processes(word) == [])
    assert sh(sandbox, "echo fine") == "fine\n"


def test_the_lease_ends_a_forgotten_sandbox(make):
    sandbox = make(lease_seconds=2)
    began = time.monotonic()
    with pytest.raises(SandboxDead, match="lease"):
        sandbox.exec(["sleep", "60"], deadline=30)
    assert time.monotonic() - began < 10
    assert not sandbox.alive()


# --- limits -----------------------------------------------------------------------------------------------


def test_a_child_without_memory_is_killed_and_reported(backend, make):
    sandbox = make(memory_mb=128)
    eat = "python3 -c 'x = bytearray(400 * 2**20)'"
    if any(one.name == "memory" and one.level != "full" for one in backend.protections()):
        assert b"MemoryError" in sandbox.exec(["sh", "-c", eat], deadline=30).output
        return
    killed = sandbox.exec(["sh", "-c", f"exec {eat}"], deadline=30)
    assert (killed.exit_code, killed.oom, killed.timed_out) == (137, True, False)
    child = sandbox.exec(["sh", "-c", f"{eat}; echo status $?"], deadline=30)
    assert child.oom
    assert b"status 137" in child.output
    assert not sandbox.exec(["true"], deadline=10).oom


def test_the_number_of_processes_is_capped(make):
    sandbox = make(pids=20)
    script = """
import os, time
count = 0
try:
    while count < 100:
        if os.fork() == 0: time.sleep(9)
        count += 1
except OSError: pass
print(count)
"""
    result = sandbox.exec(["python3", "-c", script], deadline=20)
    assert 1 < int(result.output.split()[-1]) < 20


def test_growing_beyond_the_disk_cap_ends_the_command(make):
    sandbox = make(disk_mb=20)
    grow = "for i in 1 2 3 4 5; do head -c 10000000 /dev/zero > $i; done; sleep 60"
    result = sandbox.exec(["sh", "-c", grow], deadline=30)
    assert (result.disk_full, result.exit_code, result.timed_out) == (True, None, False)
    assert result.seconds < 10
    tidy = sandbox.exec(["sh", "-c", "sleep 0.6; rm 1 2 3 4 5; sleep 0.6"], deadline=10)
    assert (tidy.exit_code, tidy.disk_full) == (0, False)  # what does not grow may run


def test_too_many_files_end_the_command(make, monkeypatch):
    monkeypatch.setattr("runner.sandbox.disk.MAX_FILES", 1000)
    sandbox = make()
    script = "import os, time\nfor i in range(5000): os.mkdir(f'/workspace/d{i}')\ntime.sleep(60)"
    assert sandbox.exec(["python3", "-c", script], deadline=30).disk_full


def test_no_single_file_beyond_the_disk_cap(make):
    result = make(disk_mb=20).exec(["sh", "-c", "head -c 30000000 /dev/zero > big; ls -l big"], deadline=20)
    assert b" 20971520 " in result.output


# --- walls ------------------------------------------------------------------------------------------------


def test_unprivileged(sandbox):
    status = dict(
        line.split(":\t", 1) for line in sh(sandbox, "cat /proc/self/status").splitlines() if ":\t" in line
    )
    assert set(status["Uid"].split()) == {str(UID)}
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapAmb"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Groups"].split() in ([], [str(UID)])


def test_no_network(sandbox):
    script = """
import socket
print([name for _, name in socket.if_nameindex()])
for address in ("192.0.2.1", "172.17.0.1", "169.254.169.254"):
    try: socket.create_connection((address, 80), timeout=2); print("CONNECTED")
    except OSError as error: print(error.errno)
try: socket.getaddrinfo("example.org", 80); print("RESOLVED")
except OSError: print("no names")
"""
    assert python(sandbox, script) == "['lo']\n101\n101\n101\nno names\n"


def test_an_open_network_has_a_route(make):
    routes = sh(make(network="open"), "cat /proc/net/route; grep -c nameserver /etc/resolv.conf")
    assert any(line.split()[1:2] == ["00000000"] for line in routes.splitlines())


def test_services_of_the_host_are_out_of_reach(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = sandbox.exec(
            ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"],
            deadline=10,
        )
    assert b"Connection refused" in result.output


def test_private_data_is_not_there(sandbox, spec):
    workspace = spec.mounts[0].source
    (workspace / "link").unlink(missing_ok=True)
    (workspace / "link").symlink_to(workspace.parent / "private")
    assert sandbox.exec(["ls", str(workspace.parent / "private")], deadline=10).exit_code != 0
    assert sandbox.exec(["cat", "/workspace/link/reference.txt"], deadline=10).exit_code != 0
    assert sandbox.exec(["ls", "/data/private"], deadline=10).exit_code != 0
    assert sh(sandbox, "ls /data; cat /data/public/image.txt") == "public\npixels"
    search = "grep -rls 'the answer' / --include=reference.txt --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr"
    assert sandbox.exec(["sh", "-c", search], deadline=60).output == b""


def test_no_file_of_the_harness_is_visible(sandbox):
    rooms = ["tasks", "evaluator", "runner", "hf_datasets"]
    script = f"import importlib.util as u; print([n for n in {rooms} if u.find_spec(n)])"
    assert python(sandbox, script) == "[]\n"
    assert sandbox.exec(["ls", str(Path(__file__).parents[3])], deadline=10).exit_code != 0


def test_only_the_workspace_is_writable(sandbox):
    for folder in (
        "/",
        "/usr",
        "/etc",
        "/opt",
        "/opt/site",
        "/data",
        "/data/public",
        "/proc",
        "/dev",
        "/root",
    ):
        assert sandbox.exec(["sh", "-c", f"echo x > {folder}/planted"], deadline=10).exit_code != 0, folder
    assert sh(sandbox, "echo x > /workspace/mine && echo y > /tmp/mine && echo ok") == "ok\n"
    assert (
        sandbox.exec(["sh", "-c", "mount -t tmpfs none /workspace || unshare -m true"], deadline=10).exit_code
        != 0
    )


def test_the_first_process_cannot_be_ended_from_inside(backend, sandbox):
    if backend.name == "bubblewrap" and os.getuid() == UID:
        pytest.skip("a plain user's sandbox shares its uid with what is inside; it may end itself")
    sandbox.exec(["sh", "-c", "kill -9 1 2 3; kill -9 -1"], deadline=10)
    assert sandbox.alive()


def test_the_evaluators_sandbox_sees_the_evaluator_and_nothing_of_the_runner(make):
    sandbox = make(role="evaluator")
    script = "import tasks.schema, evaluator.report, importlib.util as u; print(tasks.__file__, u.find_spec('runner'))"
    assert python(sandbox, script) == "/opt/automedbench/tasks/__init__.py None\n"


# --- files ------------------------------------------------------------------------------------------------


def test_put_and_get(sandbox):
    content = os.urandom(100_000)
    sandbox.put({"/workspace/a/b/c.bin": content, "/workspace/run.sh": b"echo hi\n"})
    assert sandbox.get("/workspace/a/b/c.bin") == content
    assert sh(sandbox, "stat -c %u a a/b a/b/c.bin; sh run.sh; rm -r a run.sh") == f"{UID}\n" * 3 + "hi\n"
    assert sandbox.get("/data/public/image.txt") == b"pixels"


def test_get_refuses_what_is_not_a_plain_file(sandbox):
    sh(
        sandbox,
        "mkdir -p d; ln -sf /etc/passwd l; ln -sfn /etc dl; rm -f f; mkfifo f; head -c 100 /dev/zero > z",
    )
    for path in ("/workspace/l", "/workspace/dl/passwd", "/workspace/f", "/workspace/d"):
        with pytest.raises(ValueError, match=r"link|regular"):
            sandbox.get(path)
    with pytest.raises(ValueError, match="larger"):
        sandbox.get("/workspace/z", limit=99)
    with pytest.raises(FileNotFoundError):
        sandbox.get("/workspace/nothing")
    for path in ("/etc/passwd", "/workspace/../etc/passwd", "relative", "/workspace", "/workspace/\0"):
        with pytest.raises(ValueError, match="mount"):
            sandbox.get(path)


def test_put_follows_no_planted_link(sandbox, tmp_path):
    sandbox_side = f"ln -sfn {tmp_path} out; ln -sf {tmp_path}/victim file"
    sh(sandbox, sandbox_side)
    with pytest.raises(ValueError, match="link"):
        sandbox.put({"/workspace/out/x": b"x"})
    sandbox.put({"/workspace/file": b"mine"})
    assert list(tmp_path.iterdir()) == []
    assert sandbox.get("/workspace/file") == b"mine"
    with pytest.raises(ValueError, match="read-only"):
        sandbox.put({"/data/public/x": b""})


# --- where the mounted folders lie ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "sp ace", "colon:ro", "com,ma=1", "übung\u200b", 'quo"te\\'])
def test_a_source_may_be_relative_and_called_anything(make, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    source = Path(name)
    source.mkdir()
    (source / "file").write_text("here")
    sandbox = make(mounts=(Mount(source, "/data/public"),), workdir="/")
    assert sh(sandbox, "cat /data/public/file") == "here"
