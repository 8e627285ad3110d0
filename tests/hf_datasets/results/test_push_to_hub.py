"""Pushing to the stand-in Hub with the real client: once, whole, beside others, through trouble."""

from __future__ import annotations

import hashlib
import threading

import pytest
from run_maker import make_record, make_run, scores

from hf_datasets.hub import Hub, HubError, NoRepository, NotReached
from hf_datasets.publish import Publication, PublishedFile
from hf_datasets.records import dump_record
from hf_datasets.results.push import push as push_runs
from hf_datasets.results.read import read_results
from hf_datasets.results.verify import verify

REPO = "demo/results"


def ids(folder):
    return set(read_results(folder).runs.run_id)


def test_a_first_push_makes_the_repository_with_everything_in_one_commit(hub, push, runs, pulled):
    outcome = push(runs)
    assert len(outcome.published) == 5
    assert outcome.complete
    assert len(hub.history(REPO)) == 2
    files = hub.files(REPO)
    for folder in runs.glob("*/*/*/r*"):
        record = make_record(int(folder.name[1:]))
        assert files[f"records/2026/{record.run_id}.json"] == (folder / "record.json").read_bytes()
    assert b"5 runs, 15 cases" in files["README.md"]
    folder = pulled()
    assert ids(folder) == ids(runs)
    assert verify(folder).differences == []


def test_a_second_push_is_a_no_op(hub, push, runs):
    push(runs)
    before = hub.history(REPO)[0].oid
    hub.requests.clear()
    outcome = push(runs)
    assert (len(outcome.present), outcome.published, outcome.commits) == (5, {}, [])
    assert hub.history(REPO)[0].oid == before
    assert hub.count("POST|PUT") == 0


def test_more_runs_are_added_beside_the_old_parts(hub, push, runs, pulled):
    push(runs)
    old = {path: content for path, content in hub.files(REPO).items() if path.endswith(".parquet")}
    make_run(runs, 7)
    assert list(push(runs).published) == [make_record(7).run_id]
    assert old.items() <= hub.files(REPO).items()
    assert len(ids(pulled())) == 6


def test_other_bytes_under_the_same_id_are_refused_and_the_rest_goes_on(hub, push, runs, pulled):
    push(runs)
    truth = hub.files(REPO)
    folder = make_run(runs, 0, end_detail="changed")
    make_run(runs, 8)
    outcome = push(runs)
    assert list(outcome.refused) == [make_record(0).run_id]
    assert "supersedes none" in outcome.refused[make_record(0).run_id]
    assert list(outcome.published) == [make_record(8).run_id]
    assert not outcome.complete
    path = f"records/2026/{make_record(0).run_id}.json"
    assert hub.files(REPO)[path] == truth[path] != (folder / "record.json").read_bytes()
    assert verify(pulled()).differences == []


def digest_of(number, **changes):
    return hashlib.sha256(dump_record(make_record(number, **changes)).encode()).hexdigest()


def test_a_correction_takes_the_place_of_what_it_supersedes_and_both_truths_stay(hub, push, runs, pulled):
    push(runs)
    make_run(runs, 1, supersedes=digest_of(1), harness_version="0.2.0")
    outcome = push(runs)
    assert outcome.complete
    new = outcome.published[make_record(1).run_id]
    files = hub.files(REPO)
    assert f"records/2026/{make_record(1).run_id}.json" in files
    assert f"records/2026/{make_record(1).run_id}_{new[:8]}.json" in files
    assert b"5 runs, 15 cases" in files["README.md"]
    folder = pulled()
    found = read_results(folder)
    assert found.problems == ()
    assert found.runs.set_index("run_id").record_sha256[make_record(1).run_id] == new
    assert len(found.cases.frame) == 15
    assert verify(folder).differences == []
    assert push(runs).published == {}


def test_an_older_correction_does_not_come_back(push, runs, tmp_path, pulled):
    push(runs)
    first = tmp_path / "first"
    make_run(first, 1, supersedes=digest_of(1), harness_version="0.2.0")
    push(first)
    make_run(tmp_path / "again", 1, supersedes=digest_of(1), harness_version="0.3.0")
    refused = push(tmp_path / "again").refused
    assert "was corrected by another record already" in refused[make_record(1).run_id]
    assert push(first).complete
    assert push(runs).complete
    assert verify(pulled()).differences == []


