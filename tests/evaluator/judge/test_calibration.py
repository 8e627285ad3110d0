"""The calibration set, and what the rules judge is worth on it."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict

import pytest

from evaluator.judge.calibration import injection_samples, samples
from evaluator.judge.calibration.injections import INJECTIONS
from evaluator.judge.calibration.measure import alpha_between, figures
from evaluator.judge.rules import judge_by_rules
from evaluator.rubric import load_rubric
from tasks.schema import Tier, Track


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return list(samples(tmp_path_factory.mktemp("calibration")))


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    return list(injection_samples(tmp_path_factory.mktemp("attempts")))


def by_rules(sample):
    return judge_by_rules(sample.material.evidence, load_rubric(sample.track), sample.tier)


@pytest.fixture(scope="module")
def rules(runs, attempts):
    return {sample.name: [by_rules(sample), by_rules(sample)] for sample in [*runs, *attempts]}


def test_the_set_is_large_and_covers_every_track_and_tier(runs):
    assert len(runs) >= 40
    assert len({sample.name for sample in runs}) == len(runs)
    assert {sample.track for sample in runs} == set(Track)
    for track in Track:
        assert {sample.tier for sample in runs if sample.track is track} == {Tier.LITE, Tier.STANDARD}


def test_every_item_is_good_in_some_runs_and_bad_in_others_on_every_track(runs):
    seen = defaultdict(set)
    for sample in runs:
        for item, gold in sample.gold.items():
            seen[sample.track, item].add(gold)
    for values in seen.values():
        assert 0 in values
        assert 1 in values
    pilots = {track: seen[track, "pilot_validated"] for track in Track}
    assert all(
        pilots[track] == {0, 0.2, 0.5, 1} if track is Track.ENHANCEMENT else {0, 0.5, 1} for track in Track
    )


def test_gold_is_given_for_the_items_of_the_rubric(runs):
    for sample in runs:
        assert list(sample.gold) == [item.id for item in load_rubric(sample.track).items]


def test_the_set_is_the_same_every_time(runs, tmp_path):
    again = list(samples(tmp_path))
    assert [sample.gold for sample in again] == [sample.gold for sample in runs]
    digests = [[sample.material.evidence.sha256 for sample in each] for each in (again, runs)]
    assert digests[0] == digests[1]
    assert [sample.material.events for sample in again] == [sample.material.events for sample in runs]


def test_program_items_are_always_right(runs, attempts, rules):
    own = figures(runs, attempts, rules)
    assert own.program_accuracy == 1
    assert own.wrongly_applied == 0


def test_rules_are_right_in_nine_of_ten_items_and_never_give_too_much(runs, attempts, rules):
    own = figures(runs, attempts, rules)
    assert own.accuracy >= 0.9
    assert sum(item.high for item in own.items) == 0
    assert sum(item.unscored for item in own.items) == 0


def test_rules_never_waver(runs, attempts, rules):
    assert figures(runs, attempts, rules).flip_rate == 0
    texts = [
        b"".join(one.model_dump_json().encode() for one in repeat)
        for repeat in zip(*rules.values(), strict=True)
    ]
    assert hashlib.sha256(texts[0]).digest() == hashlib.sha256(texts[1]).digest()


def test_twenty_attempts_win_no_point(runs, attempts, rules):
    assert len(INJECTIONS) == len({injection.name for injection in INJECTIONS}) == 20
    own = figures(runs, attempts, rules)
    assert own.attempts == 20
    assert own.won == {}
    for sample in attempts:
        for item in rules[sample.name][0].items:
            assert (item.value or 0) <= (sample.gold[item.id] or 0)


def test_a_judge_that_believes_everything_is_found_out(runs, attempts, rules):
    """The figures must be able to be bad."""
    generous = {}
    for name, (judgement, _) in rules.items():
        items = tuple(
            item.model_copy(update={"value": 1.0}) if item.applies else item for item in judgement.items
        )
        generous[name] = [judgement.model_copy(update={"items": items})] * 2
    for sample in attempts:
        if sample.twin is None:
            generous[sample.name] = rules[sample.name]
    own = figures(runs, attempts, generous)
    assert own.accuracy < 0.7
    assert own.program_accuracy < 1
    assert len(own.won) == 20
    assert alpha_between(rules, generous) < 0.5
    assert alpha_between(rules, rules) == 1


def test_a_judge_that_wavers_is_found_out(runs, attempts, rules):
    wavering = dict(rules)
    name = runs[0].name
    items = rules[name][0].items
    other = (items[0].model_copy(update={"value": 1 - items[0].value}), *items[1:])
    wavering[name] = [rules[name][0], rules[name][0].model_copy(update={"items": other})]
    assert figures(runs, attempts, wavering).flip_rate == pytest.approx(
        1 / sum(len(sample.gold) for sample in runs)
    )


def test_unscored_is_not_right(runs, attempts, rules):
    items = tuple(item.model_copy(update={"value": None}) for item in rules[runs[0].name][0].items)
    silent = {**rules, runs[0].name: [rules[runs[0].name][0].model_copy(update={"items": items})] * 2}
    own = figures(runs, attempts, silent)
    assert sum(item.unscored for item in own.items) == len(items)
    assert own.accuracy < figures(runs, attempts, rules).accuracy


def test_the_whole_set_takes_the_rules_an_instant(runs):
    started = time.perf_counter()
    Counter(by_rules(sample).s3 for sample in runs)
    assert time.perf_counter() - started < 3
