"""Runs are submitted as a pull request and checked by whoever merges it, scores included, with the real clients."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from hub_standin import HubStandIn

from evaluator.files import sha256_file
from evaluator.report import TaskReport
from hf_datasets.archives import ArchiveError
from hf_datasets.arrow import PublishedRun, cases_table, runs_table
from hf_datasets.outputs import unpack_outputs
from hf_datasets.records import case_records, load_record
from hf_datasets.submission_check import check_submission, submissions_in
from hf_datasets.submissions import SubmissionForm, submission_id

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]


@pytest.fixture
def results(hub) -> str:
    hub.put("bench/results", {"README.md": b"# results\n"})
    return "bench/results"


@pytest.fixture
def submitted(runs_copy, results, hub, command):
    """Both runs, submitted; the manifest."""
    done = command("hf_datasets", "submit", runs_copy, "--to", results, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["reference"], said["runs"]) == ("refs/pr/1", 2)
    return SubmissionForm.model_validate_json(
        hub.files(results, "refs/pr/1")[f"submissions/{said['submission']}.json"]
    )


@pytest.fixture
def check(command, results, shared_folder):
    """``verify-submission`` by the runner; exit code, and run id -> its outcome."""

    def run(target: object, *more: object, data: Path | None = None):
        done = command(
            "runner", "verify-submission", target, "--repo", results, "--data", data or shared_folder / "data",
            "--sandbox", "bubblewrap", "--json", *more,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return done.returncode, {run["run_id"]: run for one in json.loads(done.stdout) for run in one["runs"]}

    return run


def test_a_submission_is_a_pull_request_that_is_checked_scored_again_and_marked(
    submitted, results, hub, command, check, tmp_path
):
    assert [(cell.task, cell.agent, cell.repeats) for cell in submitted.planned] == [
        ("bccd-det-task", "baseline", 2)
    ]
    assert all(run.outputs_sha256 for run in submitted.present)
    assert not any(
        path.startswith(("records/", "submissions/")) for path in hub.files(results)
    )  # main is untouched

    code, runs = check(1, "--publish")
    assert (code, {run["status"] for run in runs.values()}) == (0, {"re-scored"})
    assert set(runs) == {run.run_id for run in submitted.present}
    assert all(run["checks"]["limits"] == "the task's own" for run in runs.values())
    written = hub.files(results, "refs/pr/1")
    for run_id in runs:
        assert json.loads(written[f"status/{run_id}.json"])["status"] == "re-scored"

    pulled = command("hf_datasets", "pull", results, "--out", tmp_path / "pulled", "--revision", "refs/pr/1")
    assert pulled.returncode == 0, pulled.stderr
    assert set(pq.read_table(tmp_path / "pulled" / "data" / "runs")["status"].to_pylist()) == {"re-scored"}
    assert command("hf_datasets", "verify", tmp_path / "pulled").returncode == 0


def test_the_same_runs_sent_again_go_on_with_the_same_pull_request(
    submitted, runs_copy, results, hub, command
):
    commits = len(hub.history(results, "refs/pr/1"))
    assert command("hf_datasets", "submit", runs_copy, "--to", results).returncode == 0
    assert len(hub.repos[results].pulls) == 1
    assert len(hub.history(results, "refs/pr/1")) == commits


def test_without_an_evaluator_a_sound_run_stays_self_reported(submitted, results, command):
    done = command("hf_datasets", "verify-submission", "refs/pr/1", "--repo", results, "--json")
    assert done.returncode == 0, done.stderr
    for run in json.loads(done.stdout)[0]["runs"]:
        assert run["status"] == "self-reported"
        assert run["checks"]["scores"] == "not scored again: no evaluator was given"


@pytest.fixture(scope="module")
def pulled_once(finished, tmp_path_factory) -> Path:
    """The submission of both runs as a folder, as ``pull`` lays it out."""
    home = tmp_path_factory.mktemp("pulled")
    runs = shutil.copytree(finished, home / "runs", ignore=shutil.ignore_patterns("workspace", ".*.lock"))
    with HubStandIn() as hub:
        hub.put("bench/results", {"README.md": b"# results\n"})
        for arguments in (
            ("submit", runs, "--to", "bench/results"),
            ("pull", "bench/results", "--out", home / "results", "--revision", "refs/pr/1"),
        ):
            argv = [sys.executable, "-m", "hf_datasets", *map(str, arguments)]
            subprocess.run(argv, env=hub.environment(home), check=True, capture_output=True, timeout=300)
    return home / "results"


@pytest.fixture
def pulled(pulled_once, tmp_path) -> Path:
    """A copy that a test may falsify."""
    return Path(shutil.copytree(pulled_once, tmp_path / "results"))


def outcomes(folder: Path) -> list[str]:
    (form,) = submissions_in(folder)
    return [status.status for status in check_submission(folder, form).statuses]


def falsify(folder: Path, change) -> None:
    """Change the first run's record and let manifest, tables and names agree with it, as a careful cheat would."""
    (path,) = (folder / "submissions").glob("*.json")
    form = json.loads(path.read_text())
    run = form["present"][0]
    (record_path,) = folder.glob(f"records/2*/{run['run_id']}.json")
    record = json.loads(record_path.read_text())
    change(record, run, form)
    raw = json.dumps(record, sort_keys=True, indent=1).encode() + b"\n"
    record_path.write_bytes(raw)
    run["record_sha256"] = hashlib.sha256(raw).hexdigest()
    form["id"] = submission_id(one["record_sha256"] for one in form["present"])
    path.unlink()
    path.with_name(f"{form['id']}.json").write_text(json.dumps(form))
    _write_tables(folder)


