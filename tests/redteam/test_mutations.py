"""Each protection is turned off once, and each time at least one test must notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import MUTATIONS
from usable_backend import usable

REPOSITORY = Path(__file__).parents[2]
HERE = str(Path(__file__).parent)
PATIENCE = 300
ASKED_FOR = {"capabilities", "uid", "network", "link_refusal", "size_caps", "delimiter", "digests"}


def run_under(mutation: str) -> subprocess.CompletedProcess[str]:
    """The tests of a mutation, stopped at the first that fails."""
    _, tests = MUTATIONS[mutation]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "mutations", "--mutation", mutation]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        | {"PYTHONPATH": HERE, "OMP_NUM_THREADS": "1"},
    )


def test_every_protection_is_turned_off_once():
    assert all(any(word in name for name in MUTATIONS) for word in ASKED_FOR)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_test_fails_without_the_protection(name):
    usable("docker" if "docker" in name else "bubblewrap")
    done = run_under(name)
    assert done.returncode == 1, (
        f"nothing noticed that {name} was off:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
    )
    assert "1 failed" in done.stdout, done.stdout[-2000:]
