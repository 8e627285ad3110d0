"""Metrics of class answers and scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata


def accuracy(reference: Sequence[str], prediction: Sequence[str | None]) -> float:
    """Share of equal answers, in [0, 1]. A None prediction (missing case) is wrong."""
    _require_answers(reference, prediction)
    return sum(ref == pred for ref, pred in zip(reference, prediction, strict=True)) / len(reference)


def balanced_accuracy(reference: Sequence[str], prediction: Sequence[str | None]) -> float:
    """Mean recall over the classes that occur in the reference, in [0, 1]."""
    _require_answers(reference, prediction)
    recalls = []
    for label in sorted(set(reference)):
        answers = [pred for ref, pred in zip(reference, prediction, strict=True) if ref == label]
        recalls.append(sum(pred == label for pred in answers) / len(answers))
    return sum(recalls) / len(recalls)


def macro_f1(
    reference: Sequence[str], prediction: Sequence[str | None], labels: Sequence[str] | None = None
) -> float:
    """Unweighted mean F1 over ``labels``.

    Parameters
    ----------
    reference, prediction : sequences of equal length
        Class names; a None prediction counts as a miss of the reference class and as no other class.
    labels : sequence of str, optional
        Classes in the mean. Default: every class that occurs on either side, so a class predicted without any
        reference costs; give the reference's classes to leave it out.

    Returns
    -------
    float
        In [0, 1]; a class that is neither right nor possible counts 0.
    """
    _require_answers(reference, prediction)
    if labels is None:
        labels = sorted(set(reference) | {pred for pred in prediction if pred is not None})
    pairs = list(zip(reference, prediction, strict=True))
    scores = []
    for label in labels:
        hits = sum(ref == label and pred == label for ref, pred in pairs)
        total = sum(ref == label for ref, _ in pairs) + sum(pred == label for _, pred in pairs)
        scores.append(2 * hits / total if total else 0.0)
    return sum(scores) / len(scores)


def auroc(reference: ArrayLike, scores: ArrayLike) -> float | None:
    """Area under the ROC curve by the rank statistic; ties count one half.

    Parameters
    ----------
    reference : (n,) array of 0/1
    scores : (n,) array of float
        Finite; only their order matters.

    Returns
    -------
    float or None
        In [0, 1]; None when only one class occurs.

    Notes
    -----
    Mann-Whitney U over the number of positive-negative pairs (Hanley and McNeil, Radiology 1982).
    """
    positive = np.asarray(reference, dtype=bool)
    values = _finite(scores)
    if positive.shape != values.shape or positive.ndim != 1:
        raise ValueError(f"shapes differ: reference {positive.shape}, scores {values.shape}")
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if n_positive == 0 or n_negative == 0:
        return None
    rank_sum = float(rankdata(values, method="average")[positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def auroc_macro(reference: Sequence[str], probabilities: ArrayLike, classes: Sequence[str]) -> float | None:
    """Mean one-against-rest AUROC over the classes that occur in the reference but not everywhere.

    Parameters
    ----------
    reference : (n,) sequence of class names
    probabilities : (n, c) array
        Rows add up to 1 within 1e-3 (checked here, since a row of logits would change the order between
        cases).
    classes : (c,) sequence of class names

    Returns
    -------
    float or None
        In [0, 1]; None when no class can be scored.
    """
    table = _finite(probabilities)
    if table.shape != (len(reference), len(classes)):
        raise ValueError(
            f"expected probabilities of shape {(len(reference), len(classes))}, found {table.shape}"
        )
    if np.any(np.abs(table.sum(axis=1) - 1.0) > 1e-3):
        raise ValueError("each row of probabilities must add up to 1")
    truth = np.asarray(reference)
    areas = [auroc(truth == label, table[:, column]) for column, label in enumerate(classes)]
    scored = [area for area in areas if area is not None]
    return sum(scored) / len(scored) if scored else None


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("scores must be finite")
    return array


def _require_answers(reference: Sequence[str], prediction: Sequence[str | None]) -> None:
    if len(reference) != len(prediction):
        raise ValueError(f"{len(reference)} references but {len(prediction)} predictions")
    if not reference:
        raise ValueError("no case to score")
