"""Folders of runs that were never run, and clients of the stand-in Hub that never sleep."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from run_maker import make_run, scores

from hf_datasets.hub import Hub
from hf_datasets.results.pull import pull
from hf_datasets.results.push import push as push_runs

REPO = "demo/results"


@pytest.fixture
def runs(tmp_path):
    """A folder with five runs."""
    for number in range(5):
        make_run(tmp_path / "runs", number)
    return tmp_path / "runs"


@pytest.fixture
def client(hub, tmp_path):
    """Make a client of the stand-in; it never sleeps, and keeps for how long it would have."""
    made = []

    def make(token="hf_writer", repo=REPO, **options):
        waits = []
        client = Hub(
            repo,
            endpoint=hub.url,
            token=token,
            cache=tmp_path / f"cache{len(made)}",
            sleep=waits.append,
            **options,
        )
        client.waits = waits
        made.append(client)
        return client

    return make


@pytest.fixture
def push(client):
    """Push a folder as a new client; the outcome."""

    def run(folder, publish=scores, **options):
        one = client()
        one.create(private=False)
        return push_runs(folder, one, publish, **options)

    return run


@pytest.fixture
def pulled(client, tmp_path):
    """Pull everything into a new folder with a new client."""
    count = iter(range(99))
    return lambda **options: pull(client(), tmp_path / f"pulled{next(count)}", **options).folder
