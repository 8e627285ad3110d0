"""Class metrics: laws, and agreement with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.metrics.classification import accuracy, auroc, auroc_macro, balanced_accuracy, macro_f1

CLASSES = ["a", "b", "c"]


def answers(seed: int) -> tuple[list[str], list[str]]:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 40))
    truth = generator.choice(CLASSES, n)
    return truth.tolist(), np.where(generator.random(n) < 0.6, truth, generator.choice(CLASSES, n)).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_identity_is_best_and_order_does_not_matter(seed: int) -> None:
    truth, found = answers(seed)
    order = np.random.default_rng(seed).permutation(len(truth))
    for metric in (accuracy, balanced_accuracy, macro_f1):
        assert metric(truth, truth) == 1.0
        turned = metric([truth[i] for i in order], [found[i] for i in order])
        assert turned == pytest.approx(metric(truth, found))


def test_missing_answers_are_wrong() -> None:
    assert accuracy(["a", "b"], ["a", None]) == 0.5
    assert balanced_accuracy(["a", "b", "b"], ["a", None, "b"]) == 0.75
    assert macro_f1(["a", "b"], ["a", None]) == 0.5


def test_constant_answer_has_chance_balanced_accuracy() -> None:
    assert balanced_accuracy(["a"] * 8 + ["b", "c"], ["a"] * 10) == pytest.approx(1 / 3)


def test_lengths_must_fit() -> None:
    with pytest.raises(ValueError, match="2 references but 1"):
        accuracy(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="shapes differ"):
        auroc([0, 1], [0.5])
    with pytest.raises(ValueError, match="shape"):
        auroc_macro(["a"], [[0.5, 0.5]], CLASSES)


def test_area_of_turned_scores() -> None:
    generator = np.random.default_rng(0)
    truth, scores = generator.integers(0, 2, 50), np.round(generator.random(50), 1)
    area = auroc(truth, scores)
    assert area is not None
    assert auroc(truth, -scores) == pytest.approx(1 - area)
    assert auroc(1 - truth, scores) == pytest.approx(1 - area)
    assert auroc(truth, np.exp(scores)) == pytest.approx(area)
    assert auroc(truth, np.ones(50)) == 0.5


def test_classes_without_contrast_leave_the_mean() -> None:
    table = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]]
    assert auroc_macro(["a", "b", "a"], table, CLASSES) == 1.0
    assert auroc_macro(["a", "a", "a"], table, CLASSES) is None


def _cross_check(cases: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(cases):
        truth, found = answers(seed)
        assert accuracy(truth, found) == pytest.approx(metrics.accuracy_score(truth, found), abs=1e-9)
        recall = metrics.recall_score(
            truth, found, labels=sorted(set(truth)), average="macro", zero_division=0
        )
        assert balanced_accuracy(truth, found) == pytest.approx(recall, abs=1e-9)
        f1 = metrics.f1_score(truth, found, average="macro", zero_division=0)
        assert macro_f1(truth, found) == pytest.approx(f1, abs=1e-9)
        generator = np.random.default_rng(seed)
        binary = np.append(generator.integers(0, 2, 30), [0, 1])
        scores = np.round(generator.random(32), 1)
        assert auroc(binary, scores) == pytest.approx(metrics.roc_auc_score(binary, scores), abs=1e-9)
        table = generator.dirichlet([1, 1, 1], 30)
        names = [*CLASSES, *generator.choice(CLASSES, 27)]
        expected = metrics.roc_auc_score(names, table, multi_class="ovr", labels=CLASSES)
        assert auroc_macro(names, table, CLASSES) == pytest.approx(expected, abs=1e-9)


def test_cross_check_with_scikit_learn() -> None:
    _cross_check(20)


@pytest.mark.slow
def test_cross_check_with_scikit_learn_on_1000_cases() -> None:
    _cross_check(1000)
