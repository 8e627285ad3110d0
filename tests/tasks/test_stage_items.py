"""The items that the brief discloses are the items that the rubric judges."""

from __future__ import annotations

import pytest

from evaluator.judge.plan import MIN_CHARS, MIN_SIDE
from evaluator.rubric import load_rubric
from tasks import scoring
from tasks.schema import Track

every_track = pytest.mark.parametrize("track", list(Track))


@every_track
def test_ids_and_rules_agree(track: Track) -> None:
    judged = [
        (item.id, item.requires, item.auto_if is not None, item.skip_if is not None)
        for stage in ("S1", "S2")
        for item in load_rubric(track).of_stage(stage)
    ]
    disclosed = [
        (item.id, item.needs, item.lite_credit, item.weights_only)
        for item in (*scoring.s1_items(track), *scoring.S2_ITEMS)
    ]
    assert disclosed == judged


@every_track
def test_levels_of_s3_agree(track: Track) -> None:
    (pilot,) = load_rubric(track).of_stage("S3")
    assert [level.value for level in pilot.levels] == [
        level.value for level in reversed(scoring.s3_levels(track))
    ]


def test_thresholds_of_the_plan_are_disclosed() -> None:
    texts = {item.id: item.text for item in scoring.s1_items(Track.VQA)}
    assert f"at least {MIN_CHARS} characters" in texts["plan_exists"]
    assert f"at least {MIN_SIDE} x {MIN_SIDE} pixels" in texts["plan_picture"]
