"""Whole runs with ``--watch-training``, through the command line: a stand-in for PyTorch trains inside the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.trace import EndReason, read_trace
from hf_datasets.records import load_record
from runner.policy import WARNING
from runner.sandbox import all_backends

REPOSITORY = Path(__file__).parents[3]
BACKENDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
ANSWERS = (
    "import json, pathlib\n"
    "for case in pathlib.Path('/data/public').iterdir():\n"
    "    out = pathlib.Path('/workspace/outputs', case.name); out.mkdir(exist_ok=True)\n"
    "    (out / 'answer.json').write_text(json.dumps({'question_id': case.name, 'predicted_answer': 'yes'}))\n"
)


everywhere = pytest.mark.parametrize("backend", BACKENDS, indirect=True)
in_bubblewrap = pytest.mark.parametrize("backend", BACKENDS[1:], indirect=True)


@pytest.fixture
def backend(request) -> str:
    found = next(one for one in all_backends() if one.name == request.param).available()
    if not found.ok:
        (pytest.fail if os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") else pytest.skip)(found.detail)
    return request.param


@pytest.fixture
def run(tmp_path, shared_folder, backend, write_torch):
    """Run the given programs one call each, then submit; the run folder, its record and its events."""

    def run_(*codes: str, watch: bool = True):
        write_torch(tmp_path / "torch-source")
        texts = {
            str(path.relative_to(tmp_path / "torch-source")): path.read_text()
            for path in (tmp_path / "torch-source").rglob("*.py")
        }
        install = (
            "import pathlib\n"
            f"for name, text in {texts!r}.items():\n"
            "    path = pathlib.Path('/workspace', name); path.parent.mkdir(parents=True, exist_ok=True)\n"
            "    path.write_text(text)\n"
        )
        calls = [("execute_code", {"language": "python", "code": code}) for code in (install, *codes)]
        calls += [("submit_results", {"summary": "done"})] * 2
        trace = tmp_path / "recorded.jsonl"
        with trace.open("w") as file:
            for turn, (name, arguments) in enumerate(calls, 1):
                call = {"id": f"c{turn}", "name": name, "arguments": json.dumps(arguments)}
                file.write(json.dumps({"type": "reply", "seq": turn, "turn": turn, "calls": [call]}) + "\n")
        profiles = tmp_path / "agents.yaml"
        profiles.write_text(json.dumps({"agents": {"scripted": {"kind": "replay", "trace": str(trace)}}}))
        done = subprocess.run(
            [
                sys.executable, "-m", "runner", "run", "--agent", "scripted", "--task", "vqa-rad-task",
                "--agents", str(profiles), "--runs-dir", str(tmp_path / "runs"),
                "--data", str(shared_folder / "data"), "--sandbox", backend, "--network", "none",
                *(["--watch-training"] if watch else []),
            ],
            capture_output=True, text=True, timeout=300, cwd=REPOSITORY,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        folder = tmp_path / "runs" / "vqa-rad-task" / "lite" / "scripted" / "r00"
        return load_record(folder / "record.json"), read_trace(folder / "trace.jsonl")

    return run_


def policy_events(events):
    return [(event.sign, event.action) for event in events if event.type == "policy"]


@everywhere
def test_a_second_breach_ends_the_run_and_all_scores_are_zero(run, train):
    record, events = run(ANSWERS, train(30), train(30), "print('never')")
    assert record.end_reason is EndReason.POLICY
    assert record.policy_warnings == 1
    scores = (record.overall, record.agentic, record.task_score, record.task_score_ungated)
    assert scores == (0, 0, 0, 0)
    assert (record.s1, record.s2, record.s3, record.s4, record.s5) == (0, 0, 0, 0, 0)
    assert record.n_scored == record.n_cases  # the submission itself is kept and was looked at
    assert policy_events(events) == [("gradient_steps", "warned"), ("gradient_steps", "ended")]
    assert len([event for event in events if event.type == "exec"]) == 4


@in_bubblewrap
def test_after_a_warning_an_agent_that_stops_is_scored(run, train):
    record, events = run(train(30), ANSWERS)
    assert record.end_reason is EndReason.SUBMITTED
    assert record.policy_warnings == 1
    assert record.task_score > 0
    assert policy_events(events) == [("gradient_steps", "warned")]


@everywhere
def test_words_about_training_and_inference_with_torch_are_no_breach(run, train):
    code = (
        "# for x in loader: loss.backward(); optimizer.step()\n"
        "text = 'fine-tune: optimizer.step() ' * 50\n"
        "open('/workspace/train.py', 'w').write(text)\n"
        "open('/workspace/plan.md', 'w').write('I will train and fine-tune the network. ' + text)\n"
        "import torch\nmodel = torch.nn.Linear()\nprint(text)\n"
    )
    record, events = run(code, train(200).replace("lr=0.1", "lr=0"), train(19), ANSWERS)
    assert record.end_reason is EndReason.SUBMITTED
    assert record.policy_warnings == 0
    assert policy_events(events) == []


@in_bubblewrap
def test_nothing_is_watched_unless_it_is_asked_for(run, train):
    record, events = run(train(100), train(100), ANSWERS, watch=False)
    assert record.end_reason is EndReason.SUBMITTED
    assert policy_events(events) == []


@in_bubblewrap
def test_a_forged_report_hurts_only_the_forger(run):
    forge = "open('/opt/watch/channel/steps', 'a').write('{\"process\": \"x%d\", \"steps\": 1000}\\n')"
    record, _ = run(ANSWERS, forge % 1, forge % 2)
    assert record.end_reason is EndReason.POLICY
    assert WARNING not in record.end_detail
