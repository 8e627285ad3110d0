"""One cell from the command line to the sealed record, and what can be done with it afterwards."""

from __future__ import annotations

import json
import shutil

import pytest

from evaluator.files import sha256_file
from evaluator.trace import EndReason, read_trace
from hf_datasets.records import RunRecord, load_record
from runner.trace import verify_chain

FILES = {
    "cell.json",
    "trace.jsonl",
    "workspace",
    "submission",
    "report.json",
    "judgement.json",
    "record.json",
}


def test_a_run_writes_the_folder_and_is_not_repeated(command, sandbox):
    first = command.run("--json", sandbox=sandbox, agent="baseline")
    assert first.code == 0, first.err
    assert first.json["state"] == "scored"
    folder = command.folder(agent="baseline")
    assert {path.name for path in folder.iterdir()} >= FILES
    record = load_record(folder / "record.json")
    assert record == RunRecord.model_validate(first.json["record"])
    assert record.end_reason is EndReason.SUBMITTED
    assert record.sandbox == sandbox
    assert 0 < record.task_score < 1
    assert record.overall == pytest.approx((record.agentic + record.task_score) / 2)
    assert record.trace_sha256 == sha256_file(folder / "trace.jsonl")
    assert record.report_sha256 == sha256_file(folder / "report.json")
    assert verify_chain(folder / "trace.jsonl") is None

    before = (folder / "record.json").read_bytes()
    again = command.run(sandbox=sandbox, agent="baseline")
    assert again.code == 0
    assert "already done" in again.out
    assert (folder / "record.json").read_bytes() == before

    assert command.run(sandbox=sandbox, agent="baseline", repeat=1).code == 0
    assert (command.folder(agent="baseline", repeat=1) / "record.json").is_file()
    assert not list(folder.parent.glob("*.attempt*"))


def test_doing_nothing_is_worth_nothing(command, sandbox):
    answer = command.run("--json", sandbox=sandbox, agent="noop")
    assert answer.code == 0, answer.err
    record = RunRecord.model_validate(answer.json["record"])
    assert record.overall <= 0.05
    assert (record.task_score, record.s1, record.s2, record.s3, record.s4, record.s5) == (0, 0, 0, 0, 0, 0)
    assert record.completion == 0


def test_regrade_and_rejudge_give_the_same_scores_and_supersede(command, sandbox):
    command.run(sandbox=sandbox, agent="baseline")
    folder = command.folder(agent="baseline")
    old = load_record(folder / "record.json")
    trace = (folder / "trace.jsonl").read_bytes()
    for verb in ("regrade", "rejudge"):
        digest = sha256_file(folder / "record.json")
        more = {"sandbox": sandbox} if verb == "regrade" else {}
        answer = command(verb, folder, "--json", data=command.cell()["data"], **more)
        assert answer.code == 0, answer.err
        new = load_record(folder / "record.json")
        assert new.supersedes == digest
        assert (new.overall, new.task_score, new.s3) == (old.overall, old.task_score, old.s3)
        assert (folder / "superseded" / f"record-{digest[:12]}.json").is_file()
    assert (folder / "trace.jsonl").read_bytes() == trace


def test_a_missing_reference_is_not_the_agents_failure(command, sandbox, tmp_path, data):
    """The run stays unscored with exit 4; with the reference back, it is graded without the agent."""
    command.run(sandbox=sandbox)  # makes the phantom
    damaged = tmp_path / "damaged"
    shutil.copytree(data / "phantom" / "vqa-rad-task", damaged / "full" / "vqa-rad-task")
    manifest = damaged / "full" / "vqa-rad-task" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"phantom"', '"full"'))
    private = damaged / "full" / "vqa-rad-task" / "private"
    lost = next(private.glob("*/answer.json"))
    kept = lost.read_bytes()
    lost.unlink()

    cell = dict(sandbox=sandbox, agent="baseline", release="full", data=damaged)
    answer = command.run("--json", **cell)
    assert answer.code == 4, answer.err
    folder = command.folder(agent="baseline")
    record = load_record(folder / "unscored.json")
    assert record.task_score is None
    assert record.overall is None
    assert not (folder / "record.json").exists()

    lost.write_bytes(kept)
    trace = sha256_file(folder / "trace.jsonl")
    assert command.run(**cell).code == 0
    assert load_record(folder / "record.json").trace_sha256 == trace
    assert not (folder / "unscored.json").exists()


