"""Each protection is turned off once, and each time at least one test must notice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import usable
from mutations import MUTATIONS

REPOSITORY = Path(__file__).parents[2]
HERE = str(Path(__file__).parent)
PATIENCE = 300
ASKED_FOR = {"capabilities", "uid", "network", "link_refusal", "size_caps", "delimiter", "digests"}


def run_under(name: str) -> subprocess.CompletedProcess[str]:
    """The tests of a mutation, stopped at the first that fails."""
    _, tests = MUTATIONS[name]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "mutations", "--mutation", name]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": HERE, "OMP_NUM_THREADS": "1"} | dict.fromkeys(XDIST, ""),
    )


XDIST = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_ADDOPTS")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, subprocess.CompletedProcess[str]]:
    for backend in ("docker", "bubblewrap"):
        usable(backend)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(MUTATIONS, pool.map(run_under, MUTATIONS), strict=True))


def test_every_protection_is_turned_off_once():
    assert all(any(word in name for name in MUTATIONS) for word in ASKED_FOR)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_test_fails_without_the_protection(outcomes, name):
    done = outcomes[name]
    assert done.returncode == 1, (
        f"nothing noticed that {name} was off:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
    )
    assert re.search(r"^1 failed|, 1 failed|1 failed", done.stdout), done.stdout[-2000:]
