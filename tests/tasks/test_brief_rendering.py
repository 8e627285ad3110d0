"""Briefs say everything an agent must know, say it the same in every tier, and leak nothing.

``UPDATE_GOLDEN=1 pytest tests/tasks`` writes the golden files anew; read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from jinja2 import DictLoader, Environment, StrictUndefined

from tasks import canary, scoring
from tasks.brief import Brief, BriefError, fill, render
from tasks.registry import all_tasks, load_task
from tasks.schema import Limits, Release, Task, Tier, Track

GOLDEN = Path(__file__).parent / "golden"
TASKS = all_tasks()
DISCLOSING = (Tier.LITE, Tier.STANDARD)
every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)


def brief_of(task: Task, tier: Tier, **changes: Any) -> Brief:
    return render(task, tier, **({"release": Release.LITE, "n_cases": 20} | changes))


def section(text: str, title: str) -> str:
    match = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, title
    return match[1]


@every_task
@pytest.mark.parametrize("tier", DISCLOSING)
def test_golden(task: Task, tier: Tier) -> None:
    brief = brief_of(task, tier)
    rendered = f"{brief.system}\n---\n\n{brief.text}"
    path = GOLDEN / f"{task.id}-{tier}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(rendered, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == rendered


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {
        f"{task.id}-{tier}" for task in TASKS for tier in DISCLOSING
    }


@every_task
def test_tiers_share_all_but_stage_notes_and_method(task: Task) -> None:
    briefs = [brief_of(task, tier) for tier in Tier]
    assert len({brief.system for brief in briefs}) == 1
    for title in ("Background", "Data", "Output contract", "Metric", "Limits"):
        assert len({section(brief.text, title) for brief in briefs}) == 1


@every_task
def test_every_limit_in_the_brief_is_the_one_of_the_task(task: Task) -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| ([0-9.]+)[^|]*\|", section(brief_of(task, Tier.LITE).text, "Limits"), re.MULTILINE
    )
    limits = task.limits
    assert {name: float(value) for name, value in rows} == {
        "working time": limits.wall_seconds,
        "one `execute_code` call": limits.call_seconds,
        "turns": limits.turns,
        "tokens": limits.tokens,
        "memory": limits.memory_mb,
        "disk": limits.disk_mb,
        "processes": limits.pids,
        "CPUs": limits.cpus,
    }


def test_limits_of_the_run_replace_those_of_the_task() -> None:
    text = brief_of(load_task("bccd-det-task"), Tier.LITE, limits=Limits(wall_seconds=77, cost_usd=2.5)).text
    assert "| working time | 77 s |" in text
    assert "| cost | 2.5 USD |" in text


@every_task
@pytest.mark.parametrize("tier", list(Tier))
def test_no_private_path_and_no_reference_file_is_named(task: Task, tier: Tier) -> None:
    brief = brief_of(task, tier)
    words = brief.system + brief.text
    assert "private" not in words.lower()
    assert not re.findall(r"/(?:submission|out|root|tmp|home|work)\b", words)
    known = {*task.output.filenames, *(file.name for file in task.inputs)}
    for name in set(task.references) - known:
        assert not re.search(rf"(?<!\w){re.escape(name)}", words)


@every_task
@pytest.mark.parametrize("tier", list(Tier))
def test_all_stage_items_and_weights_are_disclosed(task: Task, tier: Tier) -> None:
    stages = section(brief_of(task, tier).text, "Stages")
    for item in (*scoring.s1_items(task.track), *scoring.S2_ITEMS):
        assert f"- {item.text}\n" in stages
    for level in scoring.s3_levels(task.track):
        assert level.text in stages
    for stage, weight in scoring.STAGE_WEIGHTS.items():
        assert f"{weight} {stage}" in stages


def test_stage_shares_add_up() -> None:
    assert sum(scoring.STAGE_WEIGHTS.values()) == pytest.approx(1)
    assert scoring.STAGE_WEIGHTS.keys() == scoring.STAGE_NAMES.keys()
    assert scoring.AGENTIC_SHARE + scoring.TASK_SHARE == 1
    assert scoring.S4_COMPLETION_SHARE + scoring.S4_VALID_SHARE == 1
    assert scoring.S5_POSITIVE_SHARE + scoring.S5_VALID_SHARE == 1


@pytest.mark.parametrize("track", list(Track))
def test_every_track_has_its_stage_items(track: Track) -> None:
    items = scoring.s1_items(track)
    assert len({item.id for item in items}) == 6
    assert sum(item.lite_credit for item in items) == 3
    assert {item.needs for item in items} - {None} <= {item.id for item in items}
    values = [level.value for level in scoring.s3_levels(track)]
    assert values == sorted(values, reverse=True)
    assert (values[0], values[-1]) == (1, 0)


@every_task
def test_each_tier_discloses_its_share(task: Task) -> None:
    lite, standard, pro = (brief_of(task, tier).text for tier in (Tier.LITE, Tier.STANDARD, Tier.PRO))
    assert task.tiers.lite.model.source in section(lite, "Method")
    assert "credited as soon as `plan.md` exists" in section(lite, "Stages")
    assert all(f"### Hints for {stage}" in lite for stage in ("S1", "S2", "S3"))
    assert all(
        f"| {model.name} | `{model.source}`" in section(standard, "Candidates")
        for model in task.tiers.standard.candidates
    )
    assert "comparison of at least three candidates" in section(standard, "Stages")
    assert "plan.png" in section(standard, "Candidates")
    assert "Hints for" not in standard + pro
    assert "Experimental tier" in pro
    assert "Method" not in re.findall(r"^## (.+)$", pro, re.MULTILINE)
    assert not any(
        model.source in pro
        for model in (task.tiers.lite.model, *task.tiers.standard.candidates)
        if "/" in model.source
    )


@every_task
def test_the_network_note_follows_the_sandbox(task: Task) -> None:
    networks = ("none", "allowlist", "open")
    closed, listed, opened = (brief_of(task, Tier.LITE, network=network).text for network in networks)
    assert "Network: none." in closed
    assert "Network: package indexes and model hubs, through a proxy" in listed
    assert "Network: open" in opened
    assert brief_of(task, Tier.LITE).text == listed


@every_task
@pytest.mark.parametrize("tier", list(Tier))
def test_every_brief_ends_with_the_canary(task: Task, tier: Tier) -> None:
    assert brief_of(task, tier).text.endswith(f"\n{canary.NOTICE}\n")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", canary.GUID)


def test_the_digest_covers_both_texts() -> None:
    task = load_task("bccd-det-task")
    first, again = brief_of(task, Tier.LITE), brief_of(task, Tier.LITE)
    assert first == again
    others = [brief_of(task, Tier.STANDARD), brief_of(task, Tier.LITE, n_cases=21)]
    assert len({first.sha256, *(brief.sha256 for brief in others)}) == 3


def test_one_case_is_singular() -> None:
    text = brief_of(load_task("bccd-det-task"), Tier.LITE, n_cases=1).text
    assert "holds 1 case, one folder" in text
    assert "1 cases" not in text


def test_phantoms_are_called_phantoms() -> None:
    task = load_task("kidney-seg-task")
    assert "phantoms" in brief_of(task, Tier.LITE, release=Release.PHANTOM).text
    assert "phantoms" not in brief_of(task, Tier.LITE).text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ nobody }}", "'nobody' is undefined"),
        ("{{ task.nothing }}", "no attribute 'nothing'"),
        ("{% include 'absent.md' %}", "TemplateNotFound: absent.md"),
        ("{{ open", "TemplateSyntaxError"),
        ("fine\n{{ '{{' }} name }}", "placeholder '{{' left in line 2"),
        ("fine\n\nTODO: words", "placeholder 'TODO' left in line 3"),
        ("put <model name> here", "placeholder '<model name>'"),
        ("${WORKSPACE}/x", "placeholder '${WORKSPACE}'"),
    ],
)
def test_a_missing_name_or_a_leftover_placeholder_fails(template: str, message: str) -> None:
    environment = Environment(loader=DictLoader({"t.md": template}), undefined=StrictUndefined)
    with pytest.raises(BriefError) as caught:
        fill(environment, "t.md", {"task": TASKS[0]})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ordinary_code_is_no_placeholder() -> None:
    environment = Environment(
        loader=DictLoader({"t.md": 'x = {"a": {"b": 1}}; y = a < b > c  # $HOME'}), undefined=StrictUndefined
    )
    assert fill(environment, "t.md", {}).startswith("x = ")
