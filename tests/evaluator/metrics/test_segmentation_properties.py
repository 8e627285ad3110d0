"""Mask metrics: laws they must obey on any input, and agreement with plain definitions and with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from evaluator.metrics.nearest import distances_to_nearest
from evaluator.metrics.segmentation import (
    MAX_LABEL,
    SurfaceTooLarge,
    count_labels,
    dice,
    dice_per_label,
    lesion_f1,
    surface,
    surface_per_label,
    volume_error_ml,
)

SHAPES = hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=9)
SPACING = (0.7, 1.3, 2.5)


def label_maps(highest: int = 3) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    """Two blobby label maps of one shape."""

    def pair(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
        one = hnp.arrays(np.uint8, shape, elements=st.integers(0, highest), fill=st.just(0))
        return st.tuples(one, one)

    return SHAPES.flatmap(pair)


def spacing_of(array: np.ndarray) -> tuple[float, ...]:
    return SPACING[: array.ndim]


def plain_surface(
    reference: np.ndarray, prediction: np.ndarray, spacing: tuple[float, ...], tolerance: float
) -> tuple:
    """The definition, written down directly with scipy: erosion and distance transform over the whole volume."""
    if not reference.any() and not prediction.any():
        return 1.0, 0.0
    if not reference.any() or not prediction.any():
        return 0.0, float(np.linalg.norm(np.multiply(spacing, reference.shape)))
    cross = ndimage.generate_binary_structure(reference.ndim, 1)
    borders = [
        mask & ~ndimage.binary_erosion(mask, cross, border_value=0) for mask in (reference, prediction)
    ]
    maps = [ndimage.distance_transform_edt(~border, sampling=spacing) for border in borders]
    distances = [maps[1][borders[0]], maps[0][borders[1]]]
    near = sum(int((d <= tolerance + 1e-9).sum()) for d in distances)
    return near / sum(d.size for d in distances), max(float(np.percentile(d, 95)) for d in distances)


@settings(max_examples=80, deadline=None)
@given(label_maps())
def test_dice_agrees_with_counting(pair: tuple[np.ndarray, np.ndarray]) -> None:
    reference, prediction = pair
    for label, value in dice_per_label(reference, prediction, [1, 2, 3, 9]).items():
        ours, theirs = reference == label, prediction == label
        if ours.any() or theirs.any():
            assert value == pytest.approx(2 * (ours & theirs).sum() / (ours.sum() + theirs.sum()))
            assert value == pytest.approx(dice(ours, theirs))
        else:
            assert value is None


@settings(max_examples=80, deadline=None)
@given(label_maps(), st.sampled_from([0.0, 0.7, 1.3, 2.0]))
def test_surface_agrees_with_distance_transform(
    pair: tuple[np.ndarray, np.ndarray], tolerance: float
) -> None:
    reference, prediction = pair
    spacing = spacing_of(reference)
    found = surface_per_label(reference, prediction, [1, 2, 3], spacing, tolerance)
    for label, value in found.items():
        expected = plain_surface(reference == label, prediction == label, spacing, tolerance)
        assert tuple(value) == pytest.approx(expected, abs=1e-9)
        assert tuple(surface(reference == label, prediction == label, spacing, tolerance)) == pytest.approx(
            expected
        )


@settings(max_examples=60, deadline=None)
@given(label_maps())
def test_identity_is_best(pair: tuple[np.ndarray, np.ndarray]) -> None:
    mask = pair[0] > 0
    assert dice(mask, mask) == 1.0
    assert surface(mask, mask, spacing_of(mask), 0.0) == (1.0, 0.0)
    assert lesion_f1(mask, mask) == 1.0
    assert volume_error_ml(mask, mask, spacing_of(mask)) == 0.0
    assert all(value in (None, 1.0) for value in dice_per_label(pair[0], pair[0], [1, 2, 3]).values())


@settings(max_examples=60, deadline=None)
@given(label_maps())
def test_symmetry(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair[0] > 0, pair[1] > 0
    spacing = spacing_of(a)
    assert dice(a, b) == dice(b, a)
    assert surface(a, b, spacing, 1.0) == surface(b, a, spacing, 1.0)
    assert lesion_f1(a, b) == pytest.approx(lesion_f1(b, a))
    assert volume_error_ml(a, b, spacing) == -volume_error_ml(b, a, spacing)


@settings(max_examples=60, deadline=None)
@given(label_maps(), st.permutations([1, 2, 3]))
def test_relabelling_moves_the_scores_along(pair: tuple[np.ndarray, np.ndarray], names: list[int]) -> None:
    table = np.array([0, *names], dtype=np.uint8)
    reference, prediction = pair
    before = dice_per_label(reference, prediction, [1, 2, 3])
    after = dice_per_label(table[reference], table[prediction], names)
    assert [after[name] for name in names] == [before[label] for label in (1, 2, 3)]
    surfaces = surface_per_label(reference, prediction, [1, 2, 3], spacing_of(reference), 1.0)
    moved = surface_per_label(table[reference], table[prediction], names, spacing_of(reference), 1.0)
    assert [moved[name] for name in names] == [surfaces[label] for label in (1, 2, 3)]


@settings(max_examples=40, deadline=None)
@given(label_maps())
def test_axes_order_and_memory_layout_do_not_matter(pair: tuple[np.ndarray, np.ndarray]) -> None:
    reference, prediction = pair
    spacing = spacing_of(reference)
    plain = surface_per_label(reference, prediction, [1, 2], spacing, 1.0)
    fortran = surface_per_label(
        np.asfortranarray(reference), np.asfortranarray(prediction), [1, 2], spacing, 1.0
    )
    turned = surface_per_label(reference.T, prediction.T, [1, 2], spacing[::-1], 1.0)
    mixed = surface_per_label(np.asfortranarray(reference), prediction, [1, 2], spacing, 1.0)
    for label, expected in plain.items():
        for other in (fortran, turned, mixed):
            assert tuple(other[label]) == pytest.approx(tuple(expected), abs=1e-12)
    assert dice_per_label(np.asfortranarray(reference), prediction, [1, 2]) == dice_per_label(
        reference, prediction, [1, 2]
    )


def ball(radius: float, size: int = 31) -> np.ndarray:
    grid = np.indices((size,) * 3) - size // 2
    return (grid**2).sum(axis=0) <= radius**2


def test_erosion_and_distance_make_it_worse_step_by_step() -> None:
    reference = ball(11)
    eroded = [ndimage.binary_erosion(reference, iterations=n) if n else reference for n in range(6)]
    scores = [dice(reference, mask) for mask in eroded]
    found = [surface(reference, mask, (1, 1, 1), 1.0) for mask in eroded]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 6
    assert [s.nsd_voxel for s in found] == sorted((s.nsd_voxel for s in found), reverse=True)
    assert [s.hd95_directed_max for s in found] == sorted(s.hd95_directed_max for s in found)


def test_translation_of_both_changes_nothing() -> None:
    reference, prediction = ball(6), ndimage.binary_dilation(ball(5), iterations=2)
    moved = [np.roll(mask, (3, -4, 2), axis=(0, 1, 2)) for mask in (reference, prediction)]
    assert surface(reference, prediction, SPACING, 1.0) == pytest.approx(surface(*moved, SPACING, 1.0))


def test_one_side_empty_is_the_worst() -> None:
    mask = ball(3, 9)
    for pair in ((mask, np.zeros_like(mask)), (np.zeros_like(mask), mask)):
        assert dice(*pair) == 0.0
        assert surface(*pair, (1.0, 1.0, 2.0), 2.0) == (0.0, pytest.approx(9 * 6**0.5))
        assert lesion_f1(*pair) == 0.0


def test_brats_diagonal() -> None:
    mask = np.zeros((240, 240, 155), bool)
    mask[5, 5, 5] = True
    assert surface(mask, np.zeros_like(mask), (1, 1, 1), 1.0).hd95_directed_max == pytest.approx(
        373.13, abs=5e-3
    )


def test_noise_meets_the_guard() -> None:
    noise = np.random.default_rng(0).integers(0, 3, (60, 60, 60), np.uint8)
    with pytest.raises(SurfaceTooLarge, match="noise"):
        surface_per_label(noise, noise, [1, 2], (1, 1, 1), 1.0, max_border_voxels=10_000)
    with pytest.raises(SurfaceTooLarge):
        surface(noise > 1, noise > 0, (1, 1, 1), 1.0, max_border_voxels=10_000)


def test_lesions_are_connected_through_corners() -> None:
    reference = np.zeros((6, 6, 6), bool)
    reference[0, 0, 0] = reference[1, 1, 1] = True  # one lesion
    reference[4, 4, 4] = True  # another
    prediction = np.zeros_like(reference)
    prediction[1, 1, 1] = True
    assert lesion_f1(reference, prediction) == pytest.approx(2 / 3)
    prediction[0, 5, 5] = True  # a false lesion
    assert lesion_f1(reference, prediction) == pytest.approx(0.5)


def test_labels_above_255_and_wide_label_sets() -> None:
    generator = np.random.default_rng(0)
    reference = generator.integers(0, 900, (40, 40, 5)).astype(np.uint16)
    prediction = np.where(generator.random(reference.shape) < 0.5, reference, 0).astype(np.uint16)
    for label, value in dice_per_label(reference, prediction, [1, 300, 899, MAX_LABEL]).items():
        ours, theirs = reference == label, prediction == label
        total = ours.sum() + theirs.sum()
        assert value == (pytest.approx(2 * (ours & theirs).sum() / total) if total else None)


def test_inputs_that_cannot_be_label_maps() -> None:
    good = np.zeros((3, 3), np.int16)
    with pytest.raises(ValueError, match="shapes differ"):
        count_labels(good, good[:2])
    with pytest.raises(ValueError, match="integer arrays"):
        count_labels(good.astype(float), good.astype(float))
    with pytest.raises(ValueError, match=r"0\.\.65535"):
        count_labels(good - 1, good)
    with pytest.raises(ValueError, match="shapes differ"):
        dice(np.zeros((2, 2), bool), np.zeros((2, 3), bool))


def _cross_check_dice(cases: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(1)
    for _ in range(cases):
        reference, prediction = generator.integers(0, 5, (2, 6, 7, 3), np.uint8)
        expected = metrics.f1_score(
            reference.ravel(), prediction.ravel(), labels=[1, 2, 3, 4], average=None, zero_division=1
        )
        ours = dice_per_label(reference, prediction, [1, 2, 3, 4])
        assert [1.0 if value is None else value for value in ours.values()] == pytest.approx(
            expected, abs=1e-9
        )


def _cross_check_surface(cases: int) -> None:
    generator = np.random.default_rng(2)
    for _ in range(cases):
        smooth = ndimage.gaussian_filter(generator.random((2, 14, 12, 9)), (0, 1.5, 1.5, 1.5))
        reference, prediction = smooth > np.quantile(smooth, generator.uniform(0.3, 0.8))
        if not (reference.any() and prediction.any()):
            continue
        spacing = tuple(generator.uniform(0.4, 4.0, 3))
        tolerance = float(generator.uniform(0, 4))
        expected = plain_surface(reference, prediction, spacing, tolerance)
        assert tuple(surface(reference, prediction, spacing, tolerance)) == pytest.approx(expected, abs=1e-6)


def test_cross_checks() -> None:
    _cross_check_dice(15)
    _cross_check_surface(40)


@pytest.mark.slow
def test_cross_checks_on_1000_cases() -> None:
    _cross_check_dice(1000)
    _cross_check_surface(1000)


@pytest.mark.parametrize("axes", [2, 3])
def test_nearest_voxels_near_and_far_are_those_of_all_pairs(axes: int) -> None:
    generator = np.random.default_rng(axes)
    for _ in range(60):
        shape = tuple(int(side) for side in generator.integers(1, 30, axes))
        spacing = generator.uniform(0.3, 5.0, axes)
        voxels = int(np.prod(shape))
        sides = [np.flatnonzero(generator.random(voxels) < generator.uniform(0, 0.2)) for _ in range(2)]
        start, end = (side if side.size else np.array([voxels - 1]) for side in sides)
        points = [np.stack(np.unravel_index(side, shape), axis=1) * spacing for side in (start, end)]
        expected = np.linalg.norm(points[0][:, None] - points[1][None], axis=2).min(axis=1)
        np.testing.assert_allclose(distances_to_nearest(start, end, shape, spacing), expected, atol=1e-9)
