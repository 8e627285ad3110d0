"""Numbers do not hang on the umask, nor on the modes that a copy of a run or of its data has."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hf_datasets.records import load_record

TASK = "bccd-det-task"
CELL = {"task": TASK, "agent": "baseline"}
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="a runner that is not root shares its uid with the sandbox"
)


def take_from_others(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)


def test_a_strict_umask_changes_no_score(command, sandbox):
    assert command.run(sandbox=sandbox, **CELL).code == 0
    usual = load_record(command.folder(**CELL) / "record.json")
    arguments = command.arguments("run", **command.cell(sandbox=sandbox, repeat=1, **CELL))
    subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", *arguments], check=True, timeout=120)
    strict = load_record(command.folder(repeat=1, **CELL) / "record.json")
    assert strict.task_score == usual.task_score > 0.5
    assert (strict.overall, strict.error_codes) == (usual.overall, usual.error_codes)


@as_root
def test_a_copy_that_only_its_owner_can_read_is_graded_alike(command, sandbox, data):
    assert command.run(sandbox=sandbox, **CELL).code == 0
    folder = command.folder(**CELL)
    copy = command.runs.parent / "copy"
    shutil.copytree(folder, copy)
    take_from_others(copy)
    assert command("regrade", copy, data=data, sandbox=sandbox).code == 0
    assert load_record(copy / "record.json").task_score == load_record(folder / "record.json").task_score


@as_root
@pytest.mark.parametrize("part", ["public", "private"])
def test_data_that_the_sandbox_cannot_read_are_no_agents_failure(command, data, tmp_path, part):
    command.run(sandbox="bubblewrap", **CELL)
    own = tmp_path / "data"
    shutil.copytree(data / "phantom" / TASK, own / "phantom" / TASK)
    take_from_others(own / "phantom" / TASK / part)
    answer = command.run(sandbox="bubblewrap", repeat=1, **{**CELL, "data": own})
    assert answer.code == 3
    assert "chmod -R a+rX" in answer.err
    assert not command.folder(repeat=1, **CELL).exists()


def test_staged_phantoms_are_found_on_a_disk_that_cannot_be_written(tmp_path):
    from hf_datasets import ensure_phantom

    target = ensure_phantom(TASK, tmp_path)
    locks = list(target.parent.glob(".*.lock"))
    for lock in locks:
        lock.unlink()
    assert ensure_phantom(TASK, tmp_path) == target
    assert locks
    assert not any(lock.exists() for lock in locks)