def test_a_correction_of_an_unpublished_one_is_taken_but_not_of_another_attempt(push, runs, tmp_path, pulled):
    push(runs)
    between = digest_of(1, supersedes=digest_of(1), harness_version="0.2.0")
    make_run(tmp_path / "later", 1, supersedes=between, harness_version="0.3.0")
    assert push(tmp_path / "later").complete
    make_run(tmp_path / "foreign", 2, supersedes=digest_of(2), trace_sha256="0" * 64)
    assert "another attempt" in push(tmp_path / "foreign").refused[make_record(2).run_id]
    found = read_results(pulled())
    assert found.runs.set_index("run_id").harness_version[make_record(1).run_id] == "0.3.0"
    assert len(found.runs) == 5


def test_two_writers_at_once_are_both_there_and_one_saw_a_412(hub, push, runs, tmp_path, pulled):
    push(runs)
    others = []
    for number in (11, 12):
        make_run(tmp_path / f"runs{number}", number)
    barrier = threading.Barrier(2, timeout=20)
    for _ in range(2):  # both have read the head before either commits
        hub.before("POST .*/commit/", barrier.wait)
    writers = [
        threading.Thread(target=lambda number=number: others.append(push(tmp_path / f"runs{number}")))
        for number in (11, 12)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert all(outcome.complete and len(outcome.published) == 1 for outcome in others)
    assert hub.count("POST .*/commit/", 412) == 1
    folder = pulled()
    assert ids(folder) == ids(runs) | {make_record(11).run_id, make_record(12).run_id}
    assert b"7 runs, 21 cases" in hub.files(REPO)["README.md"]
    assert verify(folder).differences == []


def test_retry_after_is_honoured(hub, client, runs):
    hub.fail("POST .*/commit/", 429, headers={"Retry-After": "7"})
    hub.fail("GET /api/datasets/demo/results$", 429, headers={"RateLimit": '"api";r=0;t=3'})
    hub.put(REPO, {})
    one = client()
    said = []
    one.say = said.append
    assert push_runs(runs, one, scores).complete
    assert sorted(int(wait) for wait in one.waits) == [3, 7]
    assert any("429" in line for line in said)
    assert len(hub.history(REPO)) == 3


@pytest.mark.parametrize("status", [500, 502, 0])
def test_a_commit_that_landed_though_its_answer_was_lost_is_not_made_twice(hub, client, runs, status):
    hub.put(REPO, {})
    hub.fail("POST .*/commit/", status, landed=True)
    one = client()
    outcome = push_runs(runs, one, scores)
    assert outcome.complete
    assert hub.count("POST .*/commit/") == 1
    assert len(hub.history(REPO)) == 3
    assert outcome.commits == [hub.history(REPO)[0].oid]


def test_a_server_in_trouble_is_tried_again_with_growing_waits_and_then_left(hub, client, runs):
    hub.put(REPO, {})
    hub.fail("POST .*/commit/", 503, times=3)
    one = client()
    assert push_runs(runs, one, scores).complete
    assert len(one.waits) == 3
    assert one.waits[0] <= 1 < one.waits[2] <= 4
    make_run(runs, 20)
    hub.fail("POST .*/commit/", 503, times=99)
    with pytest.raises(HubError, match=r"stayed busy \(503\) for 6 tries"):
        push_runs(runs, client(), scores)


@pytest.mark.parametrize(
    ("token", "private", "error", "words"),
    [
        (False, False, HubError, "asks who you are"),
        (False, True, NoRepository, "no access to it"),
        ("hf_reader", False, HubError, "write access, or open a pull request"),
        ("hf_reader", True, NoRepository, "no access to it"),
        ("hf_wrong", True, NoRepository, "no access to it"),
    ],
)
def test_who_may_not_write_is_told_in_one_line(hub, client, runs, token, private, error, words):
    hub.put(REPO, {}, private=private)
    one = client(token=token)
    with pytest.raises(error, match=words) as caught:
        push_runs(runs, one, scores)
    assert "\n" not in str(caught.value)
    assert one.waits == []
    assert list(hub.files(REPO)) == [".gitattributes"]


def test_no_network_is_said_in_one_line(client, runs):
    one = Hub(REPO, endpoint="http://127.0.0.1:9", token="hf_writer", sleep=lambda _: None)
    with pytest.raises(
        NotReached, match=r"no network reached 127\.0\.0\.1:9; check the connection"
    ) as caught:
        push_runs(runs, one, scores)
    assert "\n" not in str(caught.value)


def test_a_name_that_is_none_is_usage(client):
    with pytest.raises(HubError, match="expected a repository as owner/name"):
        client(repo="../etc").head(())


def test_blocked_and_damaged_runs_are_named_and_the_rest_goes_on(hub, push, runs):
    def publish(folder):
        made = scores(folder)
        if made.record.repeat == 1:
            return Publication(made.record, made.record_bytes, made.cases, findings=("trace line 3: a name",))
        if made.record.repeat == 2:
            stray = PublishedFile(f"previews/{make_record(0).run_id}/x.webp", b"x")
            return Publication(made.record, made.record_bytes, made.cases, files=(stray,))
        return made

    (next(runs.glob("*/*/*/r03")) / "report.json").unlink()
    make_run(runs / "copy", 0)
    outcome = push(runs, publish)
    assert set(outcome.published) == {make_record(number).run_id for number in (0, 4)}
    assert set(outcome.blocked) == {make_record(number).run_id for number in (1, 2)}
    assert len(outcome.unreadable) == 2
    assert "trace line 3" in outcome.blocked[make_record(1).run_id]
    assert make_record(1).run_id.encode() not in hub.received()


def test_files_of_a_run_come_with_it(hub, push, runs, pulled):
    def publish(folder):
        made = scores(folder)
        preview = PublishedFile(f"previews/{made.record.run_id}/case.webp", b"RIFF")
        return Publication(made.record, made.record_bytes, made.cases, files=(preview,))

    push(runs, publish)
    assert (pulled() / "previews" / make_record(0).run_id / "case.webp").read_bytes() == b"RIFF"
    assert not (pulled(files=False) / "previews").exists()


def test_many_runs_are_sent_in_groups_with_no_half_run(hub, push, tmp_path, monkeypatch, pulled):
    monkeypatch.setattr("hf_datasets.results.push.MAX_RUNS", 4)
    for number in range(10):
        make_run(tmp_path / "many", number, cases=1)
    outcome = push(tmp_path / "many")
    assert len(outcome.commits) == 3
    for commit in hub.history(REPO):
        records = [path for path in commit.files if path.startswith("records/2026/")]
        rows = sum(
            int(path.rpartition("-")[2][:-8]) for path in commit.files if path.startswith("data/runs/")
        )
        assert len(records) == rows
    assert verify(pulled()).differences == []


def test_a_pull_request_holds_the_runs_and_merges_beside_others(hub, client, runs, tmp_path, pulled):
    push_one = client()
    push_one.create(private=False)
    push_runs(runs, push_one, scores)
    for number in (31, 32):
        make_run(tmp_path / f"runs{number}", number)
        one = client(token="hf_second")
        reference = f"refs/pr/{one.pull_request(f'Add {number}', 'text')}"
        assert reference == f"refs/pr/{one.pull_request(f'Add {number}', 'text')}"
        manifest = PublishedFile(f"submissions/{number}.json", b"{}")
        outcome = push_runs(tmp_path / f"runs{number}", one, scores, revision=reference, extra=[manifest])
        assert outcome.complete
        again = push_runs(tmp_path / f"runs{number}", client(), scores, revision=reference, extra=[manifest])
        assert (len(again.present), len(again.published)) == (1, 0)
        assert "submissions/31.json" in hub.files(REPO, "refs/pr/1")
    assert len(ids(pulled())) == 5
    assert len(ids(pulled(revision="refs/pr/2"))) == 6
    for number in (1, 2):
        push_one.api.merge_pull_request(REPO, number, repo_type="dataset")
    folder = pulled()
    assert len(ids(folder)) == 7
    assert verify(folder).differences == []


def test_a_repository_of_a_newer_program_is_left_alone(hub, push, runs):
    push(runs)
    card = hub.files(REPO)["README.md"].decode()
    newer = card.replace(
        "{name: run_id, dtype: string}", "{name: run_id, dtype: string}\n  - {name: later, dtype: int64}", 1
    )
    assert newer != card
    head = hub.put(REPO, {"README.md": newer.encode()})
    make_run(runs, 40)
    with pytest.raises(HubError, match=r"columns that this program does not know \(later\); update"):
        push(runs)
    assert hub.history(REPO)[0].oid == head


def test_what_others_put_there_stays(hub, push, runs):
    hub.put(
        REPO, {"notes/mine.txt": b"hello", "README.md": b"my own words", "records/2026/odd name.json": b"{"}
    )
    assert push(runs).complete
    files = hub.files(REPO)
    assert files["notes/mine.txt"] == b"hello"
    assert b"5 runs" in files["README.md"]