def _write_tables(folder: Path) -> None:
    """Tables that follow from the records as they are now."""
    runs, cases = [], []
    for path in sorted(folder.glob("records/2*/*.json")):
        record, digest = load_record(path), sha256_file(path)
        runs.append(PublishedRun(record, digest))
        report = TaskReport.model_validate_json(
            (folder / "details" / record.run_id / "report.json").read_bytes()
        )
        cases += [(case, digest) for case in case_records(record, report)]
    for name, table in (("runs", runs_table(runs)), ("cases", cases_table(cases))):
        shutil.rmtree(folder / "data" / name)
        (folder / "data" / name).mkdir()
        pq.write_table(table, folder / "data" / name / f"part-{'0' * 16}-{len(table)}.parquet")


def set_field(name: str, value: object):
    def change(record, run, form) -> None:
        record[name] = value

    return change


def other_limits(record, run, form) -> None:
    record["limits"]["wall_seconds"] = run["limits"]["wall_seconds"] = 7200


def better_score(record, run, form) -> None:
    """Everything that follows from the task score is raised with it."""
    record["task_score"] = record["task_score_ungated"] = 1.0
    record["overall"] = (record["agentic"] + 1.0) / 2


def a_third_repeat_was_planned(record, run, form) -> None:
    form["planned"][0]["repeats"] = 3


def other_outputs(record, run, form) -> None:
    record["submission_sha256"] = "0" * 64


FALSE = {
    "a better score": (better_score, "rejected: "),
    "other limits": (other_limits, "rejected: limits: wall_seconds was 7200, the task's is 3600"),
    "a run left out": (a_third_repeat_was_planned, "rejected: incomplete: 1 of 3 repeats are missing (r02)"),
    "another judge": (
        set_field("judge_model", "org/kind-judge"),
        "rejected: judge: not the judge of the submission",
    ),
    "another task": (set_field("task", "vindr-cxr-det-task"), "rejected: "),
    "other outputs": (
        other_outputs,
        "rejected: digests: the outputs are not those that the record was sealed over",
    ),
    "a total that does not follow": (set_field("overall", 0.999), "rejected: digests or totals: "),
    "a newer form": (set_field("schema_version", 2), "rejected: "),
}


@pytest.mark.parametrize("kind", FALSE)
def test_a_run_that_is_not_what_it_says_is_rejected_with_the_reason(kind, pulled):
    change, reason = FALSE[kind]
    try:
        falsify(pulled, change)
    except Exception:
        if kind not in ("a newer form", "another task"):
            raise
    statuses = outcomes(pulled)
    assert statuses[0].startswith(reason)
    if kind != "a run left out":
        assert statuses[1] == "self-reported"


def test_scores_that_only_the_evaluator_can_refute_are_refuted_by_it(pulled, check):
    """Report, record, cases and tables all agree on the lie; what was handed in does not."""

    def lie(record, run, form) -> None:
        path = pulled / "details" / record["run_id"] / "report.json"
        report = json.loads(path.read_text())
        for name in ("map50_coco101",):
            report["aggregates"][name] = record["metrics"][name] = 1.0
        for name in ("task_score", "task_score_ungated"):
            report[name] = record[name] = 1.0
        record["overall"] = (record["agentic"] + 1.0) / 2
        path.write_text(json.dumps(report, sort_keys=True, indent=1) + "\n")
        record["report_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    falsify(pulled, lie)
    code, runs = check(pulled)
    assert code == 3
    first, second = runs.values()
    assert first["status"].startswith("rejected: scores: task_score is 1.0, scored again it is 0.")
    assert second["status"] == "re-scored"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("../escaped", tarfile.REGTYPE), ("case-1/x", tarfile.SYMTYPE), ("/tmp/escaped", tarfile.REGTYPE)],
)
def test_packed_outputs_from_a_stranger_are_not_trusted(name, kind, tmp_path):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    (tmp_path / "bad.tar.zst").write_bytes(zstandard.ZstdCompressor().compress(raw.getvalue()))
    with pytest.raises(ArchiveError):
        unpack_outputs(tmp_path / "bad.tar.zst", tmp_path / "here" / "out")
    assert [path for path in tmp_path.rglob("*") if path.name not in ("bad.tar.zst", "here", "out")] == []


def test_what_is_not_finished_or_does_not_belong_together_is_not_sent(runs_copy, results, hub, command):
    def refused(words: str) -> None:
        done = command("hf_datasets", "submit", runs_copy, "--to", results)
        assert done.returncode == 3
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert not hub.repos[results].pulls

    first, _ = sorted(runs_copy.rglob("record.json"))
    kept = first.read_text()
    first.unlink()
    refused("the run is not finished")
    shutil.move(first.parent, runs_copy.parent / "aside")
    refused("1 of 2 repeats are missing (r00); all repeats of a cell are submitted together")
    shutil.move(runs_copy.parent / "aside", first.parent)
    record = json.loads(kept) | {"judge_model": "org/other"}
    first.write_text(json.dumps(record, sort_keys=True, indent=1) + "\n")
    refused("more than one judge")


def test_a_repository_that_is_not_there_is_one_line(runs_copy, command):
    done = command("hf_datasets", "submit", runs_copy, "--to", "bench/nowhere")
    assert done.returncode == 3
    assert "bench/nowhere: no such dataset repository" in done.stderr
