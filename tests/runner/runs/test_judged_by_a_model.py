"""One cell from the command line with a model as its judge, first silent, then asked again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))

from scripted_server import failure, whole

from hf_datasets.records import load_record

KEY = "sk-judge-0123456789abcdef"


@pytest.fixture
def judges(tmp_path, monkeypatch):
    """A profile file for the judge behind a server."""
    monkeypatch.setenv("TEST_JUDGE_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def make(server):
        profile = {
            "model": "openai/judge-1",
            "base_url": server.url,
            "key_env": "TEST_JUDGE_KEY",
            "requests_per_minute": 1e6,
            "retries": {"tries": 1},
        }
        file = tmp_path / "judges.yaml"
        file.write_text(yaml.safe_dump({"judges": {"llm": profile}}))
        return file

    return make


def no(request):
    items = request.body["response_format"]["json_schema"]["schema"]["properties"]["items"]["properties"]
    opinion = {"reason": "nothing shows it", "evidence": [], "value": 0}
    return whole(json.dumps({"items": dict.fromkeys(items, opinion)}))


def test_a_silent_judge_leaves_null_and_rejudge_fills_it(command, sandbox, judges):
    from scripted_server import ScriptedServer

    with ScriptedServer([failure(503), *[no] * 3]) as server:
        file = judges(server)
        first = command.run("--json", sandbox=sandbox, agent="noop", judge="llm", judges=file)
        assert first.code == 0, first.err
        folder = command.folder(agent="noop")
        record = load_record(folder / "record.json")
        assert (record.judge, record.judge_model) == ("llm", "openai/judge-1")
        assert (record.s1, record.s2, record.s3) == (None, 0, 0)
        assert (record.agentic, record.overall, record.task_score) == (None, None, 0)

        rest = {"data": command.cell()["data"], "judge": "llm", "judges": file}
        again = command("rejudge", command.runs, "--json", **rest)
        assert again.code == 0, again.err
        (row,) = again.json
        assert (row["state"], row["S1"], row["AGENTIC"]) == ("judged", 0, 0)
        assert load_record(folder / "record.json").overall == 0
        assert len(server.requests) == 4

        third = command("rejudge", command.runs, "--json", **rest)
        assert third.json[0]["state"] == "already"
        assert len(server.requests) == 4
        assert KEY not in "".join(path.read_text() for path in folder.rglob("*.json"))


def test_a_judge_that_stays_silent_ends_with_4(command, sandbox, judges):
    from scripted_server import ScriptedServer

    with ScriptedServer([]) as server:
        command.run(sandbox=sandbox, agent="noop")
        answer = command(
            "rejudge", command.folder(), data=command.cell()["data"], judge="llm", judges=judges(server)
        )
        assert answer.code == 4
        assert "unscored: plan_candidates" in answer.out


def test_a_judge_without_its_key_is_refused_before_anything_runs(command, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    answer = command.run(judge="llm")
    assert answer.code == 3
    assert "OPENROUTER_API_KEY" in answer.err
    assert not (command.folder() / "cell.json").exists()
