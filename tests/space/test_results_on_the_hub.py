"""Results that were pushed to a Hub are shown as a run folder is: with trace, pictures and what was handed in."""

from __future__ import annotations

import zipfile

import pytest

from hf_datasets.hub import Hub
from hf_datasets.publish import publication
from hf_datasets.redact import Redactor
from hf_datasets.results.push import push
from space.source import DEMO, DemoSource, HubSource, SourceError

REPO = "demo/results"


@pytest.fixture
def demo_runs(tmp_path):
    """Three real runs of the demonstration."""
    with zipfile.ZipFile(DEMO) as archive:
        wanted = ("kidney-seg-task/lite", "vqa-rad-task/lite", "bccd-det-task/standard")
        archive.extractall(
            tmp_path / "runs", [name for name in archive.namelist() if name.startswith(wanted)]
        )
    return tmp_path / "runs"


@pytest.fixture
def hub_client(hub, tmp_path):
    return lambda: Hub(
        REPO, endpoint=hub.url, token="hf_writer", cache=tmp_path / "cache", sleep=lambda _: None
    )


def pushed(client, runs):
    client.create(private=False)
    return push(runs, client, lambda folder: publication(folder, Redactor(frozenset())))


def test_pushed_results_are_read_again_only_after_a_new_commit(hub, hub_client, demo_runs):
    bccd = demo_runs / "bccd-det-task"
    aside = demo_runs.with_name("aside")
    bccd.rename(aside)
    pushed(hub_client(), demo_runs)
    source = HubSource(hub_client())
    first = source.read()
    assert set(first.runs["task"]) == {"kidney-seg-task", "vqa-rad-task"}
    assert first.source.startswith(f"{REPO}@")
    assert source.read().runs is first.runs
    aside.rename(bccd)
    pushed(hub_client(), demo_runs)
    second = source.read()
    assert len(second.runs) == 3
    assert list(second.prepare().boards) == list(DemoSource().read().boards)


def test_a_pushed_run_opens_with_what_its_terms_let_out(hub, hub_client, demo_runs):
    pushed(hub_client(), demo_runs)
    data = HubSource(hub_client()).read()
    for run_id in data.runs["run_id"]:
        run = data.run(run_id)
        assert run.run_id == run_id
        assert run.file("record.json")
        if run.trace:
            assert run.trace.read_bytes().startswith(b'{"type":"run"')
    assert any(data.run(run_id).trace for run_id in data.runs["run_id"])
    assert any(data.run(run_id).previews for run_id in data.runs["run_id"])
    assert data.run("no-such-run") is None


def test_a_repository_that_there_is_not_is_one_line(hub, tmp_path):
    client = Hub(
        "demo/nothing", endpoint=hub.url, token="hf_reader", cache=tmp_path / "cache", sleep=lambda _: None
    )
    with pytest.raises(SourceError, match="demo/nothing") as error:
        HubSource(client).read()
    assert "\n" not in str(error.value)
