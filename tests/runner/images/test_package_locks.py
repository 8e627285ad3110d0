"""Locks, package folders and the names of images."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runner.images import build, packages
from runner.images.packages import Target
from runner.sandbox import SandboxUnavailable

ROLES = ("agent", "evaluator")
LOCK = """\
numpy==2.4.0 ; python_full_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
numpy==2.5.0 ; python_full_version >= '3.12' \\
    --hash=sha256:cc
# a comment
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:dd
pip==26.3 \\
    --hash=sha256:ee
"""


@pytest.mark.parametrize(
    ("python", "numpy"),
    [("3.11", "2.4.0 --hash=sha256:aa --hash=sha256:bb"), ("3.13", "2.5.0 --hash=sha256:cc")],
)
def test_a_universal_lock_is_cut_down_to_one_python(python: str, numpy: str):
    wanted = packages.requirements_for(LOCK, Target(python, "x86_64"))
    assert wanted.splitlines() == [f"numpy=={numpy}", "pip==26.3 --hash=sha256:ee"]


@pytest.mark.parametrize("role", ROLES)
def test_every_entry_of_a_lock_is_pinned_and_hashed_and_no_index_is_named(role: str):
    lock = packages.lock_file(role).read_text()
    for python in ("3.11", "3.12", "3.13"):
        lines = packages.requirements_for(lock, Target(python, "x86_64")).splitlines()
        assert all("==" in line and "--hash=sha256:" in line for line in lines)
        names = [line.split("==")[0] for line in lines]
        assert len(set(names)) == len(names)
    assert "://" not in lock
    assert "--index" not in lock
    assert "--find-links" not in lock


@pytest.mark.parametrize("role", ROLES)
def test_everything_asked_for_is_locked(role: str):
    asked = packages.lock_file(role).with_name(f"{role}.in").read_text().splitlines()
    names = {line.split("<")[0] for line in asked if line and not line.startswith("#")}
    lines = packages.requirements_for(packages.lock_file(role).read_text(), Target.here()).splitlines()
    assert names <= {line.split("==")[0] for line in lines}


def test_a_package_folder_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("AUTOMEDBENCH_CACHE", str(tmp_path))
    lock = tmp_path / "agent.lock.txt"
    lock.write_text("no-such-package-of-ours==1 --hash=sha256:00\n")
    monkeypatch.setattr(packages, "lock_file", lambda role: lock)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SandboxUnavailable, match=r"agent-cp\d+-\w+-[0-9a-f]{16} could not be installed"):
        packages.ensure_site("agent")
    assert [path for path in (tmp_path / "site").iterdir() if path.is_dir()] == []


def test_the_name_of_an_image_follows_its_sources(tmp_path: Path, monkeypatch):
    file = tmp_path / "tasks" / "a.py"
    file.parent.mkdir()
    file.write_text("1")
    monkeypatch.setattr(build, "source_folders", lambda: (file.parent,))
    evaluator, agent = build.image_tag("evaluator"), build.image_tag("agent")
    (file.parent / "__pycache__").mkdir()
    (file.parent / "__pycache__" / "a.pyc").write_text("2")
    assert build.image_tag("evaluator") == evaluator
    file.write_text("2")
    assert build.image_tag("evaluator") != evaluator
    assert build.image_tag("agent") == agent


def test_dockerfiles_need_no_builder_but_the_plain_one():
    for file in packages.HERE.glob("*.Dockerfile"):
        text = file.read_text()
        assert "# syntax" not in text
        assert "--mount" not in text
        assert "ARG BASE=" in text


def test_the_base_script_is_a_valid_shell_script():
    subprocess.run(["sh", "-n", str(packages.HERE / "local_base.sh")], check=True)
