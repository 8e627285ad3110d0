"""What the agent sends: plans and code as texts, held against scripts, tasks and the tools' own reading."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runner.agents.baseline as baseline
from evaluator.trace import Call
from runner.agents.baseline import steps
from runner.agents.baseline.plan import METHOD, Measured, load_plan, read_comparison, write_plan
from runner.tools import ExecuteCode, parse_call
from tasks.registry import load_task
from tasks.schema import Tier, Track

HOME = Path(baseline.__file__).parent
TRACKS = [Track(path.stem) for path in sorted(HOME.glob("plans/*.yaml"))]
TASKS = [
    "kidney-seg-task",
    "ldct-denoising-task",
    "vqa-rad-task",
    "medframeqa-task",
    "iu-xray-report-task",
    "bccd-det-task",
    "skin-lesion-cls-task",
]
OFFERED = ("load", "describe", "describe_result", "quality", "save", "inspect")


@pytest.mark.parametrize("track", TRACKS)
def test_a_plan_and_its_script_name_the_same_three_methods(track, script):
    plan, module = load_plan(track), script(track.value)
    assert list(plan.candidates) == list(module.METHODS)
    assert len(plan.candidates) == 3
    assert {plan.default, plan.fallback} <= set(plan.candidates)
    assert plan.default != plan.fallback
    assert plan.pipeline.count(METHOD) == 1
    assert all(callable(getattr(module, name)) for name in OFFERED)


@pytest.mark.parametrize(("task_id", "tier"), list(product(TASKS, Tier)))
def test_plan_md_says_what_is_done_and_leaves_nothing_open(task_id, tier):
    task = load_task(task_id)
    plan = load_plan(task.track)
    table = {name: Measured(quality=0.5, seconds=1.25) for name in plan.candidates}
    text = write_plan(task, tier, plan, plan.default, 7, table, "this one.")
    assert not re.search(r"\{\{|\{%|None|Undefined", text)
    assert "7 cases" in text
    assert all(name in text for name in task.output.filenames)
    if tier is Tier.LITE:
        assert task.tiers.lite.model.name in text
        assert "0.5" not in text
    else:
        assert all(candidate.name in text for candidate in plan.candidates.values())
        assert text.count("| 0.5 | 1.25 |") == 3


@pytest.mark.parametrize("task_id", TASKS)
def test_every_call_is_read_by_the_tools_and_stays_small(task_id):
    task = load_task(task_id)
    plan = load_plan(task.track)
    made = [
        steps.look_around(),
        steps.write_tools(task, plan, "say"),
        steps.measure_candidates(plan),
        steps.draw_plan(task, plan, plan.default),
        steps.check_setup(),
        steps.forward_pass(plan.default, 0),
        steps.pilot(plan.default, 0),
        steps.review(0),
        steps.batch(plan.default, 10.0),
        steps.verify(),
        steps.mend(plan.fallback, 10.0),
    ]
    for step in made:
        arguments = json.dumps({"language": step.language, "code": step.code})
        assert isinstance(parse_call(Call(id="c", name="execute_code", arguments=arguments)), ExecuteCode)
        assert len(arguments) < 48_000
        if step.language == "python":
            compile(step.code, "call", "exec")


@settings(max_examples=25, deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]))
    | st.just("a\nEND_OF_FILE\nb $HOME `x` \\")
)
def test_a_here_document_writes_exactly_the_text(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("here") / "file"
    subprocess.run(["bash", "-c", steps.here_document(str(path), text)], check=True)
    assert path.read_bytes().decode() == text.rstrip() + "\n"


def test_the_last_comparison_counts_and_noise_is_none():
    row = '{"a": {"quality": 0.1, "seconds": 2}}'
    assert read_comparison(f"exit code 0\nCOMPARISON {{}}\nCOMPARISON {row}\n[left: 1]") == {
        "a": Measured(quality=0.1, seconds=2)
    }
    assert read_comparison("no COMPARISON here") == {}


def test_open_cases_reads_what_the_batch_prints():
    assert steps.open_cases("exit code 1\nbatch: 5 cases to do, open: 2 ['a', 'b']\n", otherwise=5) == 2
    assert steps.open_cases("Stopped after 600 s", otherwise=5) == 5
