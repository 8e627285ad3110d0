"""Results as frames: every good run, every bad one by name, from run folders and from parts alike."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_maker import digest, make_record, make_report, make_run

from hf_datasets.arrow import CASES, RUNS, VERSION_KEY, PublishedRun, cases_table, runs_table
from hf_datasets.records import case_records, dump_record
from hf_datasets.results import read_results
from hf_datasets.results.tables import read_part, to_parquet

PART = to_parquet(runs_table([PublishedRun(make_record(number), digest(number)) for number in range(3)]))


@pytest.fixture
def parts(tmp_path):
    """A pulled folder with one part of each table; ``parts.add`` writes a further part of runs."""

    class Parts:
        root = tmp_path / "pulled"

        def add(self, name, table):
            (self.root / "data/runs").mkdir(parents=True, exist_ok=True)
            pq.write_table(table, self.root / "data/runs" / f"{name}.parquet")

        def read(self):
            return read_results(self.root)

    made = Parts()
    made.add("part-0", runs_table([published(number) for number in range(3)]))
    (made.root / "data/cases").mkdir(parents=True)
    cases = [
        (case, digest(number))
        for number in range(3)
        for case in case_records(make_record(number), make_report(number))
    ]
    (made.root / "data/cases/part-0.parquet").write_bytes(to_parquet(cases_table(cases)))
    return made


def published(number, **changes):
    return PublishedRun(make_record(number, **changes), digest(number))


def changed(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values, table.field(name).type))


def test_run_folders_give_one_row_a_run_with_every_column(runs):
    found = read_results(runs)
    assert found.problems == ()
    assert list(found.runs.columns) == [*RUNS.names, "folder"]
    assert len(found.runs) == 5
    row = found.runs.iloc[0]
    folder = runs / row.task / row.tier / row.agent / f"r{row['repeat']:02d}"
    assert row.folder == str(folder)
    assert row.record_sha256 == hashlib.sha256((folder / "record.json").read_bytes()).hexdigest()
    assert row.status == "self-reported"
    assert json.loads(row["items"])[0]["id"] == "plan_exists"
    assert row.s1_tokens_in == make_record(int(row["repeat"])).stages[0].tokens_in
    assert str(found.runs.started_at.dtype) == "datetime64[us, UTC]"


def test_cases_are_read_from_the_reports(runs):
    found = read_results(runs)
    assert len(found.cases.frame) == 15
    assert list(found.cases.frame.columns) == CASES.names
    one = found.runs.run_id[0]
    assert set(found.cases_of([one]).frame.run_id) == {one}
    assert found.cases_of(["no-such-run"]).frame.empty


def test_a_report_that_is_not_the_recorded_one_is_named(runs):
    found = read_results(runs)
    report = Path(found.runs.folder[0], "report.json")
    report.write_text(report.read_text() + "\n")
    assert len(found.cases.frame) == 12
    (problem,) = found.cases.problems
    assert found.runs.folder[0] in problem


def test_bad_records_are_named_and_hide_nothing(runs):
    good = dump_record(make_record(9))
    bad = {
        "truncated": good[:100],
        "newer": good.replace('"schema_version": 1', '"schema_version": 2'),
        "dots": good.replace(make_record(9).run_id, "../../etc/passwd"),
        "long": good.replace(make_record(9).run_id, "a" * 300),
        "unicode": good.replace(make_record(9).run_id, "rün"),
        "nan": good.replace('"overall":', '"overall": NaN, "x":'),
        "huge": good.replace('"turns": ', f'"turns": {10**30}'),
    }  # fmt: skip
    for name, text in bad.items():
        (runs / name).mkdir()
        (runs / name / "record.json").write_text(text)
    (runs / "folder" / "record.json").mkdir(parents=True)
    (runs / "link").mkdir()
    (runs / "link" / "record.json").symlink_to("/etc/hostname")
    found = read_results(runs)
    assert len(found.runs) == 5
    assert len(found.problems) == len(bad) + 1  # a folder of that name is no record
    for name in (*bad, "link"):
        assert any(str(runs / name) in problem for problem in found.problems), name
    assert all("\n" not in problem for problem in found.problems)
    assert any("schema version 2" in problem and "update" in problem for problem in found.problems)


def test_a_copied_run_counts_once_and_a_corrected_one_by_its_correction(runs):
    make_run(runs / "copy", 0)
    old = hashlib.sha256(dump_record(make_record(1)).encode()).hexdigest()
    make_run(runs / "again", 1, supersedes=old, harness_version="0.2.0")
    found = read_results(runs)
    assert len(found.runs) == 5
    assert found.runs.set_index("run_id").harness_version[make_record(1).run_id] == "0.2.0"
    (problem,) = found.problems
    assert make_record(0).run_id in problem


def test_what_lies_in_a_workspace_is_no_run(runs):
    folder = next(runs.glob("*/*/*/r00"))
    make_run(folder / "workspace", 77)
    make_run(runs.parent / "elsewhere", 78)
    failed = runs / "vqa-rad-task/lite/agent-0/r00.attempt1"
    failed.mkdir()
    (failed / "record.json").write_text("{")
    assert len(read_results(runs).runs) == 5
    assert read_results(runs).problems == ()


def test_parts_give_the_same_frame_as_run_folders(parts, tmp_path):
    for number in range(3):
        make_run(tmp_path / "runs", number)
    ours, theirs = read_results(tmp_path / "runs").runs, parts.read().runs
    left_out = ["folder", "record_sha256"]
    assert ours.drop(columns=left_out).equals(theirs.drop(columns=left_out))
    assert len(parts.read().cases.frame) == 9
    assert len(parts.read().cases_of([theirs.run_id[1]]).frame) == 3


def test_damaged_parts_are_named_and_stop_nothing(parts):
    whole = to_parquet(runs_table([published(5)]))
    folder = parts.root / "data/runs"
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.parquet").write_bytes(b"")
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 0xFF
    flipped[len(whole) // 4] ^= 0xFF
    (folder / "flipped.parquet").write_bytes(bytes(flipped))
    (folder / "text.parquet").write_text("not a parquet file")
    parts.add("foreign", pa.table({"a": [1]}))
    parts.add("newer", runs_table([published(6)]).replace_schema_metadata({VERSION_KEY: b"2"}))
    parts.add(
        "typed", runs_table([published(7)]).drop(["overall"]).append_column("overall", pa.array(["best"]))
    )
    found = parts.read()
    assert len(found.runs) >= 3
    for name in ("cut", "empty", "text", "foreign", "newer", "typed"):
        assert any(f"runs/{name}.parquet" in problem for problem in found.problems), name
    assert all("\n" not in problem for problem in found.problems)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_damage_to_a_part_raises(data):
    changed = bytearray(PART)
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(changed)))
    found = read_part(bytes(changed[:cut] if data.draw(st.booleans()) else changed), RUNS, "part")
    found.table.to_pandas()
    assert found.table.schema.equals(RUNS)
    assert all(problem.startswith("part: ") and "\n" not in problem for problem in found.problems)


def test_bad_rows_are_named_and_the_other_rows_stay(parts):
    table = runs_table([published(number) for number in range(10, 16)])
    ids = table["run_id"].to_pylist()
    table = changed(table, "run_id", ["../x", "a" * 300, "rün", None, *ids[4:]])
    table = changed(table, "overall", [0.5, 0.5, 0.5, 0.5, float("nan"), 0.5])
    table = changed(table, "schema_version", [1, 1, 1, 1, 1, 1])
    parts.add("part-1", table)
    parts.add("part-2", changed(runs_table([published(20), published(21)]), "schema_version", [1, 2]))
    found = parts.read()
    assert len(found.runs) == 3 + 1 + 1
    assert len(found.problems) == 3
    joined = " | ".join(found.problems)
    assert "'../x'" in joined
    assert "and 1 more" in joined
    assert "a score outside [0, 1]" in joined
    assert "schema version newer than ours" in joined
    assert all(len(problem) < 400 for problem in found.problems)


def test_a_part_of_an_older_program_has_nulls_and_one_of_a_newer_one_loses_its_columns(parts):
    old = runs_table([published(30)]).drop(["downloads_sha256", "flags", "limit_cpus"])
    parts.add("old", old)
    parts.add("new", runs_table([published(31)]).append_column("added_later", pa.array([1])))
    found = parts.read()
    assert found.problems == ()
    assert len(found.runs) == 5
    assert list(found.runs.columns) == [*RUNS.names, "folder"]
    assert found.runs.limit_cpus.isna().sum() == 1


def test_a_superseded_row_and_its_cases_do_not_count(parts):
    correction = PublishedRun(make_record(1, supersedes=digest(1)), digest("new"))
    parts.add("part-1", runs_table([correction]))
    found = parts.read()
    assert len(found.runs) == 3
    assert digest(1) not in set(found.runs.record_sha256)
    assert set(found.cases.frame.record_sha256) == {digest(0), digest(2)}


def test_a_folder_that_is_none_is_said(tmp_path):
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        read_results(tmp_path / "none")
    assert read_results(tmp_path).runs.empty
    assert list(read_results(tmp_path).runs.columns) == [*RUNS.names, "folder"]
