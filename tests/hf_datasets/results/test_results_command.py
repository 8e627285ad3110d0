"""push, pull, compact and verify as a person calls them: what is printed, what is sent, which code they end with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from run_maker import make_record, make_run
from typer.testing import CliRunner

from hf_datasets.cli import app
from hf_datasets.records import dump_record

ROOT = Path(__file__).parents[3]
REPO = "demo/results"


@pytest.fixture
def command(hub, tmp_path):
    def call(*arguments, token="hf_writer", **environment):
        return subprocess.run(
            [sys.executable, "-m", "hf_datasets", *map(str, arguments)], capture_output=True, text=True, timeout=120,
            env=hub.environment(tmp_path, token) | {"COLUMNS": "200"} | environment, cwd=ROOT,
        )  # fmt: skip

    return call


def test_from_a_dry_run_to_verified_results(hub, command, runs, tmp_path):
    planned = command("push", runs, "--repo", REPO, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "it would be made" in planned.stdout
    assert hub.count("POST|PUT") == 0
    assert not list(runs.glob("published*"))
    planned_files = {
        line.split()[2]: int(line.split()[1])
        for line in planned.stdout.splitlines()
        if line.startswith("write")
    }
    pushed = command("push", runs, "--repo", REPO, "--private")
    assert pushed.returncode == 0, pushed.stderr
    assert "5 runs published in 1 commit, 0 there already" in pushed.stdout
    sent = {path: len(content) for path, content in hub.files(REPO).items() if path != ".gitattributes"}
    assert sent == planned_files
    assert hub.repos[REPO].private
    receipt = json.loads((runs / "published.demo--results.json").read_text())
    assert set(receipt["published"]) == {make_record(number).run_id for number in range(5)}
    assert receipt["commits"] == [hub.history(REPO)[0].oid]
    again = command("push", runs, "--repo", REPO, "--json")
    assert len(json.loads(again.stdout)["already_there"]) == 5
    pulled = command("pull", REPO, "--out", tmp_path / "results", token="hf_second")
    assert pulled.returncode == 0, pulled.stderr
    assert "5 records from demo/results at" in pulled.stdout
    assert command("compact", REPO).returncode == 0
    checked = command("verify", tmp_path / "results")
    assert (checked.returncode, checked.stdout.splitlines()[-1].endswith("no differences")) == (0, True)
    record = next((tmp_path / "results/records/2026").glob("*.json"))
    record.write_text(record.read_text().replace('"turns": ', '"turns": 1'))
    checked = command("verify", tmp_path / "results")
    assert checked.returncode == 3
    assert "differs: " in checked.stdout
    offline = command("pull", REPO, "--out", tmp_path / "again", token="hf_second", HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr
    assert "HF_HUB_OFFLINE is set" in offline.stderr
    assert "5 records from the cache at" in offline.stdout


def test_damaged_runs_are_named_and_the_code_says_that_something_stayed(hub, command, runs):
    good = dump_record(make_record(9))
    for name, text in {
        "newer": '{"schema_version": 2}',
        "long": good.replace(make_record(9).run_id, "x" * 300),
    }.items():
        (runs / name).mkdir()
        (runs / name / "record.json").write_text(text)
    done = command("push", runs, "--repo", REPO)
    assert done.returncode == 3
    assert "5 runs published" in done.stdout
    assert done.stdout.count("unreadable: ") == 2
    assert "schema version 2; this program reads version 1, update it" in done.stdout
    assert "Traceback" not in done.stderr
    make_run(runs, 0, end_detail="changed")
    planned = command("push", runs, "--repo", REPO, "--dry-run", "--json")
    assert planned.returncode == 3
    told = json.loads(planned.stdout)
    assert list(told["refused"]) == [make_record(0).run_id]
    assert (len(told["already_there"]), told["write"]) == (4, {})


def test_a_pull_request_is_opened_once(hub, command, runs):
    hub.put(REPO, {})
    for _ in range(2):
        done = command("push", runs, "--repo", REPO, "--pr", token="hf_second")
        assert done.returncode == 0, done.stderr
        assert "pull request 1 of demo/results: Add 5 runs (" in done.stderr
    assert len(hub.repos[REPO].pulls) == 1
    assert list(hub.files(REPO)) == [".gitattributes"]
    assert len([path for path in hub.files(REPO, "refs/pr/1") if path.startswith("records/2026/")]) == 5


@pytest.mark.parametrize(
    ("arguments", "token", "code", "words"),
    [
        (
            ["push", "nowhere", "--repo", REPO],
            "hf_writer",
            2,
            "nowhere is not a folder; expected finished runs",
        ),
        (
            ["push", "{runs}", "--repo", "owner"],
            "hf_writer",
            2,
            "expected a repository as owner/name, found 'owner'",
        ),
        (["push", "{runs}", "--repo", "../../x"], "hf_writer", 2, "expected a repository as owner/name"),
        (["push", "{runs}", "--repo", REPO], None, 3, "log in with 'hf auth login' or set HF_TOKEN"),
        (["push", "{runs}", "--repo", REPO], "hf_reader", 3, "this token may not do that"),
        (
            ["pull", "demo/none", "--out", "{runs}/x"],
            "hf_writer",
            3,
            "demo/none: no such dataset repository at 127",
        ),
        (["pull", REPO, "--out", "{runs}"], "hf_writer", 2, "holds other things"),
        (["verify", "{runs}"], None, 2, "expected a folder made by 'pull'"),
        (["compact", "demo/none"], "hf_writer", 3, "demo/none: no such dataset repository"),
    ],
)
def test_errors_are_one_line_with_their_code(hub, runs, tmp_path, monkeypatch, arguments, token, code, words):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setenv("HF_TOKEN", token or "")
    hub.put(REPO, {})
    done = CliRunner().invoke(app, [argument.format(runs=runs) for argument in arguments])
    assert done.exit_code == code, done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert words in line
