"""A push is killed without warning at twenty moments; the next one completes it, and nobody ever sees half a run."""

from __future__ import annotations

import multiprocessing
import random
import threading
from pathlib import Path

import pytest
from run_maker import make_run, scores

from hf_datasets.hub import Hub
from hf_datasets.results import push as pushing
from hf_datasets.results.layout import parts, run_of_record
from hf_datasets.results.pull import pull
from hf_datasets.results.verify import verify

RUNS, GROUP, KILLS = 200, 25, 20
REQUESTS = 60
"""A group takes about 24; within so many, a kill falls before, in or after the first commits."""


def push_all(url: str, repo: str, cache: Path, runs: Path) -> None:
    """In a process of its own; groups are small, so that there are many moments between commits."""
    pushing.MAX_RUNS = GROUP
    hub = Hub(repo, endpoint=url, token="hf_writer", cache=cache)
    hub.create(private=False)
    pushing.push(runs, hub, scores)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    root = tmp_path_factory.mktemp("many")
    for number in range(RUNS):
        make_run(root, number, cases=1)
    return root


def seen_by_anybody(hub, repo):
    """Ids that have a record; fails where a commit shows a run without its row, or a row without its run."""
    files = hub.files(repo)
    records = [run_id for path in files if (run_id := run_of_record(path))]
    assert len(records) == len(set(records))
    for folder in ("data/runs", "data/cases", "records/packed"):
        assert sum(part.rows for part in parts(files, folder)) == len(records), folder
    return set(records)


@pytest.mark.slow
def test_a_push_that_is_killed_again_and_again_ends_whole(hub, many, tmp_path):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["hf_datasets.results.push", "huggingface_hub", "run_maker"])
    chance = random.Random(7)

    def start(repo):
        process = processes.Process(target=push_all, args=(hub.url, repo, tmp_path / "cache", many))
        process.start()
        return process

    def kill(process):
        """The process dies a moment after one of its next requests."""
        left = iter(range(chance.randrange(REQUESTS)))

        def strike():
            if next(left, None) is None:
                threading.Timer(chance.uniform(0, 0.05), process.kill).start()
            else:
                hub.before(".", strike)

        hub.before(".", strike)

    def whole(repo):
        assert len(seen_by_anybody(hub, repo)) == RUNS
        assert all(commit.title.startswith(("Publish", "initial")) for commit in hub.history(repo))

    left_at: list[int] = []
    repo = "demo/round0"
    while len(left_at) < KILLS:
        before = len(seen_by_anybody(hub, repo))
        process = start(repo)
        kill(process)
        process.join(120)
        assert process.exitcode in (0, -9)
        there = len(seen_by_anybody(hub, repo))
        assert there >= before
        if process.exitcode == 0:  # it was faster: on to an empty repository
            whole(repo)
            repo = f"demo/round{len(left_at)}"
        else:
            left_at.append(there)
    assert len(set(left_at)) > 3, "the moments were not spread over the push"
    hub.forget_faults()
    last = start(repo)
    last.join(120)
    assert last.exitcode == 0
    whole(repo)
    done = pull(Hub(repo, endpoint=hub.url, cache=tmp_path / "pulled"), tmp_path / "results")
    assert verify(done.folder).differences == []
