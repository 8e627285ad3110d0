"""The walk: which calls the agent makes, and how it answers to failure; the sandbox does what the test says."""

from __future__ import annotations

import json
import re

import pytest

from evaluator.trace import EndReason
from runner.agents.baseline import Baseline
from runner.agents.baseline.plan import load_plan
from runner.sandbox.base import ExecResult
from tasks.schema import Tier, Track

MARKS = {
    "look": "find . -mindepth",
    "plan": "/workspace/plan.md <<",
    "tools": "/workspace/method.py <<",
    "compare": "common.compare(",
    "draw": "draw_pipeline(\n    '",
    "check": "common.versions()",
    "forward": "common.forward(",
    "pilot": "common.pilot(",
    "review": "common.review(",
    "mend": "todo=common.bad_cases()",
    "batch": "common.batch(",
    "verify": "common.verify()",
}
FAILED = ExecResult(1, b"Traceback: no", 13, 0, 0.1)


def kind(code: str) -> str:
    return next(name for name, mark in MARKS.items() if mark in code)


def batch_says(left: int) -> bytes:
    return f"2/2 after 0.1 s\nbatch: 2 cases to do, open: {left} []\n".encode()


@pytest.fixture
def walk(new_stage):
    """Run the agent; ``act(kind, code)`` may answer a call, the rest succeeds and the batch writes all outputs."""

    def run(act=lambda kind, code: None, tier=Tier.LITE, **options):
        def answer(code):
            name = kind(code)
            given = act(name, code)
            if given is not None:
                return given
            if name == "batch":
                stage.write_outputs("case-a", "case-b")
                return batch_says(0)
            return b"fine"

        stage = new_stage(act=answer, **options)
        stage.session.brief = stage.session.brief.model_copy(update={"tier": tier})
        Baseline().run(stage.session)
        stage.kinds = [kind(code) for code in stage.sandbox.codes]
        stage.methods = [
            (kind(code), found[1])
            for code in stage.sandbox.codes
            if (found := re.search(r"common\.\w+\((?:common\.cases\(\)\[\d+\], )?'(\w+)'", code))
        ]
        return stage

    return run


def test_the_lite_walk_takes_ten_turns_and_ends_submitted(walk):
    stage = walk()
    assert stage.kinds == ["look", "plan", "tools", "check", "forward", "pilot", "review", "batch", "verify"]
    assert stage.session.ended is EndReason.SUBMITTED
    assert stage.budget.turns == 10


def test_the_standard_walk_measures_candidates_and_draws_before_the_plan_is_final(walk):
    stage = walk(tier=Tier.STANDARD)
    assert stage.kinds[:6] == ["look", "tools", "compare", "plan", "draw", "check"]
    assert stage.session.ended is EndReason.SUBMITTED
    assert stage.budget.turns == 12


def test_the_best_measured_candidate_is_taken_and_the_plan_says_why(walk):
    rows = {"prior": [0.4, 1], "grow": [0.9, 2], "threshold": [0.2, 1]}
    table = json.dumps(
        {name: {"quality": quality, "seconds": seconds} for name, (quality, seconds) in rows.items()}
    )

    stage = walk(
        lambda name, code: f"x\nCOMPARISON {table}\n".encode() if name == "compare" else None, Tier.STANDARD
    )
    assert {method for _, method in stage.methods} == {"grow"}
    plan = next(code for code in stage.sandbox.codes if kind(code) == "plan")
    assert "Decision: seeded region growing, the highest plausibility of the three (0.900)" in plan
    assert "| 0.9 | 2.0 |" in plan


@pytest.mark.parametrize("answer", [FAILED, b"COMPARISON {}", b"nothing of the kind"])
def test_without_a_comparison_the_default_is_taken(walk, answer):
    stage = walk(lambda name, code: answer if name == "compare" else None, Tier.STANDARD)
    assert {method for _, method in stage.methods} == {"prior"}
    assert stage.session.ended is EndReason.SUBMITTED


