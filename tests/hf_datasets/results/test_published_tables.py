"""The tables' schema: every field of a record, explicit types, room to grow, and the page that describes it."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_maker import digest, make_record, make_report, make_run

from evaluator.trace import EndReason
from hf_datasets.arrow import CASES, RUN_COLUMNS, RUNS, PublishedRun, cases_table, run_row, runs_table
from hf_datasets.card import card, require_known
from hf_datasets.records import (
    CaseRecord,
    RecordError,
    RunRecord,
    case_records,
    dump_record,
    parse_case,
    parse_record,
)
from hf_datasets.records_page import records_page
from hf_datasets.results.layout import record_path, run_of_record
from hf_datasets.results.tables import read_part, to_parquet

ROOT = Path(__file__).parents[3]
FLATTENED = {"limits", "stages"}


def test_every_field_of_a_record_has_its_columns():
    assert set(RunRecord.model_fields) - set(RUNS.names) == FLATTENED
    assert set(CaseRecord.model_fields) - set(CASES.names) == set()
    assert len(RUNS.names) == len(set(RUNS.names))
    assert all(column.text for column in RUN_COLUMNS)
    assert {"limit_cpus", "s1_seconds", "s5_cost_usd", "record_sha256", "status"} <= set(RUNS.names)


def test_the_page_of_records_is_current():
    page = (ROOT / "docs/records.md").read_text(encoding="utf-8")
    assert page == records_page(), "run python -m hf_datasets.records_page > docs/records.md"
    assert page.count("\n| `") == len(RUNS.names) + len(CASES.names)


def test_a_row_says_what_the_record_says():
    record = make_record(3, gpus=("A", "B"), skill=-0.25, cost_usd=None, stages=())
    (row,) = runs_table([PublishedRun(record, digest(3), "re-scored")]).to_pylist()
    assert row == run_row(PublishedRun(record, digest(3), "re-scored"))
    assert (row["gpus"], row["skill"], row["cost_usd"], row["status"]) == (
        ["A", "B"],
        -0.25,
        None,
        "re-scored",
    )
    assert row["s1_start"] is None
    assert row["limit_turns"] == record.limits.turns
    assert json.loads(row["metrics"]) == dict(record.metrics)
    assert row["started_at"] == record.started_at


def test_times_are_utc_in_microseconds_wherever_they_were_written():
    here = datetime(2026, 5, 1, 1, 2, 3, 456789, tzinfo=timezone(timedelta(hours=5)))
    (row,) = runs_table([PublishedRun(make_record(0, started_at=here), digest(0))]).to_pylist()
    assert row["started_at"] == here
    assert row["started_at"].utcoffset() == timedelta(0)
    text = dump_record(make_record(0)).replace("2026-03-01T12:00:00Z", "2026-03-01T12:00:00")
    with pytest.raises(RecordError, match="started_at: Input should have timezone info"):
        parse_record(text, "record.json")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"overall": math.nan}, "overall"), ({"skill": math.inf}, "skill"), ({"overall": 1.1}, "overall"),
        ({"tokens_in": 2**63}, "tokens_in"), ({"attempt": 2**70}, "attempt"), ({"turns": -1}, "turns"),
        ({"run_id": "../x"}, "run_id"), ({"run_id": "a_b"}, "run_id"), ({"run_id": "a" * 201}, "run_id"),
    ],
)  # fmt: skip
def test_what_no_table_can_hold_is_no_record(change, field):
    with pytest.raises(ValueError, match=field):
        make_record(0, **change)


def test_cases_come_from_json_and_from_the_report_alike():
    record, report = make_record(8), make_report(8, cases=8)
    cases = case_records(record, report)
    again = [parse_case(case.model_dump_json(), "case") for case in cases]
    assert tuple(again) == cases
    table = cases_table([(case, digest(8)) for case in cases])
    assert table.column("status").to_pylist() == ["scored"] * 7 + ["missing"]
    assert table.column("error_code").to_pylist()[-1] == "missing"
    assert set(table.column("record_sha256").to_pylist()) == {digest(8)}
    with pytest.raises(RecordError, match=r"x: schema version 2; this program reads version 1, update it"):
        parse_case('{"schema_version": 2}', "x")


numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.text(max_size=40).filter(str.isprintable), st.dictionaries(st.text(max_size=9), numbers, max_size=4),
    st.sampled_from(list(EndReason)), st.lists(st.text(max_size=9), max_size=3), st.integers(0, 2**63 - 1),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_any_sound_record_survives_the_table(words, metrics, reason, flags, count):
    record = make_record(
        1, end_detail=words, metrics=metrics, end_reason=reason, flags=flags, tokens_in=count
    )
    content = to_parquet(runs_table([PublishedRun(record, digest(1))]))
    found = read_part(content, RUNS, "part")
    assert found.problems == ()
    (row,) = found.table.to_pylist()
    assert row == run_row(PublishedRun(record, digest(1)))
    assert parse_record(dump_record(record), "record.json") == record


def test_paths_of_records_give_their_run_and_folders_stay_within_the_hubs_limit():
    record = make_record(0)
    path = record_path(record, digest(0), correction=False, taken={})
    correction = record_path(record, digest(0), correction=True, taken={})
    assert path == f"records/2026/{record.run_id}.json"
    assert {run_of_record(path), run_of_record(correction)} == {record.run_id}
    full = record_path(
        record, digest(0), correction=False, taken={"records/2026": 4500, "records/2026-2": 4500}
    )
    assert full.startswith("records/2026-3/")
    assert run_of_record(full) == record.run_id
    for odd in ("records/x.json", "records/2026/../x.json", "data/runs/x.json", "records/2026/a_b.json"):
        assert run_of_record(odd) is None


def test_the_card_is_the_same_for_the_same_counts_and_lists_every_task():
    text = card("org/name", 5, 1234)
    assert text == card("org/name", 5, 1234)
    assert "5 runs, 1,234 cases" in text
    assert text.count("\n| `") >= 48
    require_known(text)
    require_known("somebody's own card")
    require_known("---\n- not: what is expected\n---\n")


LOAD = """
import json, sys
from datasets import load_dataset
rows = {}
for name in ("runs", "cases"):
    table = load_dataset(sys.argv[1], name, split="train", revision=sys.argv[2])
    rows[name] = [len(table), table.column_names, table[0]["run_id"], table[len(table) - 1].get("limit_cpus")]
    assert table.features == load_dataset(sys.argv[1], name, split="train", streaming=True).features
