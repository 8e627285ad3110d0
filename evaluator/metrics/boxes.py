"""Average precision and its relatives for boxes, without a loop over boxes.

Boxes are ``x1, y1, x2, y2`` in pixels, not clipped to the image. Images and classes are integers; ``image``
must follow the order of the case ids, because equal scores are ranked by (score descending, image, box),
which makes every number here independent of the order of files and of the boxes in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

COCO_THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
RECALL_POINTS = np.linspace(0.0, 1.0, 101)
_BLOCK_PAIRS = 1 << 20


@dataclass(frozen=True)
class References:
    """Reference boxes: ``image`` (n,), ``label`` (n,), ``box`` (n, 4).

    ``crowd`` (n,) marks regions that are ignored.
    """

    image: IntArray
    label: IntArray
    box: FloatArray
    crowd: Mask

    @classmethod
    def of(
        cls, image: ArrayLike, label: ArrayLike, box: ArrayLike, crowd: ArrayLike | None = None
    ) -> References:
        images, labels, boxes = _columns(image, label, box)
        flags = np.zeros(images.size, dtype=bool) if crowd is None else np.asarray(crowd, dtype=bool)
        return cls(images, labels, boxes, flags)


@dataclass(frozen=True)
class Detections:
    """Predicted boxes: ``image`` (n,), ``label`` (n,), ``box`` (n, 4), ``score`` (n,), any finite number."""

    image: IntArray
    label: IntArray
    box: FloatArray
    score: FloatArray

    @classmethod
    def of(cls, image: ArrayLike, label: ArrayLike, box: ArrayLike, score: ArrayLike) -> Detections:
        images, labels, boxes = _columns(image, label, box)
        scores = np.asarray(score, dtype=np.float64).reshape(-1)
        if scores.size != images.size:
            raise ValueError(f"{images.size} boxes but {scores.size} scores")
        if not np.isfinite(scores).all():
            raise ValueError("scores must be finite")
        return cls(images, labels, boxes, scores)

    def __getitem__(self, index: IntArray | Mask) -> Detections:
        kept = np.flatnonzero(index) if index.dtype == bool else index
        box = self.box.take(kept, axis=0)  # whole rows, several times as fast as by index
        return Detections(self.image[kept], self.label[kept], box, self.score[kept])


@dataclass(frozen=True)
class AveragePrecision:
    """``table`` (classes, thresholds): average precision in [0, 1], NaN where the class has no reference."""

    classes: tuple[str, ...]
    thresholds: tuple[float, ...]
    table: FloatArray

    @property
    def mean(self) -> float | None:
        """Mean over thresholds and over the classes that occur in the references; None when none does."""
        defined = self.table[~np.isnan(self.table)]
        return float(defined.mean()) if defined.size else None

    @property
    def per_class(self) -> dict[str, float | None]:
        """Mean over thresholds of each class; None for a class without reference."""
        return {
            name: None if np.isnan(row).any() else float(row.mean())
            for name, row in zip(self.classes, self.table, strict=True)
        }


def coco_ap(
    references: References,
    predictions: Detections,
    classes: Sequence[str],
    iou_thresholds: Sequence[float] = (0.5,),
    max_detections: int = 100,
) -> AveragePrecision:
    """Average precision by the COCO rules.

    Parameters
    ----------
    references, predictions : References, Detections
        ``label`` indexes ``classes``.
    classes : sequence of str
    iou_thresholds : sequence of float
        Intersection over union from which, inclusive, a detection may match.
    max_detections : int
        Best-scored detections kept per image and class.

    Returns
    -------
    AveragePrecision
        101-point interpolated. A class without reference is undefined and left out of the mean.

    Notes
    -----
    Lin et al., ECCV 2014, as in pycocotools: greedy by score, each detection takes the free reference of
    highest IoU; an unmatched detection inside a crowd region (by its own area) is neither hit nor false
    positive.
    """
    detections = _ranked(predictions, max_detections)
    pairs = _pairs(detections, references, min(iou_thresholds))
    names = tuple(classes)
    counts = np.bincount(references.label[~references.crowd], minlength=len(names))
    table = np.full((len(names), len(iou_thresholds)), np.nan)
    for column, threshold in enumerate(iou_thresholds):
        hit, ignored = _match(pairs, references, detections.score.size, threshold)
        for label in np.flatnonzero(counts):
            chosen = (detections.label == label) & ~ignored
            table[label, column] = _interpolated(hit[chosen], int(counts[label]))
    return AveragePrecision(names, tuple(iou_thresholds), table)


def map50(
    references: References, predictions: Detections, classes: Sequence[str], max_detections: int = 100
) -> float | None:
    """``map50_coco101``: mean average precision at IoU 0.5, in [0, 1]; None without any reference box."""
    return coco_ap(references, predictions, classes, (0.5,), max_detections).mean


def map_50_95(
    references: References, predictions: Detections, classes: Sequence[str], max_detections: int = 100
) -> float | None:
    """COCO's AP@[.5:.95]: mean over IoU 0.50, 0.55, ... 0.95 and classes, in [0, 1].

    None without any reference box.
    """
    return coco_ap(references, predictions, classes, COCO_THRESHOLDS, max_detections).mean


def voc_ap50(references: References, predictions: Detections, classes: Sequence[str]) -> float | None:
    """PASCAL VOC average precision at IoU 0.5, all points, mean over the classes of the references.

    Returns
    -------
    float or None
        In [0, 1]; None without any reference box.

    Notes
    -----
    Everingham et al., IJCV 2010 (rules of VOC2010 on): a detection is held against the reference it overlaps
    most, and is a false positive when that one was found already, even if another would still match. No limit
    on detections.
    """
    detections = _ranked(predictions, None)
    pairs = _pairs(detections, references, 0.5)
    best = pairs[_starts(pairs.detection)]
    hit = np.zeros(detections.score.size, dtype=bool)
    hit[best.detection[np.unique(best.reference, return_index=True)[1]]] = True
    counts = np.bincount(references.label, minlength=len(classes))
    areas = [_area(hit[detections.label == label], int(counts[label])) for label in np.flatnonzero(counts)]
    return float(np.mean(areas)) if areas else None


def froc_recall(
    references: References,
    predictions: Detections,
    n_images: int,
    false_positives_per_image: Sequence[float] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    iou_threshold: float = 0.5,
) -> dict[float, float] | None:
    """Recall at fixed numbers of false positives per image, classes pooled (a match needs the right class).

    Parameters
    ----------
    n_images : int
        All images of the task, those without boxes included.

    Returns
    -------
    dict of float to float, or None
        Rate -> highest recall, in [0, 1], reached by a score threshold with at most that many false positives
        per image on average. None without any reference box.
    """
    n_references = int(np.count_nonzero(~references.crowd))
    if n_references == 0:
        return None
    detections = _ranked(predictions, None)
    hit, ignored = _match(
        _pairs(detections, references, iou_threshold), references, detections.score.size, iou_threshold
    )
    hit, score = hit[~ignored], detections.score[~ignored]
    # A threshold keeps or drops equal scores together, so only the last of each run is a point of the curve.
    last = np.append(np.diff(score) != 0, True)[: score.size]
    recall = np.cumsum(hit)[last] / n_references
    rate = np.cumsum(~hit)[last] / n_images
    return {limit: float(recall[rate <= limit].max(initial=0.0)) for limit in false_positives_per_image}


def f1_at_iou(references: References, predictions: Detections, iou_threshold: float = 0.5) -> float:
    """F1 of all boxes with the right class at one IoU, whatever their score.

    In [0, 1], 1 when there is no box at all.
    """
    detections = _ranked(predictions, None)
    hit, ignored = _match(
        _pairs(detections, references, iou_threshold), references, detections.score.size, iou_threshold
    )
    total = int(np.count_nonzero(~ignored)) + int(np.count_nonzero(~references.crowd))
    return 2.0 * int(np.count_nonzero(hit)) / total if total else 1.0


@dataclass(frozen=True)
class _Pairs:
    """Detections and references of one image and class that overlap enough.

    The best-ranked detection first, and its best overlap first.
    """

    detection: IntArray
    reference: IntArray
    iou: FloatArray

    def __getitem__(self, index: IntArray | Mask) -> _Pairs:
        return _Pairs(self.detection[index], self.reference[index], self.iou[index])


def _ranked(detections: Detections, limit: int | None) -> Detections:
    """Sorted by (score descending, image, box), at most ``limit`` per image and class."""
    ranked = detections[_order(-detections.score, detections.image, *detections.box.T)]
    group = _groups(ranked.image, ranked.label)
    if limit is None or np.bincount(group).max(initial=0) <= limit:
        return ranked
    kept = np.zeros(ranked.score.size, dtype=bool)
    order = np.argsort(group, kind="stable")
    kept[order] = _place_in_run(group[order]) < limit
    return ranked[kept]


def _pairs(detections: Detections, references: References, threshold: float) -> _Pairs:
    """Every pair of the same image and class with an IoU of at least ``threshold``."""
    images = np.concatenate([references.image, detections.image])
    group = _groups(images, np.concatenate([references.label, detections.label]))
    of_reference, of_detection = group[: references.image.size], group[references.image.size :]
    sizes = np.bincount(of_reference, minlength=int(group.max(initial=0)) + 1)
    first, count = (np.cumsum(sizes) - sizes)[of_detection], sizes[of_detection]
    members = np.argsort(of_reference, kind="stable")
    near = [
        _near(detections, references, block, first, count, members, threshold) for block in _blocks(count)
    ]
    pairs = near[0] if len(near) == 1 else _joined(near)
    return pairs[_best_overlap_first(pairs, references)]


def _joined(parts: Sequence[_Pairs]) -> _Pairs:
    return _Pairs(
        np.concatenate([part.detection for part in parts]),
        np.concatenate([part.reference for part in parts]),
        np.concatenate([part.iou for part in parts]),
    )


def _blocks(count: IntArray) -> list[slice]:
    """Runs of detections with about ``_BLOCK_PAIRS`` pairs each: what they overlap is little, what they may is much."""
    done = np.cumsum(count) // _BLOCK_PAIRS
    ends = [*np.flatnonzero(np.diff(done)).tolist(), count.size]
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _near(
    detections: Detections,
    references: References,
    block: slice,
    first: IntArray,
    count: IntArray,
    members: IntArray,
    threshold: float,
) -> _Pairs:
    """The pairs of a block of detections that overlap enough."""
    detection = np.repeat(np.arange(block.start, block.stop), count[block])
    reference = members[np.repeat(first[block], count[block]) + _place_in_run(detection)]
    iou = _iou(detections.box, references.box, detection, reference, references.crowd)
    near = iou >= threshold
    return _Pairs(detection[near], reference[near], iou[near])


def _best_overlap_first(pairs: _Pairs, references: References) -> IntArray:
    order = np.lexsort((-pairs.iou, pairs.detection))
    same = pairs[order]
    if np.any((same.iou[1:] == same.iou[:-1]) & (same.detection[1:] == same.detection[:-1])):
        # Of equal overlaps the later reference wins, as in pycocotools, but by its box and not its place in the file.
        rank = np.empty(references.image.size, dtype=np.int64)
        rank[_order(*references.box.T)] = np.arange(rank.size)
        order = np.lexsort((-rank[pairs.reference], -pairs.iou, pairs.detection))
    return order


def _match(pairs: _Pairs, references: References, n_detections: int, threshold: float) -> tuple[Mask, Mask]:
    """Greedy matching: which detections hit, and which are ignored because they lie in a crowd."""
    near = pairs[pairs.iou >= threshold]
    crowd = references.crowd[near.reference]
    hit = np.zeros(n_detections, dtype=bool)
    taken = np.zeros(references.image.size, dtype=bool)
    open_pairs = near[~crowd]
    while open_pairs.iou.size:
        # A detection's best pair is final once no better-ranked detection still wants that reference.
        best = open_pairs[_starts(open_pairs.detection)]
        final = best[_final(best, open_pairs)]
        hit[final.detection] = True
        taken[final.reference] = True
        open_pairs = open_pairs[~(taken[open_pairs.reference] | hit[open_pairs.detection])]
    ignored = np.zeros(n_detections, dtype=bool)
    ignored[near.detection[crowd]] = True
    return hit, ignored & ~hit


def _final(best: _Pairs, open_pairs: _Pairs) -> Mask:
    claimants = np.empty(int(open_pairs.reference.max()) + 1, dtype=np.int64)
    # Written from the worst-ranked detection to the best, so the best one stays.
    claimants[open_pairs.reference[::-1]] = open_pairs.detection[::-1]
    return np.asarray(claimants[best.reference] == best.detection)


def _iou(
    ours: FloatArray, theirs: FloatArray, detection: IntArray, reference: IntArray, crowd: Mask
) -> FloatArray:
    """Intersection over union of each pair; over the detection's own area where the reference is a crowd."""
    left, right = np.ascontiguousarray(ours.T), np.ascontiguousarray(theirs.T)
    shared = np.ones(detection.size)
    for low, high in ((0, 2), (1, 3)):
        end = np.minimum(left[high][detection], right[high][reference])
        start = np.maximum(left[low][detection], right[low][reference])
        shared *= np.maximum(end - start, 0.0)
    area = ((left[2] - left[0]) * (left[3] - left[1]))[detection]
    other = ((right[2] - right[0]) * (right[3] - right[1]))[reference]
    union = np.where(crowd[reference], area, area + other - shared)
    iou: FloatArray = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return iou


