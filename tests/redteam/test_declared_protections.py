"""What a back end does not protect it says, ``doctor`` shows it, and what it says is tried."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.doctor import Examination
from runner.sandbox import Mount, SandboxSpec

EXPECTED = {
    "network", "uid", "capabilities", "no_new_privs", "seccomp", "memory", "pids", "cpu", "disk", "fsize",
    "read_only_root", "private_data", "dead_mans_switch", "gpu", "kernel",
}  # fmt: skip


@pytest.fixture
def status(backend, tmp_path) -> dict[str, str]:
    spec = SandboxSpec(
        "agent", "declared", (Mount(tmp_path, "/workspace", writable=True),), memory_mb=256, pids=50
    )
    with backend.create(spec) as sandbox:
        output = sandbox.exec(["cat", "/proc/self/status"], deadline=20).output.decode()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in output.splitlines())}


def test_every_protection_is_declared_and_what_is_missing_says_why(backend):
    declared = {one.name: one for one in backend.protections()}
    assert declared.keys() == EXPECTED
    assert all(one.note for one in declared.values() if one.level != "full")


def test_what_is_declared_is_so(backend, status):
    declared = {one.name: one.level for one in backend.protections()}
    filtered = status["Seccomp"] != "0"
    assert (declared["seccomp"] == "full") == filtered
    assert (declared["capabilities"] == "full") == (
        int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    )
    assert (declared["no_new_privs"] == "full") == (status["NoNewPrivs"] == "1")
    assert (declared["uid"] == "full") == (status["Uid"].split()[0] == "10001")


def test_a_read_only_mount_refuses_what_its_modes_would_allow(backend, tmp_path):
    for name in ("workspace", "public"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    mounts = (
        Mount(tmp_path / "workspace", "/workspace", writable=True),
        Mount(tmp_path / "public", "/data/public"),
    )
    with backend.create(SandboxSpec("agent", "mounts", mounts, memory_mb=256, pids=50)) as sandbox:
        for folder, code in (("/workspace", 0), ("/data/public", 2)):
            done = sandbox.exec(["sh", "-c", f"echo x > {folder}/planted"], deadline=20)
            assert done.exit_code == code, done.output
    assert not (tmp_path / "public" / "planted").exists()


def test_what_lies_beside_a_mounts_source_is_not_there(backend, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "reference-beside.txt").write_text("the answer")
    mounts = (Mount(tmp_path / "workspace", "/workspace", writable=True),)
    with backend.create(SandboxSpec("agent", "beside", mounts, memory_mb=256, pids=50)) as sandbox:
        look = "find / -name reference-beside.txt -not -path '/proc/*' 2>/dev/null; true"
        assert sandbox.exec(["sh", "-c", look], deadline=60).output == b""


def test_doctor_shows_what_is_missing(backend):
    found = Examination()
    rows = [(one.name, one.level, one.note) for one in backend.protections()]
    found.sandboxes.append({"name": backend.name, "ok": True, "detail": "", "protections": rows})
    shown = found.as_text()
    for one in backend.protections():
        if one.level != "full":
            assert any(
                one.name in line and one.level in line and one.note in line for line in shown.splitlines()
            )


@pytest.mark.docker
def test_the_agents_image_was_made_of_nothing_of_ours():
    """Neither its layers' commands nor its settings name a source folder, a reference or a key."""
    from usable_backend import usable

    backend = usable("docker")
    image = backend.environment_digest("agent")
    history = " ".join(str(layer["CreatedBy"]) for layer in backend.api.history(image))
    settings = str(backend.api.inspect_image(image)["Config"])
    for word in (
        "/opt/automedbench",
        "COPY source",
        "private",
        "KEY",
        "TOKEN",
        str(Path(__file__).parents[2]),
    ):
        assert word not in history + settings, word


def test_doctor_runs():
    done = subprocess.run(
        [sys.executable, "-m", "runner", "doctor"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert "seccomp" in done.stdout, done.stderr


@pytest.mark.docker
def test_a_runtime_with_a_kernel_of_its_own_can_be_chosen(monkeypatch, tmp_path):
    from usable_backend import usable

    from runner.sandbox.docker import DockerBackend

    usable("docker")
    monkeypatch.setenv("AUTOMEDBENCH_DOCKER_RUNTIME", "runc")
    spec = SandboxSpec(
        "agent", "runtime", (Mount(tmp_path, "/workspace", writable=True),), memory_mb=128, pids=20
    )
    with DockerBackend().create(spec) as sandbox:
        assert sandbox._api.inspect_container(sandbox._container)["HostConfig"]["Runtime"] == "runc"
    monkeypatch.setenv("AUTOMEDBENCH_DOCKER_RUNTIME", "runsc-that-is-not-there")
    assert "no runtime runsc-that-is-not-there; the engine has" in DockerBackend().available().detail
    declared = {one.name: one.level for one in DockerBackend().protections()}
    assert declared["kernel"] == "full"
