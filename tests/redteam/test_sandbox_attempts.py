"""An agent that tries everything it can from inside: nothing it must not see is seen, nothing else is changed."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from pathlib import Path

import pytest
from attempts import DRIVER, Attempt
from attempts_paths import PATHS
from attempts_system import SYSTEM

from runner.sandbox import Backend, Mount, Sandbox, SandboxSpec

ATTEMPTS = [*PATHS, *SYSTEM]
REPOSITORY = Path(__file__).parents[2]
MISTAKES = ("SyntaxError", "NameError", "AttributeError", "TypeError", "syntax error", "command not found")
CATEGORIES = {"path", "link", "proc", "key", "harness", "socket", "network", "privilege", "write"}


def cell_of(root: Path, canary, *, with_references: bool = False) -> SandboxSpec:
    """What an agent's sandbox gets of a cell, and for the control what it must never get."""
    for name in ("workspace", "public/case-a", "private/case-a"):
        (root / name).mkdir(parents=True)
    (root / "public" / "case-a" / "image.txt").write_text("pixels")
    (root / "private" / "case-a" / "reference.txt").write_text(canary.token)
    (root / "cell.json").write_text(json.dumps({"cell": canary.token}))
    (root / "trace.jsonl").write_text(json.dumps({"trace": canary.token}))
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in ((root / "public"), *(root / "public").rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)  # so that the mount alone is in the way
    mounts = [Mount(root / "workspace", "/workspace", writable=True), Mount(root / "public", "/data/public")]
    if with_references:
        mounts.append(Mount(root / "private", "/data/private"))
    return SandboxSpec(
        "agent", "redteam", tuple(mounts), memory_mb=512, pids=100, disk_mb=100, lease_seconds=600
    )


def tried(
    sandbox: Sandbox, attempts: list[Attempt], replacements: dict[str, str]
) -> dict[str, tuple[int | None, str]]:
    asked = []
    for attempt in attempts:
        code = attempt.code
        for word, value in replacements.items():
            code = code.replace(word, value)
        asked.append((attempt.id, attempt.language, code))
    done = sandbox.exec(["python3", "-c", DRIVER], deadline=240, stdin=json.dumps(asked).encode())
    assert done.exit_code == 0, done.output[-2000:]
    return {
        name: tuple(result) for name, result in json.loads(sandbox.get("/workspace/results.json")).items()
    }


def snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    """Content, mode and times of every file below a folder."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[str(path.relative_to(folder))] = (content, info.st_mode, info.st_mtime_ns, info.st_nlink)
    return seen


@pytest.fixture(scope="module")
def outcome(backend: Backend, canary, tmp_path_factory):
    """All attempts, made in one sandbox, and what the host looks like before and after them."""
    root = tmp_path_factory.mktemp("cell")
    spec = cell_of(root, canary)
    words = {
        "PORT": str(canary.port),
        "HOSTIP": canary.address,
        "ABSTRACT": canary.abstract,
        "HOSTFILE": str(canary.host_file),
        "REPOSITORY": str(REPOSITORY),
        "OTHERCELL": str(canary.other_cell),
        "OWNCELL": str(root),
    }
    places = (root / "public", root / "private", canary.folder)
    before, visits = [snapshot(place) for place in places], len(canary.visits)
    with backend.create(spec) as sandbox:
        results = tried(sandbox, ATTEMPTS, words)
        alive = sandbox.alive()
    changed = [str(place) for place, then in zip(places, before, strict=True) if snapshot(place) != then]
    return backend.name, results, {"alive": alive, "changed": changed, "visits": len(canary.visits) - visits}


def test_there_are_enough_attempts_of_every_kind():
    assert len({attempt.id for attempt in ATTEMPTS}) == len(ATTEMPTS) >= 120
    assert {attempt.category for attempt in ATTEMPTS} == CATEGORIES


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.id)
def test_an_attempt_gains_nothing(outcome, canary, attempt):
    backend, results, _ = outcome
    code, output = results[attempt.id]
    assert canary.token not in output
    if attempt.expected_in(backend) == "refused":
        assert code not in (0, None), output
        mistakes = [word for word in MISTAKES if word in output]
        assert not mistakes, output  # it was refused, and not written wrongly
    else:
        assert code == 0, output


def test_the_host_is_as_it_was(outcome):
    _, _, host = outcome
    assert host == {"alive": True, "changed": [], "visits": 0}


@pytest.mark.bubblewrap
def test_the_attempts_work_where_the_wall_is_missing(canary, tmp_path_factory):
    """The control: with the references mounted, every one of the paths leads to them. So the attempts are real."""
    from usable_backend import usable

    spec = cell_of(tmp_path_factory.mktemp("control"), canary, with_references=True)
    with usable("bubblewrap").create(spec) as sandbox:
        results = tried(sandbox, PATHS, {})
    assert [name for name, (_, output) in results.items() if canary.token not in output] == []


def test_the_canaries_sing_where_they_may(canary):
    """The service answers on the host, so a refusal inside is the wall's and not the service's."""
    with urllib.request.urlopen(f"http://127.0.0.1:{canary.port}/", timeout=5) as answer:
        assert answer.read().decode() == canary.token
    assert canary.host_file.read_text() == canary.token
