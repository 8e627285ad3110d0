"""``rejudge`` over many runs: parallel, paced, resumable, and free where nothing is left to decide."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from judging_parts import KEY, MODEL, citable, verdict
from scripted_server import failure, whole

from evaluator.files import sha256_file
from evaluator.judge.judgement import Judgement
from hf_datasets.records import dump_record, load_record
from runner.ended import Run
from runner.errors import EnvironmentProblem, UsageProblem
from runner.judge_endpoint import Pace
from runner.judges import RulesJudge, is_same_family, load_judge, load_judge_profiles
from runner.rejudge import find_runs, rejudge_all

RUNS = 50
REPOSITORY = Path(__file__).parents[3]


def events_of(folder, data):
    return citable(Run.load(folder, data).material())


@pytest.fixture
def runs(finished_run):
    """Fifty finished runs, judged by rules."""
    folders = [finished_run(repeat) for repeat in range(RUNS)]
    folders.sort()
    return folders


def yes(events):
    return lambda request: whole(json.dumps(verdict(request, events)))


def states(results):
    return sorted(result.state for result in results)


def test_fifty_runs_are_judged_once(serve, judge, runs, finished_run):
    events = events_of(runs[0], finished_run.data)
    server = serve(*[yes(events)] * 3 * RUNS)
    untouched = {path: sha256_file(path) for path in finished_run.runs.rglob("*") if path.name in KEPT}
    results = list(rejudge_all(runs, finished_run.data, judge(server), jobs=8))
    assert states(results) == ["judged"] * RUNS
    assert len(server.requests) == 3 * RUNS
    for folder in runs:
        record = load_record(folder / "record.json")
        assert (record.judge, record.s1, record.s3) == ("llm", 1, 1)
        assert record.overall == pytest.approx((record.agentic + 0.625) / 2)
        assert record.evaluator_environment == "image"
        assert record.judgement_sha256 == sha256_file(folder / "judgement.json")
    assert {path: sha256_file(path) for path in untouched} == untouched

    before = {path: path.read_bytes() for path in finished_run.runs.rglob("*.json")}
    again = list(rejudge_all(runs, finished_run.data, judge(server), jobs=8))
    assert states(again) == ["already"] * RUNS
    assert len(server.requests) == 3 * RUNS
    assert {path: path.read_bytes() for path in finished_run.runs.rglob("*.json")} == before


KEPT = ("trace.jsonl", "report.json", "cell.json", "plan.md", "manifest.json")


def test_runs_go_on_where_the_judge_fell_silent(serve, judge, runs, finished_run):
    events = events_of(runs[0], finished_run.data)
    server = serve(*[yes(events)] * 60, *[failure(401)] * RUNS)
    first = list(rejudge_all(runs, finished_run.data, judge(server), jobs=1))
    assert states(first) == ["incomplete"] * 30 + ["judged"] * 20
    for result in first:
        record = load_record(result.folder / "record.json")
        assert (record.overall is None) == (result.state == "incomplete")
    server = serve(*[yes(events)] * 90)
    second = list(rejudge_all(runs, finished_run.data, judge(server), jobs=8))
    assert states(second) == ["already"] * 20 + ["judged"] * 30
    assert len(server.requests) == 90


def test_a_killed_command_goes_on(serve, runs, finished_run, tmp_path):
    events = events_of(runs[0], finished_run.data)

    def slowly(request):
        time.sleep(0.02)
        return yes(events)(request)

    server = serve(*[slowly] * 10 * RUNS)
    profiles = tmp_path / "judges.yaml"
    profiles.write_text(yaml.safe_dump({"judges": {"llm": settings(server, requests_per_minute=1e6)}}))
    command = [sys.executable, "-m", "runner", "rejudge", finished_run.runs, "--judge", "llm"]
    command += ["--judges", profiles, "--jobs", "4", "--data", finished_run.data]
    environment = {**os.environ, "TEST_JUDGE_KEY": KEY}
    process = subprocess.Popen(
        [*map(str, command)],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    done = [process.stderr.readline() for _ in range(10)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert all(line.startswith(b"judged: ") for line in done)
    spent = len(server.requests)
    judged = sum(load_record(folder / "record.json").judge == "llm" for folder in runs)
    assert 10 <= judged < RUNS

    again = subprocess.run(
        [*map(str, command), "--json"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert again.returncode == 0, again.stderr
    rows = json.loads(again.stdout)
    assert sum(row["state"] == "already" for row in rows) == judged
    assert sum(row["state"] == "judged" for row in rows) == RUNS - judged
    # What was under way when the command died is asked again, nothing else.
    assert len(server.requests) - spent <= 3 * (RUNS - judged)
    assert all(load_record(folder / "record.json").s1 == 1 for folder in runs)
    assert KEY not in again.stdout + again.stderr


def settings(server, **more):
    return {"model": "openai/judge-1", "base_url": server.url, "key_env": "TEST_JUDGE_KEY", **more}


def test_runs_are_judged_in_parallel_and_within_the_rate(serve, judge, runs, finished_run):
    events = events_of(runs[0], finished_run.data)
    at_once, most, lock = [0], [0], threading.Lock()

    def slowly(request):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        time.sleep(0.15)
        with lock:
            at_once[0] -= 1
        return yes(events)(request)

    server = serve(*[slowly] * 30)
    results = list(rejudge_all(runs[:10], finished_run.data, judge(server, requests_per_minute=1500), jobs=5))
    assert states(results) == ["judged"] * 10
    assert most[0] > 1
    times = sorted(request.at for request in server.requests)
    assert times[-1] - times[0] >= 29 * 0.04 * 0.9  # 1500 a minute are 40 ms apart


def test_pace_spaces_all_who_ask():
    now = [100.0]
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(60, clock=lambda: now[0], sleep=sleep)
    for _ in range(3):
        pace.wait()
    assert slept == [1, 1]
    pace.hold(30)
    pace.wait()
    assert slept[-1] == 30


def test_only_the_null_is_filled_and_superseded(serve, judge, finished_run):
    folder = finished_run()
    events = events_of(folder, finished_run.data)
    server = serve(*[yes(events)] * 2, failure(401))
    list(rejudge_all([folder], finished_run.data, judge(server, votes=3)))
    assert load_record(folder / "record.json").s1 == 1  # two of three are a majority
    judgement = Judgement.model_validate_json((folder / "judgement.json").read_bytes())
    assert (judgement.judge, judgement.judge_model, judgement.same_family) == ("llm", "openai/judge-1", False)
    assert len(list((folder / "superseded").glob("judgement-*.json"))) == 1


def test_the_rules_need_no_server_and_always_give_the_same(finished_run):
    folder = finished_run()
    before = (folder / "judgement.json").read_bytes()
    (result,) = rejudge_all([folder], finished_run.data, RulesJudge())
    assert result.state == "judged"
    assert (folder / "judgement.json").read_bytes() == before


def test_regrading_is_not_needed_to_change_the_judge_back(serve, judge, finished_run):
    folder = finished_run()
    events = events_of(folder, finished_run.data)
    list(rejudge_all([folder], finished_run.data, judge(serve(*[yes(events)] * 3))))
    assert load_record(folder / "record.json").judge == "llm"
    list(rejudge_all([folder], finished_run.data, RulesJudge()))
    record = load_record(folder / "record.json")
    assert (record.judge, record.judge_votes, record.judge_alpha) == ("rules", None, None)


def test_a_run_on_other_data_fails_alone(serve, judge, runs, finished_run, tmp_path):
    events = events_of(runs[0], finished_run.data)
    cell = json.loads((runs[0] / "cell.json").read_text())
    (runs[0] / "cell.json").write_text(json.dumps({**cell, "manifest_sha256": "1" * 64}))
    record = load_record(runs[0] / "record.json")
    record = record.model_copy(update={"cell_sha256": sha256_file(runs[0] / "cell.json")})
    (runs[0] / "record.json").write_text(dump_record(record))
    results = list(rejudge_all(runs[:3], finished_run.data, judge(serve(*[yes(events)] * 6))))
    assert states(results) == ["failed", "judged", "judged"]
    (failed,) = [result for result in results if result.state == "failed"]
    assert "--data" in failed.problem
    assert failed.exit_code == 3


def test_places_are_run_folders_or_folders_of_runs(finished_run, tmp_path):
    folders = [finished_run(repeat) for repeat in range(2)]
    assert find_runs([finished_run.runs]) == folders
    assert find_runs([folders[1], finished_run.runs]) == [folders[1], folders[0]]
    with pytest.raises(UsageProblem, match="holds no finished run"):
        find_runs([tmp_path / "nothing"])


# --- who judges ---


def test_a_judges_file_may_take_the_place_of_a_published_profile(tmp_path):
    file = tmp_path / "judges.yaml"
    file.write_text(
        yaml.safe_dump({"judges": {"llm": {"model": "mine", "base_url": "http://127.0.0.1:1/v1"}}})
    )
    assert load_judge_profiles()["llm"].votes == 3
    assert load_judge_profiles(file)["llm"].model == "mine"
    assert load_judge("llm", file).model == "mine"
    file.write_text(
        yaml.safe_dump({"judges": {"rules": {"model": "mine", "base_url": "http://127.0.0.1:1/v1"}}})
    )
    with pytest.raises(UsageProblem, match="another name"):
        load_judge("rules", file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"votes": 0}, "votes"),
        ({"voets": 3}, "voets"),
        ({"temperature": 9}, "temperature"),
        ({"model": None}, "model"),
    ],
)
def test_a_bad_profile_is_named(tmp_path, change, message):
    file = tmp_path / "judges.yaml"
    profile = {"model": "mine", "base_url": "http://127.0.0.1:1/v1", **change}
    file.write_text(yaml.safe_dump({"judges": {"mine": profile}}))
    with pytest.raises(UsageProblem, match=message):
        load_judge("mine", file)


def test_a_judge_that_does_not_exist_and_a_key_that_is_missing(monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    with pytest.raises(UsageProblem, match="rules"):
        load_judge("ruls")
    with pytest.raises(EnvironmentProblem, match="OPENROUTER_API_KEY"):
        load_judge("llm")


@pytest.mark.parametrize(
    ("judge_model", "agent_model", "same"),
    [
        ("anthropic/claude-opus-5", MODEL, True),
        ("claude-opus-5", MODEL, True),
        ("openai/gpt-5.4", MODEL, False),
        ("gpt-5.4-mini", "openai/gpt-5.4", True),
        ("somewhere/Qwen3-32B", "qwen/qwen3.5-397b-a17b", True),
        ("lab-a/one", "lab-a/two", True),
        ("lab-a/one", "lab-b/one", False),
        ("judge", None, False),
        (None, MODEL, False),
    ],
)
def test_families(judge_model, agent_model, same):
    assert is_same_family(judge_model, agent_model) is same


def test_a_judge_of_the_agents_family_is_flagged(serve, judge, finished_run):
    folder = finished_run(model="openai/gpt-5.4")
    events = events_of(folder, finished_run.data)
    list(rejudge_all([folder], finished_run.data, judge(serve(*[yes(events)] * 3))))
    record = load_record(folder / "record.json")
    assert record.judge_same_family is True
    assert (record.judge_votes, record.judge_tokens) == (3, 330)
    assert record.items[1].agreement == 1
