"""What goes into the images is pinned, listed and can be audited."""

from __future__ import annotations

import re

import pytest

from runner.images.audit import verdict
from runner.images.packages import HERE
from runner.images.sbom import LOCKS, document, locked

DOCKERFILES = sorted(HERE.glob("*.Dockerfile"))


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_one_version_and_hashes(name):
    entries = list(locked((HERE / f"{name}.lock.txt").read_text()))
    assert entries
    for package, version, hashes in entries:
        assert re.fullmatch(r"[0-9][\w.+!]*", version), package
        assert hashes, package


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_a_dockerfile_installs_by_hash_and_lets_its_base_be_pinned(path):
    """The base is an argument, so that ``name@sha256:...`` can be given; nothing is installed but from a lock."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in commands if line.startswith("FROM")] == ["FROM ${BASE}"]
    assert any(line.startswith("ARG BASE=") for line in commands)
    for line in commands:
        assert "curl" not in line
        assert "apt-get install" not in line
        if "pip install" in line:
            assert "--require-hashes" in line
            assert all(word.endswith(".lock.txt") for word in re.findall(r"-r (\S+)", line))


def test_the_bill_of_materials_lists_every_locked_package_once():
    bill = document()
    names = [(one["name"].lower(), one["version"]) for one in bill["components"]]
    assert len(names) == len(set(names))
    wanted = {
        (package.lower(), version)
        for name in LOCKS
        for package, version, _ in locked((HERE / f"{name}.lock.txt").read_text())
    }
    assert set(names) == wanted
    numpy = next(one for one in bill["components"] if one["name"] == "numpy")
    assert numpy["purl"] == f"pkg:pypi/numpy@{numpy['version']}"
    assert {one["value"] for one in numpy["properties"]} == {"agent", "evaluator"}
    assert all(len(one["content"]) == 64 for one in numpy["hashes"])


def test_a_package_that_was_not_looked_up_is_not_called_clean():
    clean = {"name": "a", "version": "1", "vulns": []}
    skipped = {"name": "b", "skip_reason": "not found"}
    faulty = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1"}]}
    assert verdict({"dependencies": [clean]}) == (0, "nothing is known against 1 packages")
    assert verdict({"dependencies": [clean, skipped]})[0] == 3
    assert verdict({"dependencies": [clean, skipped, faulty]}) == (1, "c 2: PYSEC-1")
