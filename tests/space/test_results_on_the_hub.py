"""Results that were pushed to a Hub are shown as a run folder is: with trace, pictures and what was handed in."""

from __future__ import annotations

import zipfile
from hashlib import sha256

import pytest

from hf_datasets.hub import Hub
from hf_datasets.publish import publication
from hf_datasets.records import dump_record, parse_record
from hf_datasets.redact import Redactor
from hf_datasets.results import pull as pulling
from hf_datasets.results.pull import pull
from hf_datasets.results.push import push
from space.source import DEMO, DemoSource, HubSource, PulledSource, SourceError

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


def test_what_is_shown_stays_whole_while_every_pull_fails(hub, hub_client, demo_runs, monkeypatch):
    pushed(hub_client(), demo_runs)
    source = HubSource(hub_client())
    shown = source.read()
    hub.put(REPO, {"note.txt": b"a new commit"})

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pulling.shutil, "copyfile", full)
        for _ in range(3):
            with pytest.raises(SourceError, match="No space left"):
                source.read()
    assert all(shown.run(run_id) for run_id in shown.runs["run_id"])
    assert len(source.read().runs) == 3


def test_the_record_that_the_row_is_of_is_opened_whatever_the_others_are_called(
    hub, hub_client, demo_runs, tmp_path
):
    """Corrections are named by digests, which have no order; and no file of a run passes for its record."""
    client = hub_client()
    pushed(client, demo_runs)
    folder = next(demo_runs.glob("bccd-det-task/**/record.json")).parent
    for version in ("0.9.1", "0.9.2", "0.9.3"):
        content = (folder / "record.json").read_bytes()
        changed = {"harness_version": version, "supersedes": sha256(content).hexdigest()}
        record = parse_record(content, "").model_copy(update=changed)
        (folder / "record.json").write_text(dump_record(record))
        assert pushed(client, demo_runs).published
    fetched = pull(client, tmp_path / "pulled").folder
    details = fetched / "details" / record.run_id
    details.mkdir(parents=True, exist_ok=True)
    (details / "record.json").write_text("{}")
    run = PulledSource(fetched).read().run(record.run_id)
    assert run.record.harness_version == "0.9.3"
    assert run.file("record.json").read_bytes() == (folder / "record.json").read_bytes()
