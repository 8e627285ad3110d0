"""The rubric files, their loader and the page made from them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

import evaluator.rubric as rubric_module
from evaluator.rubric import RubricError, build_rubric, load_rubric, rubric_digest
from evaluator.rubric.page import rubric_page
from tasks import scoring
from tasks.schema import Tier, Track

FOLDER = Path(rubric_module.__file__).parent
ROOT = Path(__file__).parents[3]


def sources(track: str = "segmentation"):
    return tuple(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) for name in ("shared", track))


@pytest.mark.parametrize("track", list(Track))
def test_what_is_judged_is_what_the_brief_discloses(track):
    rubric = load_rubric(track)
    told = (*scoring.s1_items(track), *scoring.S2_ITEMS)
    judged = (*rubric.of_stage("S1"), *rubric.of_stage("S2"))
    assert [item.id for item in judged] == [item.id for item in told]
    assert [item.requires for item in judged] == [item.needs for item in told]
    assert [item.auto_if is not None for item in judged] == [item.lite_credit for item in told]
    assert [item.skip_if == "classical" for item in judged] == [item.weights_only for item in told]
    levels = [level.value for level in rubric.of_stage("S3")[0].levels]
    assert levels == [level.value for level in reversed(scoring.s3_levels(track))]


def test_credits_are_given_in_the_lite_tier_when_there_is_a_plan():
    credits = {item.auto_if for item in load_rubric(Track.VQA).items if item.auto_if}
    assert [(credit.tier, credit.item) for credit in credits] == [(Tier.LITE, "plan_exists")]


def test_every_track_has_a_digest_of_its_own_that_does_not_change_by_itself():
    digests = [rubric_digest(track) for track in Track]
    assert len(set(digests)) == len(Track)
    assert digests == [build_rubric(*sources(track.value)).sha256 for track in Track]


def test_another_question_is_another_digest():
    shared, own = sources()
    own["questions"]["plan_method"] += " Really?"
    assert build_rubric(shared, own).sha256 != rubric_digest(Track.SEGMENTATION)


def broken(change):
    shared, own = copy.deepcopy(sources())
    change(shared, own)
    return shared, own


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda shared, own: shared["items"].pop(0), "refer to earlier items|S1 has 5 items"),
        (lambda shared, own: shared["items"][0].update(weigth=2), "weigth"),
        (lambda shared, own: shared["items"][0].update(weight=0), "weight"),
        (lambda shared, own: shared["items"][1].update(requires="nothing_such"), "earlier items"),
        (lambda shared, own: shared["items"][1].update(id="plan_exists"), "unique"),
        (lambda shared, own: own["questions"].update(no_such_item="?"), "no item is named no_such_item"),
        (lambda shared, own: own["questions"].pop("plan_method"), "question"),
        (lambda shared, own: own.pop("validation"), "validation"),
        (lambda shared, own: own["validation"]["levels"].reverse(), "levels must rise"),
        (lambda shared, own: own["validation"].pop("levels"), "S3"),
        (lambda shared, own: own.update(track="astrology"), "track"),
    ],
)
def test_a_broken_rubric_is_refused_by_name(change, message):
    with pytest.raises(RubricError, match=message):
        build_rubric(*broken(change))


def test_the_page_is_current():
    assert (ROOT / "docs" / "rubric.md").read_text() == rubric_page(), (
        "run python -m evaluator.rubric > docs/rubric.md"
    )


def test_every_question_stands_on_the_page():
    page = rubric_page()
    for track in Track:
        for item in load_rubric(track).items:
            assert item.question in page
            assert all(level.when in page for level in item.levels)