def test_names_that_do_not_exist_are_answered_with_the_nearest(command):
    answer = command.run(task="kidny-seg-task")
    assert answer.code == 2
    assert "kidney-seg-task" in answer.err
    assert "Traceback" not in answer.err
    answer = command.run(agent="baselin")
    assert answer.code == 2
    assert "baseline" in answer.err


def test_data_that_was_not_staged_is_an_environment_error(command):
    answer = command.run(release="full")
    assert answer.code == 3
    assert "stage" in answer.err
    assert "Traceback" not in answer.err
    assert not (command.folder() / "cell.json").exists()


def test_a_key_that_is_missing_is_named(command, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    answer = command.run(agent="glm-5")
    assert answer.code == 3
    assert "OPENROUTER_API_KEY" in answer.err


def test_an_unusable_sandbox_is_refused_never_worked_around(command, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    answer = command.run(sandbox="docker")
    assert answer.code == 3
    assert "Traceback" not in answer.err
    assert not command.folder().exists()


def test_listing_and_showing(command, sandbox):
    command.run(sandbox=sandbox)
    rows = command("list", "runs", "--json", runs_dir=command.runs).json
    assert [row["task"] for row in rows] == ["vqa-rad-task"]
    shown = command("show", command.folder(), "--json").json
    assert shown["record"]["agent"] == "noop"
    text = command("show", command.folder()).out
    assert "OVERALL" in text
    assert "missing" in text
    tasks = command("list", "tasks", "--json").json
    assert {row["task"] for row in tasks} >= {"kidney-seg-task", "bccd-det-task"}


def test_a_bad_record_is_listed_by_name_and_hides_nothing(command, sandbox):
    command.run(sandbox=sandbox)
    command.run(sandbox=sandbox, repeat=1)
    (command.folder() / "record.json").write_text('{"schema_version": 1')
    rows = command("list", "runs", "--json", runs_dir=command.runs).json
    assert [row["r"] for row in rows] == [0, 1]
    assert rows[0]["end"].startswith("bad record")
    assert rows[1]["end"] == "submitted"


def test_the_agent_sees_public_inputs_and_nothing_of_the_harness(command, sandbox, replayed, data):
    """Look for references, harness code, keys and the run folder from inside."""
    command.run(sandbox=sandbox)
    answer_text = next((data / "phantom" / "vqa-rad-task" / "private").glob("*/answer.json")).name
    code = f"""
import os
found = []
for root, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(root, f) not in ("/proc", "/sys", "/dev")]
    for name in files:
        if name in ({answer_text!r}, "manifest.json", "trace.jsonl", "cell.json", "judgement.py", "agents.yaml"):
            found.append(os.path.join(root, name))
print("FOUND", found)
print("ENV", sorted(os.environ))
print("DATA", sorted(os.listdir("/data")))
print("MOUNTS", open("/proc/self/mountinfo").read())
"""
    answer = command.run(agents=replayed(code), agent="scripted", sandbox=sandbox)
    assert answer.code == 0, answer.err
    (executed,) = [
        e for e in read_trace(command.folder(agent="scripted") / "trace.jsonl") if e.type == "exec"
    ]
    assert executed.exit_code == 0
    lines = dict(
        line.split(" ", 1)
        for line in executed.output.splitlines()
        if line.startswith(("FOUND", "ENV", "DATA"))
    )
    assert lines["FOUND"] == "[]"
    assert lines["DATA"] == "['public']"
    assert "KEY" not in lines["ENV"]
    assert "TOKEN" not in lines["ENV"]
    assert "private" not in executed.output


def test_two_runners_on_one_cell(command, sandbox, replayed):
    profiles = replayed("import time; time.sleep(6)")
    cell = dict(agents=profiles, agent="scripted", sandbox=sandbox)
    first = command.start(**cell)
    try:
        folder = command.folder(agent="scripted")
        for _ in range(200):
            if (folder / "trace.jsonl").is_file():
                break
            import time

            time.sleep(0.1)
        second = command.run(**cell)
        assert second.code == 2
        assert str(first.pid) in second.err
    finally:
        assert first.wait(timeout=60) == 0
        first.stderr.close()
    assert json.loads((folder / "record.json").read_text())["end_reason"] == "submitted"
