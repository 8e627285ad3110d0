"""What a SWEEP.yaml means, what it will take, what is frozen, and what an amended one does with what is there."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hf_datasets.failures import Cause
from runner.cell import Cell
from runner.errors import UsageProblem
from runner.execute import Options
from runner.sweep.engine import AttemptEnd, Job
from runner.sweep.folder import SweepFolder
from runner.sweep.form import blocks_of, cells_of, read_form
from runner.sweep.freeze import code_part, profile_digest
from runner.sweep.inputs import GRADING, JUDGING, Inputs, decide
from runner.sweep.ledger import Ledger, read_book
from runner.sweep.lock import Lock, Locks, count_decisions, freeze, stale_keys, standings, store
from runner.sweep.plan import History, make_plan
from runner.sweep.status import status_of
from tasks.names import Release, Tier

PUBLISHED_AGENTS = ("claude-opus-4.6", "glm-5", "gemini-3.1-pro", "gpt-5.4", "minimax-m2.5", "qwen3.5")
TASK = "vqa-rad-task"


def written(place, **form):
    path = place / "SWEEP.yaml"
    path.write_text(yaml.safe_dump({"name": "test", "agents": ["noop"], **form}))
    return path


def form_of(place, **form):
    return read_form(written(place, **{"tasks": [TASK], "repeats": 2, "network": "none", **form}))


# --- the form ---


def test_the_published_sweep_has_3480_cells(tmp_path):
    form = form_of(tmp_path, agents=list(PUBLISHED_AGENTS), tasks="paper", repeats="published")
    blocks = blocks_of(form)
    cells = list(cells_of(blocks, form.release))
    assert len(cells) == len(set(cells)) == 3480
    assert Counter(block.repeats for block in blocks) == {10: 228, 20: 60}
    first = cells[: len(blocks)]
    assert {cell.repeat for cell in first} == {0}


def test_repeats_by_task(tmp_path):
    form = form_of(tmp_path, tasks=[TASK, "bccd-det-task"], repeats={"default": 3, TASK: 7})
    assert {block.task: block.repeats for block in blocks_of(form)} == {TASK: 7, "bccd-det-task": 3}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"tasks": ["vqa-rad-tsk"]}, "did you mean 'vqa-rad-task'"),
        ({"repeat": 3}, "repeat"),
        ({"agents": []}, "agents"),
        ({"agents": ["noop", "noop"]}, "twice"),
        ({"repeats": 0}, "repeats"),
        ({"repeats": {"nope-task": 3}}, "nope-task"),
        ({"budget": {"agents": {"glm-5": {"usd": 1}}}}, "glm-5"),
        ({"budget": {"usd": -1}}, "budget.usd"),
    ],
)
def test_a_wrong_form_is_refused_by_name(tmp_path, form, words):
    with pytest.raises(UsageProblem, match=words):
        form_of(tmp_path, **form)


def test_no_file_and_no_yaml(tmp_path):
    with pytest.raises(UsageProblem, match="expected a sweep file"):
        read_form(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_text("a: [")
    with pytest.raises(UsageProblem, match="not YAML"):
        read_form(tmp_path / "x.yaml")


# --- estimates ---


def test_estimates_come_from_the_nearest_past_or_from_the_limits(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    past = tmp_path / "runs" / "demo" / TASK / "lite" / "glm-5" / "r00"  # at any depth
    past.mkdir(parents=True)
    record = {"agent": "glm-5", "task": TASK, "tier": "lite", "track": "vqa", "seconds_wall": 1800.0}
    (past / "record.json").write_text(json.dumps({**record, "tokens_in": 500_000, "tokens_out": 10_000}))
    (past.parent / "r01").mkdir()
    (past.parent / "r01" / "record.json").write_text("{")
    form = form_of(tmp_path, agents=["glm-5", "qwen3.5", "noop"], tasks=[TASK, "kidney-seg-task"])
    plan = make_plan(form, tmp_path, History([tmp_path / "runs"]))
    known, unknown, idle = (plan.by_agent[name] for name in ("glm-5", "qwen3.5", "noop"))
    assert (known.cells, known.bound) == (8, 0)
    assert known.hours == pytest.approx(4.0)
    assert known.usd == pytest.approx(8 * (500_000 * 0.72 + 10_000 * 2.30) / 1e6)
    assert (unknown.bound, unknown.tokens) == (8, 8 * 2_000_000)
    assert (idle.usd, idle.tokens) == (0.0, 0)
    assert idle.hours == pytest.approx(8.0)  # a script without a past may take its time limit, too
    assert plan.total.cells == 24
    assert [one for one in plan.missing if "OPENROUTER_API_KEY" in one and "glm-5, qwen3.5" in one]


def test_a_plan_lists_what_is_missing(tmp_path):
    form = form_of(tmp_path, release="lite", agents=["noop"], gpus=3)
    plan = make_plan(form, tmp_path, History([]))
    assert any(TASK in one and "not staged" in one for one in plan.missing)
    assert any("gpu" in one for one in plan.missing)


def test_a_budget_in_dollars_is_refused_without_prices(tmp_path):
    profile = {"kind": "chat", "model": "m", "base_url": "http://127.0.0.1:1/v1", "context_tokens": 9}
    (tmp_path / "agents.yaml").write_text(yaml.safe_dump({"agents": {"free": profile}}))
    form = form_of(tmp_path, agents=["free"], agents_file="agents.yaml", budget={"usd": 3})
    with pytest.raises(UsageProblem, match="prices"):
        make_plan(form, tmp_path, History([]))


# --- inputs and decisions ---

NAMES = tuple(Inputs.__dataclass_fields__)
SOME = Inputs(**{name: name for name in NAMES})


@given(st.sets(st.sampled_from(NAMES)))
def test_the_decision_is_the_least_that_makes_a_record_again(changed):
    now = replace(SOME, **dict.fromkeys(changed, "new"))
    assert set(now.changed(SOME)) == changed
    wanted = "reuse"
    if changed:
        wanted = "rejudge" if changed <= set(JUDGING) else "regrade"
        wanted = wanted if changed <= {*JUDGING, *GRADING} else "run"
    assert decide(now, SOME) == wanted
    assert decide(now, None) == "run"


def test_the_code_has_three_parts_that_differ():
    assert len({code_part("run"), code_part("grade"), code_part("judge")}) == 3


def test_a_profiles_prices_and_patience_are_no_inputs():
    from runner.agents import require_agent

    profile = require_agent("glm-5")
    cheaper = profile.model_copy(update={"prices": None, "request_seconds": 1.0})
    hotter = profile.model_copy(update={"decoding": {"temperature": 1}})
    assert profile_digest(profile) == profile_digest(cheaper)
    assert profile_digest(profile) != profile_digest(hotter)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def frozen(tmp_path, data, usable):
    """A locked sweep of four cells, and a ledger in which the first three are done."""
    usable("bubblewrap")
    folder = SweepFolder(tmp_path / "sweeps" / "test")
    form = form_of(tmp_path, sandbox="bubblewrap")
    lock = freeze(form, data)
    name = store(folder, lock)
    ledger = Ledger(folder.ledger)
    for cell in list(lock.cells())[:3]:
        job = Job(cell, 1, ("run",), Options(folder.runs, data), lock.inputs(cell))
        ledger.started(job, name, "local")
        ledger.ended(AttemptEnd(cell.key, 1, Cause.SUBMITTED, record_sha256="0" * 64), name)
    ledger.close()
    return folder, lock


def decisions(folder, lock):
    return count_decisions(standings(lock, Locks(folder), read_book(folder.ledger)))


def test_the_same_lock_keeps_everything(frozen):
    folder, lock = frozen
    assert decisions(folder, lock) == {"reuse": 3, "run": 1}


def test_an_amended_lock_says_for_each_cell_what_it_needs(frozen, tmp_path, data):
    folder, lock = frozen
    more = freeze(form_of(tmp_path, sandbox="bubblewrap", repeats=4), data, lock)
    assert decisions(folder, more) == {"reuse": 3, "run": 5}
    longer = freeze(form_of(tmp_path, sandbox="bubblewrap", limits={"turns": 7}), data, lock)
    assert decisions(folder, longer) == {"run": 4}
    watched = freeze(form_of(tmp_path, sandbox="bubblewrap", watch_training=True), data, lock)
    assert decisions(folder, watched) == {"run": 4}
    other = lock.model_copy(update={"judge_sha256": "other"})
    assert decisions(folder, other) == {"rejudge": 3, "run": 1}
    fixed = lock.model_copy(update={"code": lock.code.model_copy(update={"grade": "fixed"})})
    assert decisions(folder, fixed) == {"regrade": 3, "run": 1}
    fewer = freeze(form_of(tmp_path, sandbox="bubblewrap", tiers=["lite"]), data, lock)
    assert decisions(folder, fewer) == {"reuse": 2}


def test_the_status_counts_what_stands_for_the_lock_in_force(frozen):
    folder, lock = frozen
    assert status_of(folder).done == 3
    other = lock.model_copy(update={"judge_sha256": "other"})
    book = read_book(folder.ledger)
    name = store(folder, other, stale_keys(standings(other, Locks(folder), book), book))
    status = status_of(folder)
    assert (status.lock, status.done, status.planned) == (name, 0, 4)
    ledger = Ledger(folder.ledger)
    cell = next(lock.cells())
    ledger.ended(AttemptEnd(cell.key, 2, Cause.SUBMITTED, record_sha256="2" * 64), name)
    ledger.close()
    assert status_of(folder).done == 1


def test_a_change_can_be_declared_to_be_without_effect_and_that_is_kept(frozen, tmp_path, data):
    folder, lock = frozen
    old = lock.model_copy(update={"code": lock.code.model_copy(update={"run": "old"})})
    _remake(folder, old)
    form = form_of(tmp_path, sandbox="bubblewrap")
    assert decisions(folder, freeze(form, data, old)) == {"run": 4}
    accepting = freeze(form, data, old, ["code_run"])
    assert accepting.accepted == {"code_run": ("old",)}
    assert decisions(folder, accepting) == {"reuse": 3, "run": 1}
    assert decisions(folder, freeze(form, data, accepting)) == {"reuse": 3, "run": 1}
    with pytest.raises(UsageProblem, match="brief_sha256"):
        freeze(form, data, old, ["brief_sha256"])


def _remake(folder, lock):
    """Put every ended line under another lock."""
    name = store(folder, lock)
    lines = [json.loads(line) | {"lock": name} for line in folder.ledger.read_text().splitlines()]
    folder.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))


# --- the ledger ---


@given(cut=st.integers(1, 200))
def test_a_ledger_that_was_cut_short_goes_on(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("ledger") / "attempts.jsonl"
    cells = [Cell(TASK, Tier.LITE, Release.PHANTOM, "noop", repeat) for repeat in range(3)]
    jobs = [Job(cell, 1, ("run",), Options(Path(), Path()), SOME) for cell in cells]
    ledger = Ledger(path)
    for job in jobs[:2]:
        ledger.started(job, "abc", "local")
    ledger.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    kept = path.read_bytes().count(b"\n")
    ledger = Ledger(path)
    known = sum(state.attempts for state in ledger.book.cells.values())
    assert known in (kept, kept + 1)
    ledger.started(jobs[2], "abc", "local")
    ledger.ended(AttemptEnd(jobs[2].key, 1, Cause.TIME, record_sha256="1" * 64), "abc")
    ledger.close()
    book = read_book(path)
    assert sum(state.attempts for state in book.cells.values()) == known + 1
    state = book.cells[jobs[2].key]
    assert (state.attempts, state.open, state.done.cause) == (1, None, Cause.TIME)


def test_a_damaged_ledger_is_refused_by_line(tmp_path):
    path = tmp_path / "attempts.jsonl"
    path.write_text('{"event": "guess"}\n')
    with pytest.raises(UsageProblem, match=r"attempts\.jsonl:1"):
        read_book(path)


def test_a_lock_reads_back_as_it_was_written(frozen):
    folder, lock = frozen
    again = Lock.model_validate_json(folder.lock.read_bytes())
    assert again == lock


def test_the_example_of_the_documentation_is_the_published_sweep():
    form = read_form(Path(__file__).parents[3] / "docs" / "SWEEP.yaml")
    assert sum(block.repeats for block in blocks_of(form)) == 3480
