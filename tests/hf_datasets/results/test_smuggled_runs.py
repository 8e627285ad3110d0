"""A pull request brings what its manifest lists and nothing else, and what is said of one run counts for it alone."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256

import pyarrow.parquet as pq
import pytest
import zstandard
from run_maker import make_record, make_run, scores

from hf_datasets.arrow import PublishedRun, runs_table
from hf_datasets.publish import PublishedFile
from hf_datasets.records import dump_record
from hf_datasets.results import verify as verifying
from hf_datasets.results.push import push as push_runs
from hf_datasets.submission_check import check_submission, strays, submissions_in
from hf_datasets.submissions import FOLDER, describe

REPO = "demo/results"


@pytest.fixture
def submitted(push, client, runs, tmp_path):
    """Five runs on main, a sixth as a submission; says what the pull request brings, with more runs beside it."""
    push(runs)

    def send(*numbers: int):
        mine = tmp_path / "mine"
        make_run(mine, 7, repeat=0)
        form = describe(mine, scores)
        for number in numbers:
            make_run(mine, number)
        reference = f"refs/pr/{client().pull_request('one more', '')}"
        manifest = PublishedFile(form.path, form.model_dump_json().encode())
        push_runs(mine, client(), scores, revision=reference, extra=[manifest])
        return form, reference

    return send


def test_an_honest_pull_request_brings_nothing_else(submitted, pulled, client):
    form, reference = submitted()
    folder = pulled(revision=reference)
    assert strays(folder, submissions_in(folder), client().head([FOLDER, "records"]).files) == []
    (status,) = check_submission(folder, form).statuses
    assert status.status == "self-reported"


def test_a_run_that_no_manifest_lists_is_named_and_nothing_is_checked_off(
    submitted, pulled, client, hub, tmp_path
):
    _, reference = submitted(8)
    folder = pulled(revision=reference)
    found = strays(folder, submissions_in(folder), client().head([FOLDER, "records"]).files)
    assert [make_record(8).run_id in line for line in found] == [True, True]  # its record and its row
    argv = (sys.executable, "-m", "hf_datasets", "verify-submission", "1", "--repo", REPO)
    done = subprocess.run(argv, env=hub.environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert make_record(8).run_id in done.stderr
    assert "listed by no manifest" in done.stderr
    assert done.stderr.count("\n") == 1


def test_another_row_than_that_of_the_listed_record_is_refused(submitted, pulled, client):
    """A second record of the run, with better scores and the row; the sound one is only there to be checked."""
    form, reference = submitted()
    folder = pulled(revision=reference)
    better = make_record(7, repeat=0, s1=1.0, overall=1.0)
    content = dump_record(better).encode()
    digest = sha256(content).hexdigest()
    (folder / f"records/2026/{better.run_id}_{digest[:8]}.json").write_bytes(content)
    for part in (folder / "data/runs").glob("*.parquet"):
        table = pq.read_table(part)
        if better.run_id in table["run_id"].to_pylist():
            pq.write_table(runs_table([PublishedRun(better, digest, "re-scored")]), part)
    (status,) = check_submission(folder, form).statuses
    assert status.status.startswith("rejected: digests or totals")
    found = strays(folder, submissions_in(folder), client().head([FOLDER, "records"]).files)
    assert len(found) == 2
    assert all(better.run_id in line for line in found)


def test_what_differs_in_a_run_with_a_longer_name_is_not_held_against_another(submitted, pulled):
    form, reference = submitted()
    folder = pulled(revision=reference)
    longer = make_record(7, repeat=0, run_id=f"{form.present[0].run_id}0")
    (folder / f"records/2026/{longer.run_id}.json").write_text(dump_record(longer))
    (status,) = check_submission(folder, form).statuses
    assert status.status == "self-reported"


def test_a_trace_that_unpacks_to_more_than_any_trace_is_not_read_to_its_end(pulled, push, runs, monkeypatch):
    push(runs)
    folder = pulled()
    monkeypatch.setattr(verifying, "MAX_TRACE_BYTES", 1 << 20)
    (folder / "traces").mkdir()
    packed = zstandard.ZstdCompressor().compress(bytes(3 << 20))
    (folder / "traces" / f"{make_record(0).run_id}.jsonl.zst").write_bytes(packed)
    assert [line for line in verifying.verify(folder).differences if "cannot be unpacked" in line]
