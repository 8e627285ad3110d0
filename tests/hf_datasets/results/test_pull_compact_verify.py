"""What was pulled is whole, compacting changes nothing but the number of parts, and verify names every difference."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from run_maker import digest, make_record, make_report, make_run, scores

from evaluator.report import dump_report
from hf_datasets.hub import Hub, HubError, NotReached
from hf_datasets.publish import Publication, PublishedFile
from hf_datasets.records import RunStatus, dump_record
from hf_datasets.results.compact import compact, publish_statuses
from hf_datasets.results.layout import parts
from hf_datasets.results.pull import pull
from hf_datasets.results.read import read_results
from hf_datasets.results.verify import verify

REPO = "demo/results"


def run_id(number):
    return make_record(number).run_id


# --- pull ---


def test_thousands_of_records_come_in_a_few_requests(hub, push, runs, pulled):
    push(runs)
    hub.requests.clear()
    folder = pulled()
    assert hub.count("GET .*/resolve/.*/records/2026/") == 0
    for number in range(5):
        assert (folder / f"records/2026/{run_id(number)}.json").read_text() == dump_record(
            make_record(number)
        )
    assert (folder / "revision.txt").read_text().strip() == hub.history(REPO)[0].oid


def test_a_pinned_revision_is_what_it_was(hub, push, runs, pulled):
    push(runs)
    pinned = hub.history(REPO)[0].oid
    make_run(runs, 6)
    make_run(runs, 1, supersedes=digest_of(1), harness_version="0.2.0")
    push(runs)
    old, new = read_results(pulled(revision=pinned)).runs, read_results(pulled()).runs
    assert (len(old), len(new)) == (5, 6)
    assert set(old.harness_version) == {"0.1.0"}
    with pytest.raises(HubError, match="no such branch, tag or commit"):
        pulled(revision="0" * 40)


def digest_of(number):
    return hashlib.sha256(dump_record(make_record(number)).encode()).hexdigest()


def test_a_record_that_was_added_by_hand_or_differs_from_its_pack_is_taken_from_its_own_file(
    hub, push, runs, pulled
):
    push(runs)
    by_hand = dump_record(make_record(50)).encode()
    changed = dump_record(make_record(0, end_detail="changed")).encode()
    hub.put(REPO, {f"records/2026/{run_id(50)}.json": by_hand, f"records/2026/{run_id(0)}.json": changed})
    folder = pulled()
    assert (folder / f"records/2026/{run_id(50)}.json").read_bytes() == by_hand
    assert (folder / f"records/2026/{run_id(0)}.json").read_bytes() == changed
    found = verify(folder).differences
    assert any(f"{run_id(50)} has a record and no row" in line for line in found)
    assert any(f"{run_id(0)} is the row of" in line for line in found)


def test_hostile_packs_write_nothing_outside(hub, push, runs, client, tmp_path):
    push(runs)
    evil = pa.table(
        {"path": ["../../evil.json", "/evil.json", "records/2026/../evil.json"], "run_id": ["x"] * 3,
         "record_sha256": [hashlib.sha256(b"x").hexdigest()] * 3, "record": [b"x"] * 3}
    )  # fmt: skip
    pq.write_table(evil, tmp_path / "evil.parquet")
    hub.put(REPO, {
        "records/packed/part-0000000000000000-3.parquet": (tmp_path / "evil.parquet").read_bytes(),
        "records/packed/part-1111111111111111-3.parquet": b"no parquet",
    })  # fmt: skip
    hub.put(REPO, {f"records/2026/{'a' * 300}.json": b"{}", "records/2026/r\u00fcn.json": b"{}"})
    done = pull(client(), tmp_path / "deep/pulled")
    assert done.records == 5
    assert len(done.problems) == 6
    assert sum("is no name of a record" in problem and len(problem) < 120 for problem in done.problems) == 2
    assert not list(tmp_path.rglob("evil.json"))


def test_without_a_network_the_last_pull_is_used(hub, push, runs, tmp_path):
    push(runs)
    cache = tmp_path / "kept"
    one = Hub(REPO, endpoint=hub.url, token="hf_reader", cache=cache)
    first = pull(one, tmp_path / "first")
    away = Hub(REPO, endpoint="http://127.0.0.1:9", cache=cache, sleep=lambda _: None)
    said = []
    second = pull(away, tmp_path / "second", say=said.append)
    assert (second.sha, second.records, second.from_cache) == (first.sha, 5, True)
    assert "no network reached 127.0.0.1:9" in said[0]
    assert read_results(tmp_path / "second").runs.equals(read_results(tmp_path / "first").runs)
    empty = Hub(REPO, endpoint="http://127.0.0.1:9", cache=tmp_path / "none", sleep=lambda _: None)
    with pytest.raises(NotReached, match="is not in the cache"):
        pull(empty, tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_body_that_breaks_off_is_asked_for_again(hub, push, runs, client, tmp_path):
    push(runs)
    hub.fail("GET .*/resolve/.*runs/part", cut=700)
    hub.fail("GET .*/tree/", cut=40)
    done = pull(client(), tmp_path / "pulled")
    assert done.problems == ()
    assert verify(done.folder).differences == []


def test_a_folder_with_other_things_is_not_replaced(hub, push, runs, client, tmp_path):
    push(runs)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds other things"):
        pull(client(), tmp_path / "mine")
    assert (tmp_path / "mine/thesis.txt").is_file()


def test_gated_results_say_what_to_do(hub, client, tmp_path):
    hub.put(REPO, {}, gated=True)
    with pytest.raises(HubError, match="is gated: ask for access"):
        pull(client(token="hf_reader"), tmp_path / "pulled")


def test_a_corrupt_part_in_the_repository_is_named_and_the_rest_is_read(hub, push, runs, pulled):
    push(runs)
    make_run(runs, 9)
    push(runs)
    (part, *_) = parts(hub.files(REPO), "data/runs")
    hub.put(REPO, {part.path: b"PAR1 broken"})
    found = read_results(pulled())
    assert len(found.runs) in (1, 5)
    assert part.path.removeprefix("data/") in found.problems[0]
    make_run(runs, 10)
    assert push(runs).complete


# --- compact ---


def test_compacting_merges_parts_and_changes_no_row(hub, push, runs, client, pulled):
    for number in range(6, 10):
        make_run(runs, number)
        push(runs)
    make_run(runs, 1, supersedes=digest_of(1), harness_version="0.2.0")
    push(runs)
    before = read_results(pulled())
    assert len(parts(hub.files(REPO), "data/runs")) == 5
    commit = compact(client())
    after = read_results(pulled())
    files = hub.files(REPO)
    for folder in ("data/runs", "data/cases", "records/packed"):
        assert len(parts(files, folder)) == 1, folder
    assert before.runs.equals(after.runs)
    columns = ["run_id", "case_id"]
    assert before.cases.frame.sort_values(columns, ignore_index=True).equals(after.cases.frame)
    assert verify(pulled()).differences == []
    assert b"9 runs, 27 cases" in files["README.md"]
    assert compact(client()) == commit
    make_run(runs, 20)
    assert push(runs).complete


def test_compacting_refuses_what_it_would_lose(hub, push, runs, client, tmp_path):
    push(runs)
    (part,) = parts(hub.files(REPO), "data/runs")
    runs_table = pq.read_table(pa.BufferReader(hub.files(REPO)[part.path]))
    pq.write_table(runs_table.append_column("later", pa.array([1] * 5)), tmp_path / "x")
    hub.put(REPO, {part.path: (tmp_path / "x").read_bytes()})
    head = hub.history(REPO)[0].oid
    with pytest.raises(
        HubError, match="columns of a newer program; update automedbench; nothing was changed"
    ):
        compact(client())
    hub.put(REPO, {part.path: b"broken"})
    with pytest.raises(HubError, match="cannot be read"):
        compact(client())
    assert hub.history(REPO)[1].oid == head


def test_a_status_shows_in_the_table_and_goes_with_a_correction(hub, push, runs, client, pulled):
    push(runs)
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    statuses = [
        RunStatus(run_id=run_id(0), record_sha256=digest_of(0), status="re-scored", checked_at=moment),
        RunStatus(
            run_id=run_id(1), record_sha256=digest_of(1), status="rejected: no such case", checked_at=moment
        ),
    ]
    commit = publish_statuses(client(), statuses)
    assert publish_statuses(client(), statuses) == commit
    folder = pulled()
    status = read_results(folder).runs.set_index("run_id").status
    assert (status[run_id(0)], status[run_id(1)]) == ("re-scored", "rejected: no such case")
    assert set(status[2:]) | {status[run_id(2)]} >= {"self-reported"}
    assert verify(folder).differences == []
    assert len(read_results(folder).cases.frame) == 15
    make_run(runs, 0, supersedes=digest_of(0), harness_version="0.2.0")
    push(runs)
    folder = pulled()
    assert read_results(folder).runs.set_index("run_id").status[run_id(0)] == "self-reported"
    assert verify(folder).differences == []


# --- verify ---


@pytest.fixture
def checked(push, runs, pulled):
    """A pulled folder with reports and traces, in which a test may change what it likes."""

    def publish(folder):
        made = scores(folder)
        report = PublishedFile(
            f"details/{made.record.run_id}/report.json", (folder / "report.json").read_bytes()
        )
        text = b"redacted" if made.record.repeat == 1 else b"trace %d" % made.record.repeat
        trace = PublishedFile(f"traces/{made.record.run_id}.jsonl.zst", zstandard.compress(text))
        return Publication(made.record, made.record_bytes, made.cases, files=(report, trace))

    for number in range(5):
        make_run(runs, number, trace_sha256=hashlib.sha256(b"trace %d" % number).hexdigest())
    push(runs, publish)
    return pulled()


def table(folder, name):
    (path,) = (folder / "data" / name).glob("*.parquet")
    return path, pq.read_table(path)


def with_value(table, column, row, value):
    values = table[column].to_pylist()
    values[row] = value
    place, kind = table.column_names.index(column), table.schema.field(column)
    return table.set_column(place, kind, pa.array(values, kind.type))


def test_untouched_results_verify(checked):
    found = verify(checked)
    assert found.differences == []
    assert (found.runs, found.cases, found.reports, found.traces) == (5, 15, 5, 4)
    assert any("redacted" in note for note in found.notes)
    assert any("rubric" in note for note in found.notes)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("overall", 0.99, "overall is 0.99, the record gives"),
        ("agent", "somebody-else", "agent is 'somebody-else', the record gives"),
        ("items", "[]", "items is '[]'"),
        ("limit_turns", 9, "limit_turns is 9"),
        ("s3_seconds", 1e6, "s3_seconds is 1000000.0"),
        ("status", "re-scored", "status is 're-scored', the record gives 'self-reported'"),
        ("record_sha256", "0" * 64, "is the row of 00000000"),
        ("run_id", "nobody", "nobody has a row and no record"),
        ("started_at", datetime(2020, 1, 1, tzinfo=UTC), "started_at is"),
    ],
)
def test_a_changed_row_is_named(checked, column, value, words):
    path, runs = table(checked, "runs")
    pq.write_table(with_value(runs, column, 2, value), path)
    assert any(words in line for line in verify(checked).differences)


def test_a_missing_and_a_second_row_are_named(checked):
    path, runs = table(checked, "runs")
    pq.write_table(pa.concat_tables([runs.slice(1), runs.slice(1, 1)]), path)
    joined = "\n".join(verify(checked).differences)
    assert "has a record and no row" in joined
    assert "has more than one row" in joined


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("score", 0.123, "task_score_ungated is"),
        ("status", "missing", "n_scored is 3, its cases give 2"),
        ("case_id", "case-00000000", "has a case twice"),
        ("error_code", "made_up", "its rows are not the cases of its report"),
        ("record_sha256", "1" * 64, "belong to no current record"),
    ],
)
def test_a_changed_case_is_named(checked, column, value, words):
    path, cases = table(checked, "cases")
    pq.write_table(with_value(cases, column, 1, value), path)
    assert any(words in line for line in verify(checked).differences)


def test_changed_records_and_files_are_named(checked):
    paths = [checked / f"records/2026/{run_id(number)}.json" for number in range(3)]
    totals = json.loads(paths[0].read_text())
    paths[0].write_text(json.dumps(totals | {"overall": 0.111}))
    paths[1].write_text("{")
    paths[2].rename(paths[2].with_name("another.json"))
    report = checked / "details" / run_id(3) / "report.json"
    report.write_text(dump_report(make_report(3)).replace("}", "} ", 1))
    trace = checked / "traces" / f"{run_id(4)}.jsonl.zst"
    trace.write_bytes(b"no zstd")
    joined = "\n".join(verify(checked).differences)
    assert "overall is 0.111, recomputed it is" in joined
    assert f"records/2026/{paths[1].name}" in joined
    assert f"another.json: is the record of {run_id(2)}" in joined
    assert f"details/{run_id(3)}/report.json: is not the report that the record names" in joined
    assert f"traces/{run_id(4)}.jsonl.zst: cannot be unpacked" in joined


def test_stages_follow_from_the_items_where_the_rubric_is_ours(push, tmp_path, pulled):
    from evaluator.rubric import load_rubric
    from tasks.schema import Track

    rubric = load_rubric(Track.SEGMENTATION)
    items = [{"id": item.id, "stage": item.stage, "value": 1.0, "applies": True} for item in rubric.items]
    make_run(tmp_path / "runs", 0, items=items, rubric_sha256=rubric.sha256, s1=0.5, s2=1.0, s3=1.0)
    push(tmp_path / "runs")
    joined = "\n".join(verify(pulled()).differences)
    assert "s1 is 0.5, recomputed it is 1.0" in joined
    assert "s2 is" not in joined


def test_a_folder_that_was_not_pulled_is_said(tmp_path):
    with pytest.raises(NotADirectoryError, match="expected a folder made by 'pull'"):
        verify(tmp_path)
    assert digest(1)
