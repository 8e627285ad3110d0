"""Majority and Krippendorff's alpha."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.judge.agreement import agreement, krippendorff_alpha, majority

# The reliability data of Krippendorff's 2011 paper: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def test_the_published_example():
    units = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]
    assert krippendorff_alpha(units) == pytest.approx(0.849, abs=5e-4)


def test_the_published_example_of_two_observers_and_yes_or_no():
    one = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    two = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha(zip(one, two, strict=True)) == pytest.approx(0.095, abs=5e-4)


def test_full_agreement_is_one_and_nothing_to_compare_is_none():
    assert krippendorff_alpha([[1, 1, 1], [0, 0, 0]]) == 1
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert krippendorff_alpha([[1], [0], []]) is None
    assert krippendorff_alpha([]) is None


@given(st.lists(st.lists(st.sampled_from([0, 0.2, 0.5, 1]), max_size=5), max_size=10))
def test_alpha_is_at_most_one(units):
    alpha = krippendorff_alpha(units)
    assert alpha is None or alpha <= 1 + 1e-12


@pytest.mark.parametrize(
    ("votes", "panel", "value"),
    [
        ([1, 1, 1], 3, 1),
        ([1, 0, 1], 3, 1),
        ([0, 0], 3, 0),
        ([1, 0], 3, None),
        ([1], 3, None),
        ([], 3, None),
        ([0, 0.5, 1], 3, None),
        ([0.5, 0.5, 1], 3, 0.5),
        ([1, 0], 2, None),
        ([1], 1, 1),
        ([1, 1, 0], 5, 1),
        ([1, 1], 5, None),
    ],
)
def test_majority(votes, panel, value):
    assert majority(votes, panel) == value


def test_agreement_is_the_share_of_the_commonest():
    assert agreement([1, 1, 0]) == pytest.approx(2 / 3)
    assert agreement([]) is None