def _interpolated(hit: Mask, n_references: int) -> float:
    recall, precision = _curve(hit, n_references)
    place = np.searchsorted(recall, RECALL_POINTS, side="left")
    return float(np.append(precision, 0.0)[place].mean())


def _area(hit: Mask, n_references: int) -> float:
    recall, precision = _curve(hit, n_references)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def _curve(hit: Mask, n_references: int) -> tuple[FloatArray, FloatArray]:
    """Recall and the running maximum, from the right, of precision, down the ranking."""
    hits = np.cumsum(hit)
    precision = hits / np.arange(1, hit.size + 1)
    return hits / n_references, np.maximum.accumulate(precision[::-1])[::-1]


def _order(*keys: NDArray[Any]) -> IntArray:
    """Lexicographic order, the first key first; the later keys are sorted only where the first one ties."""
    order = np.argsort(keys[0], kind="stable")
    first = keys[0][order]
    return np.lexsort(keys[::-1]) if np.any(first[1:] == first[:-1]) else order


def _starts(values: IntArray) -> IntArray:
    """Where each run of equal values starts."""
    return np.flatnonzero(np.diff(values, prepend=values[:1] - 1))


def _place_in_run(values: IntArray) -> IntArray:
    """0, 1, 2, ... within each run of equal values."""
    starts = _starts(values)
    return np.arange(values.size) - np.repeat(starts, np.diff(np.append(starts, values.size)))


def _groups(image: IntArray, label: IntArray) -> IntArray:
    """One small number for each pair of image and class."""
    if image.size and not (image.min() >= 0 and image.max() <= 8 * image.size):
        image = np.unique(image, return_inverse=True)[1].reshape(-1)
    return image * (int(label.max(initial=0)) + 1) + label


def _columns(image: ArrayLike, label: ArrayLike, box: ArrayLike) -> tuple[IntArray, IntArray, FloatArray]:
    images = np.asarray(image, dtype=np.int64).reshape(-1)
    labels = np.asarray(label, dtype=np.int64).reshape(-1)
    boxes = np.asarray(box, dtype=np.float64).reshape(-1, 4)
    if not images.size == labels.size == boxes.shape[0]:
        raise ValueError(
            f"{images.size} images, {labels.size} labels and {boxes.shape[0]} boxes do not belong together"
        )
    if not np.isfinite(boxes).all():
        raise ValueError("box coordinates must be finite")
    return images, labels, boxes