rows["default"] = len(load_dataset(sys.argv[1], split="train"))
print(json.dumps(rows))
"""


@pytest.mark.slow
def test_load_dataset_works_on_first_push_and_after_the_schema_grew(hub, push, runs, tmp_path):
    """The first part is of a program without three of the columns; the one pushed after it has them all."""

    def load():
        done = subprocess.run(
            [sys.executable, "-c", LOAD, "demo/results", hub.history("demo/results")[0].oid],
            env=hub.environment(tmp_path / "home", token=None), capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    push(runs)
    first = load()
    assert first["runs"][:2] == [5, RUNS.names]
    assert first["cases"][:2] == [15, CASES.names]
    assert first["default"] == 5
    for path, content in hub.files("demo/results").items():
        if path.startswith("data/"):
            table = pq.read_table(pa.BufferReader(content))
            dropped = [
                name for name in ("limit_cpus", "flags", "downloads_sha256") if name in table.column_names
            ]
            sink = io.BytesIO()
            pq.write_table(table.drop(dropped), sink)
            hub.put("demo/results", {path: sink.getvalue()})
    make_run(runs, 7)
    push(runs)
    grown = load()
    assert grown["runs"][:2] == [6, RUNS.names]
    assert grown["cases"][:2] == [18, CASES.names]
