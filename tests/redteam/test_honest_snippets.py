"""Honest work is run as it was written: no warning, no sign of a breach, no difference to what it prints."""

from __future__ import annotations

import json

import pytest
from honest_snippets import BASH_STOPPED_BY_FILTERS, STOPPED_BY_FILTERS, WORK

from evaluator.trace import EndReason, read_trace
from hf_datasets.records import load_record
from runner.cell import Cell
from runner.execute import Options, run_cell
from tasks.schema import Release, Tier

SNIPPETS = (
    {f"python-{name}": ("python", code) for name, code in {**STOPPED_BY_FILTERS, **WORK}.items()}
    | {f"bash-{name}": ("bash", code) for name, code in BASH_STOPPED_BY_FILTERS.items()}
)  # fmt: skip


@pytest.fixture(scope="module")
def ended(backend, staged_phantom, tmp_path_factory):
    """One run whose every call is one snippet, watched for training as closely as can be."""
    place = tmp_path_factory.mktemp("honest")
    calls = [("execute_code", {"language": language, "code": code}) for language, code in SNIPPETS.values()]
    calls += [("submit_results", {"summary": "done"})] * 2
    lines = []
    for turn, (name, arguments) in enumerate(calls, 1):
        call = {"id": f"c{turn}", "name": name, "arguments": json.dumps(arguments)}
        lines.append(json.dumps({"type": "reply", "seq": turn, "turn": turn, "calls": [call]}))
    (place / "recorded.jsonl").write_text("\n".join(lines) + "\n")
    profile = {"kind": "replay", "trace": str(place / "recorded.jsonl")}
    (place / "agents.yaml").write_text(json.dumps({"agents": {"honest": profile}}))
    options = Options(
        place / "runs",
        staged_phantom("kidney-seg-task").parents[1],
        sandbox=backend.name,
        agents_file=place / "agents.yaml",
        watch_training=True,
    )
    outcome = run_cell(Cell("kidney-seg-task", Tier.LITE, Release.PHANTOM, "honest"), options)
    assert outcome.state == "scored"
    return outcome.folder, read_trace(outcome.folder / "trace.jsonl")


def test_there_are_sixty_and_more():
    assert len(SNIPPETS) >= 60


@pytest.mark.parametrize("number", range(len(SNIPPETS)), ids=list(SNIPPETS))
def test_a_snippet_runs_untouched(ended, number):
    _, events = ended
    language, code = list(SNIPPETS.values())[number]
    replies = [event for event in events if event.type == "reply"]
    assert json.loads(replies[number].calls[0].arguments)["code"] == code
    (executed,) = [event for event in events if event.type == "exec" and event.turn == number + 1]
    assert (executed.language, executed.exit_code) == (language, 0), executed.output
    assert executed.output.strip()
    assert "WARNING from the benchmark" not in executed.output


def test_nobody_was_warned_and_nothing_was_held_against_it(ended):
    folder, events = ended
    assert {event.type for event in events} <= {"run", "reply", "exec", "files", "submit", "end"}
    record = load_record(folder / "record.json")
    assert (record.end_reason, record.policy_warnings, record.flags) == (EndReason.SUBMITTED, 0, ())
    assert record.turns == len(SNIPPETS) + 2