def test_a_method_that_fails_its_forward_pass_gives_way_to_the_fallback(walk):
    stage = walk(lambda name, code: FAILED if name == "forward" and "'prior'" in code else None)
    assert stage.methods[:2] == [("forward", "prior"), ("forward", "threshold")]
    assert {method for _, method in stage.methods[2:]} == {"threshold"}


def test_a_case_on_which_every_method_fails_is_not_the_pilot(walk):
    stage = walk(lambda name, code: FAILED if name == "forward" else None)
    pilot = next(code for code in stage.sandbox.codes if kind(code) == "pilot")
    assert "common.cases()[1], 'prior'" in pilot


def test_an_implausible_pilot_is_made_again_with_the_fallback_before_the_batch(walk):
    reviews = iter([FAILED, b"plausible"])
    stage = walk(lambda name, code: next(reviews) if name == "review" else None)
    assert stage.kinds[5:10] == ["pilot", "review", "pilot", "review", "batch"]
    assert stage.methods[-1] == ("batch", "threshold")


def test_a_batch_that_gets_on_is_called_again_with_the_same_method(walk):
    left = iter([1, 0])

    def act(name, code):
        return batch_says(next(left)) if name == "batch" else None

    stage = walk(act)
    assert [method for name, method in stage.methods if name == "batch"] == ["prior", "prior"]


def test_what_stays_open_goes_to_the_fallback_and_the_run_submits_what_there_is(walk):
    def act(name, code):
        if name == "batch":
            return batch_says(1)
        return FAILED if name in ("verify", "mend") else None

    stage = walk(act)
    assert [method for name, method in stage.methods if name == "batch"] == ["prior", "prior", "threshold"]
    submits = stage.events("submit")
    assert [submit.accepted for submit in submits] == [False, True]
    assert "1 cases were left open by 'prior'" in submits[-1].summary
    assert stage.session.ended is EndReason.SUBMITTED


def test_a_batch_that_was_killed_leads_to_the_fallback(walk):
    killed = ExecResult(None, b"", 0, 0, 600.0, timed_out=True)
    stage = walk(lambda name, code: killed if name == "batch" and "'prior'" in code else None)
    assert [method for name, method in stage.methods if name == "batch"] == ["prior", "threshold"]
    assert stage.session.ended is EndReason.SUBMITTED


def test_problems_found_at_the_end_are_mended_with_the_fallback(walk):
    stage = walk(lambda name, code: FAILED if name == "verify" else None)
    assert stage.kinds[-2:] == ["verify", "mend"]
    assert stage.methods[-1] == ("mend", "threshold")


@pytest.mark.parametrize("last", range(1, 10))
def test_nothing_is_asked_after_the_time_is_up(walk, last):
    calls, now = [], [0.0]

    def act(name, code):
        calls.append(name)
        now[0] += 3601 if len(calls) == last else 1

    stage = walk(act, limits={"wall_seconds": 3600}, clock=lambda: now[0])
    assert stage.session.ended is EndReason.TIME
    assert len(stage.kinds) == last


def test_turns_are_a_limit_too(walk):
    stage = walk(limits={"turns": 4})
    assert stage.session.ended is EndReason.TURNS
    assert len(stage.kinds) == 4


@pytest.mark.parametrize(("wall", "call"), [(3600, 600), (100, 600), (10, 600)])
def test_the_batch_leaves_time_to_verify_and_hand_in(walk, wall, call):
    stage = walk(limits={"wall_seconds": wall, "call_seconds": call})
    batch = next(code for code in stage.sandbox.codes if kind(code) == "batch")
    seconds = int(re.search(r"seconds=(\d+)", batch)[1])
    assert 0 < seconds <= min(0.9 * call, 0.8 * wall)


@pytest.mark.parametrize("track", Track)
def test_every_track_has_a_plan(track):
    plan = load_plan(track)
    assert plan.default in plan.candidates
