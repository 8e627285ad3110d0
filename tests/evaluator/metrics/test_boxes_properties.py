"""Detection metrics: laws, and agreement with pycocotools."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from evaluator.metrics.boxes import (
    COCO_THRESHOLDS,
    Detections,
    References,
    coco_ap,
    f1_at_iou,
    froc_recall,
    map50,
    map_50_95,
    voc_ap50,
)

CLASSES = ("a", "b", "c")


def scene(
    seed: int, n_images: int = 12, per_image: float = 4, max_detections: int | None = None
) -> tuple[References, Detections]:
    """Random references, and detections that are jittered copies, duplicates and noise."""
    generator = np.random.default_rng(seed)
    n = max(1, generator.poisson(n_images * per_image))
    corner, size = generator.uniform(0, 80, (n, 2)), generator.uniform(4, 40, (n, 2))
    references = References.of(
        generator.integers(0, n_images, n), generator.integers(0, 3, n), np.hstack([corner, corner + size])
    )
    copies = generator.integers(0, n, int(n * generator.uniform(0.5, 3)))
    jitter = generator.normal(0, 1, (copies.size, 4)) * generator.choice([0.3, 2, 6], (copies.size, 1))
    boxes = references.box[copies] + jitter
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 0.5)
    labels = np.where(
        generator.random(copies.size) < 0.85, references.label[copies], generator.integers(0, 3, copies.size)
    )
    detections = Detections.of(references.image[copies], labels, boxes, generator.random(copies.size))
    if max_detections is not None:
        detections = detections[np.arange(detections.score.size) < max_detections]
    return references, detections


def as_detections(references: References) -> Detections:
    return Detections.of(references.image, references.label, references.box, np.ones(references.image.size))


def every_metric(references: References, detections: Detections) -> list[float | None]:
    return [
        map50(references, detections, CLASSES),
        map_50_95(references, detections, CLASSES),
        voc_ap50(references, detections, CLASSES),
        f1_at_iou(references, detections),
        *(froc_recall(references, detections, 12) or {}).values(),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_identity_is_best(seed: int) -> None:
    references, _ = scene(seed)
    assert every_metric(references, as_detections(references)) == pytest.approx([1.0] * 11)


@pytest.mark.parametrize("seed", range(10))
def test_order_of_boxes_and_files_does_not_matter(seed: int) -> None:
    references, detections = scene(seed)
    # equal scores everywhere, and boxes that occur twice: the hardest case for a stable result
    detections = Detections.of(
        detections.image, detections.label, detections.box, np.round(detections.score, 1)
    )
    generator = np.random.default_rng(seed)
    order, other = generator.permutation(references.image.size), generator.permutation(detections.score.size)
    shuffled = References.of(references.image[order], references.label[order], references.box[order])
    assert every_metric(shuffled, detections[other]) == every_metric(references, detections)


@pytest.mark.parametrize("seed", range(5))
def test_translation_scaling_and_relabelling_change_nothing(seed: int) -> None:
    references, detections = scene(seed)
    before = every_metric(references, detections)
    moved = (
        References.of(references.image, references.label, references.box * 2 + 64),
        Detections.of(detections.image, detections.label, detections.box * 2 + 64, detections.score),
    )
    assert every_metric(*moved) == pytest.approx(before)
    table = np.array([2, 0, 1])
    named = (
        References.of(references.image, table[references.label], references.box),
        Detections.of(detections.image, table[detections.label], detections.box, detections.score),
    )
    assert every_metric(*named) == pytest.approx(before)


@pytest.mark.parametrize("seed", range(5))
def test_only_the_order_of_scores_matters(seed: int) -> None:
    references, detections = scene(seed)
    stretched = Detections.of(
        detections.image, detections.label, detections.box, 1e6 * detections.score**3 - 5
    )
    assert map50(references, stretched, CLASSES) == map50(references, detections, CLASSES)


def test_a_shift_of_the_boxes_makes_it_worse_step_by_step() -> None:
    references, _ = scene(0)
    scores = []
    for shift in (0, 1, 2, 4, 8, 16):
        detections = as_detections(References.of(references.image, references.label, references.box + shift))
        scores.append(map_50_95(references, detections, CLASSES))
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[2] > scores[-1]


def test_no_box_anywhere() -> None:
    nothing, none = References.of([], [], []), Detections.of([], [], [], [])
    assert map50(nothing, none, CLASSES) is None
    assert voc_ap50(nothing, none, CLASSES) is None
    assert froc_recall(nothing, none, 3) is None
    assert f1_at_iou(nothing, none) == 1.0
    references, _ = scene(0)
    assert map50(references, none, CLASSES) == 0.0
    assert voc_ap50(references, none, CLASSES) == 0.0
    assert f1_at_iou(references, none) == 0.0
    assert set((froc_recall(references, none, 3) or {}).values()) == {0.0}
    assert map50(nothing, as_detections(references), CLASSES) is None
    assert f1_at_iou(nothing, as_detections(references)) == 0.0


def test_hit_in_place_101_is_lost_per_image_and_class() -> None:
    reference = References.of([0], [0], [[0, 0, 10, 10]])
    boxes = [[100 + i, 100, 110 + i, 110] for i in range(100)] + [[0, 0, 10, 10]]
    detections = Detections.of([0] * 101, [0] * 101, boxes, np.linspace(1, 0.1, 101))
    assert map50(reference, detections, CLASSES) == 0.0
    assert map50(reference, detections, CLASSES, max_detections=101) == pytest.approx(1 / 101)
    elsewhere = Detections.of([0] * 100 + [1], [0] * 101, boxes, np.linspace(1, 0.1, 101))
    assert map50(References.of([1], [0], [[0, 0, 10, 10]]), elsewhere, CLASSES) > 0.0


def test_voc_holds_a_detection_against_its_best_reference_only() -> None:
    references = References.of([0, 0], [0, 0], [[0, 0, 10, 10], [0, 2, 10, 12]])
    detections = Detections.of([0, 0], [0, 0], [[0, 0, 10, 10], [0, 0.5, 10, 10.5]], [0.9, 0.8])
    assert map50(references, detections, CLASSES) == pytest.approx(1.0)
    assert voc_ap50(references, detections, CLASSES) == pytest.approx(0.5)


def test_free_response_points_by_hand() -> None:
    references = References.of([0, 1, 2, 3], [0] * 4, [[0, 0, 10, 10]] * 4)
    boxes = [
        [0, 0, 10, 10],
        [50, 50, 60, 60],
        [0, 0, 10, 10],
        [50, 50, 60, 60],
        [50, 50, 60, 60],
        [0, 0, 10, 10],
    ]
    detections = Detections.of([0, 0, 1, 2, 3, 2], [0] * 6, boxes, [0.9, 0.8, 0.7, 0.6, 0.6, 0.5])
    found = froc_recall(references, detections, 4, (0.0, 0.25, 0.5, 0.75))
    # hits 1, 2 at 0 and 1 false positives; the next two false positives share a score, so 2 false positives is no point
    assert found == {0.0: 0.25, 0.25: 0.5, 0.5: 0.5, 0.75: 0.75}


def test_f1_by_hand() -> None:
    references = References.of([0, 0], [0, 1], [[0, 0, 10, 10], [20, 20, 30, 30]])
    detections = Detections.of(
        [0, 0, 0], [0, 0, 0], [[0, 0, 10, 10], [0, 0, 10, 10], [20, 20, 30, 30]], [0.1, 0.2, 0.3]
    )
    assert f1_at_iou(references, detections) == pytest.approx(2 / 5)


def test_inputs_are_checked() -> None:
    with pytest.raises(ValueError, match="finite"):
        Detections.of([0], [0], [[0, 0, 1, np.nan]], [0.5])
    with pytest.raises(ValueError, match="finite"):
        Detections.of([0], [0], [[0, 0, 1, 1]], [np.inf])
    with pytest.raises(ValueError, match="belong together"):
        References.of([0, 1], [0], [[0, 0, 1, 1]])
    with pytest.raises(ValueError, match="scores"):
        Detections.of([0], [0], [[0, 0, 1, 1]], [0.5, 0.6])


def pycocotools_table(references: References, detections: Detections) -> np.ndarray:
    """(classes, thresholds) average precision by the authority; NaN where it says -1."""
    coco, cocoeval = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    images = sorted({*references.image.tolist(), *detections.image.tolist()})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = {
            "images": [{"id": int(image)} for image in images],
            "categories": [{"id": place + 1} for place in range(len(CLASSES))],
            "annotations": [
                {
                    "id": place + 1,
                    "image_id": int(image),
                    "category_id": int(label) + 1,
                    "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                    "area": float((box[2] - box[0]) * (box[3] - box[1])),
                    "iscrowd": int(crowd),
                }
                for place, (image, label, box, crowd) in enumerate(
                    zip(references.image, references.label, references.box, references.crowd, strict=True)
                )
            ],
        }
        truth.createIndex()
        found = truth.loadRes(
            np.column_stack(
                [
                    detections.image,
                    detections.box[:, :2],
                    detections.box[:, 2:] - detections.box[:, :2],
                    detections.score,
                    detections.label + 1,
                ]
            )
        )
        judge = cocoeval.COCOeval(truth, found, "bbox")
        judge.evaluate()
        judge.accumulate()
    precision = judge.eval["precision"][:, :, :, 0, -1]  # thresholds, recalls, classes
    return np.where(precision[:, 0] < 0, np.nan, precision.mean(axis=1)).T


def _cross_check(cases: int) -> None:
    for seed in range(cases):
        references, detections = scene(seed, per_image=float(np.random.default_rng(seed).choice([1, 4, 12])))
        if seed % 3 == 0:
            crowd = np.random.default_rng(seed).random(references.image.size) < 0.15
            references = References.of(references.image, references.label, references.box, crowd)
        if detections.score.size == 0:
            continue
        ours = coco_ap(references, detections, CLASSES, COCO_THRESHOLDS).table
        np.testing.assert_allclose(ours, pycocotools_table(references, detections), atol=1e-9)


def test_cross_check_with_pycocotools() -> None:
    _cross_check(25)


@pytest.mark.slow
def test_cross_check_with_pycocotools_on_1000_cases() -> None:
    _cross_check(1000)


def test_cross_check_of_the_limit_of_100() -> None:
    generator = np.random.default_rng(0)
    references, _ = scene(1)
    n = 900
    chosen = generator.integers(0, references.image.size, n)
    boxes = references.box[chosen] + generator.normal(0, 1.5, (n, 4))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 0.5)
    detections = Detections.of(np.zeros(n), references.label[chosen] * 0, boxes, generator.random(n))
    expected = pycocotools_table(references, detections)
    np.testing.assert_allclose(
        coco_ap(references, detections, CLASSES, COCO_THRESHOLDS).table, expected, atol=1e-9
    )


@pytest.mark.parametrize("pairs", [1, 7, 50])
def test_pairs_may_be_looked_at_in_blocks_of_any_size(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    references, detections = scene(3)
    whole = every_metric(references, detections)
    monkeypatch.setattr("evaluator.metrics.boxes._BLOCK_PAIRS", pairs)
    assert every_metric(references, detections) == whole
