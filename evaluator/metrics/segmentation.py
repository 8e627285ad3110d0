"""Overlap and surface metrics of label maps: every label in one pass over the volume.

Definitions: `dice` is 2|A∩B| / (|A|+|B|). Surfaces are sets of *border voxels*: foreground voxels with at
least one of their 6 (in 2-D: 4) face neighbours outside of the object, where everything outside of the volume
is outside of the object. `nsd_voxel` and `hd95_directed_max` follow Metrics Reloaded (Maier-Hein et al.,
Nature Methods 2024) on those border voxels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from evaluator.metrics.nearest import distances_to_nearest

LabelMap = NDArray[np.integer]
Mask = NDArray[np.bool_]

MAX_LABEL = 65_535
MAX_BORDER_VOXELS = 6_000_000
"""Border voxels of all labels of one map: 117 ellipsoid organs at 512x512x300 have 1.2 million, noise 78 million."""

TOLERANCE_SLACK_MM = 1e-9
"""Keeps a distance that equals the tolerance inside it despite float rounding."""

_SLAB_VOXELS = 1 << 20


class SurfaceTooLarge(Exception):
    """The border has more voxels than the guard allows: noise, not anatomy.

    And minutes of distance queries.
    """


class Surface(NamedTuple):
    """Agreement of two surfaces: ``nsd_voxel`` in [0, 1], ``hd95_directed_max`` in mm, >= 0."""

    nsd_voxel: float
    hd95_directed_max: float


def dice(reference_mask: Mask, prediction_mask: Mask) -> float:
    """Dice coefficient of two binary masks.

    Parameters
    ----------
    reference_mask, prediction_mask : bool arrays of one shape
        Any number of dimensions.

    Returns
    -------
    float
        In [0, 1]; 1 when both are empty, 0 when exactly one is.
    """
    _require_same_shape(reference_mask, prediction_mask)
    total = int(np.count_nonzero(reference_mask)) + int(np.count_nonzero(prediction_mask))
    if total == 0:
        return 1.0
    return 2.0 * int(np.count_nonzero(reference_mask & prediction_mask)) / total


def dice_per_label(
    reference: LabelMap, prediction: LabelMap, labels: Sequence[int]
) -> dict[int, float | None]:
    """Dice coefficient of every label, counted in one pass.

    Parameters
    ----------
    reference, prediction : integer arrays of one shape
        Label maps with values in 0..65535.
    labels : sequence of int
        Labels to report. Other values, the background included, count as "not this label".

    Returns
    -------
    dict of int to float or None
        In [0, 1]. None where the label is absent on both sides; 0 where it is present on one side only.
    """
    in_reference, in_prediction, in_both = count_labels(reference, prediction)
    result: dict[int, float | None] = {}
    for label in labels:
        total = in_reference[label] + in_prediction[label] if label < in_reference.size else 0
        result[label] = float(2.0 * in_both[label] / total) if total else None
    return result


def count_labels(
    reference: LabelMap, prediction: LabelMap
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Voxels of each label in the reference.

    In the prediction and in both at once (three arrays indexed by label).
    """
    _require_same_shape(reference, prediction)
    size = 1 + max(_largest_label(reference), _largest_label(prediction))
    if size > 512:
        return _count_separately(reference, prediction, size)
    # One table of pairs costs one bincount a slab instead of three; at 512 labels it still fits the cache.
    pairs = np.zeros(size * size, dtype=np.int64)
    for ref, pred in _slabs(reference, prediction):
        code = ref.astype(np.intp)
        code *= size
        code += pred
        pairs += np.bincount(code, minlength=size * size)
    table = pairs.reshape(size, size)
    return table.sum(axis=1), table.sum(axis=0), table.diagonal().copy()


def _count_separately(
    reference: LabelMap, prediction: LabelMap, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    counts = np.zeros((3, size), dtype=np.int64)
    for ref, pred in _slabs(reference, prediction):
        counts[0] += np.bincount(ref, minlength=size)
        counts[1] += np.bincount(pred, minlength=size)
        counts[2] += np.bincount(ref[ref == pred], minlength=size)
    return counts[0], counts[1], counts[2]


def surface(
    reference_mask: Mask,
    prediction_mask: Mask,
    spacing: Sequence[float],
    tolerance_mm: float,
    *,
    max_border_voxels: int = MAX_BORDER_VOXELS,
) -> Surface:
    """Normalised surface Dice and 95th percentile Hausdorff distance of two binary masks.

    Parameters
    ----------
    reference_mask, prediction_mask : bool arrays of one shape
    spacing : sequence of float
        Voxel size in mm, in array-axis order.
    tolerance_mm : float
        Distance up to which, inclusive, a border voxel counts as matched.
    max_border_voxels : int
        Guard against noise.

    Returns
    -------
    Surface
        Both empty: (1, 0). One empty: 0 and the diagonal of the volume, size times spacing, in mm.

    Raises
    ------
    SurfaceTooLarge
        A mask has more than ``max_border_voxels`` border voxels.
    """
    reference, prediction = (
        np.asarray(mask, dtype=bool).view(np.uint8) for mask in (reference_mask, prediction_mask)
    )
    found = surface_per_label(
        reference, prediction, [1], spacing, tolerance_mm, max_border_voxels=max_border_voxels
    )
    return found[1]


def surface_per_label(
    reference: LabelMap,
    prediction: LabelMap,
    labels: Sequence[int],
    spacing: Sequence[float],
    tolerance_mm: float | dict[int, float],
    *,
    max_border_voxels: int = MAX_BORDER_VOXELS,
) -> dict[int, Surface]:
    """`surface` of every label; the borders of all labels are found in one pass over each map.

    Parameters
    ----------
    reference, prediction : integer arrays of one shape
        Label maps with values in 0..65535, 0 being background.
    labels : sequence of int
        Labels to report, without 0.
    spacing : sequence of float
        Voxel size in mm, in array-axis order.
    tolerance_mm : float or dict of label to float
    max_border_voxels : int
        Guard: border voxels of all labels of one map together.

    Returns
    -------
    dict of int to Surface
        A label absent on both sides gets (1, 0).

    Raises
    ------
    SurfaceTooLarge
        The guard was hit.
    """
    _require_same_shape(reference, prediction)
    step = np.asarray(spacing, dtype=np.float64)
    diagonal = float(np.linalg.norm(step * np.asarray(reference.shape)))
    if reference.flags.f_contiguous and not reference.flags.c_contiguous:
        # Slabs must run along the slowest axis; the metrics do not depend on the order of the axes.
        reference, prediction, step = reference.T, prediction.T, step[::-1]
    box = _foreground_box(reference, prediction)
    reference, prediction = reference[box], prediction[box]
    wanted = np.zeros(MAX_LABEL + 1, dtype=bool)
    wanted[list(labels)] = True
    borders = [_borders(side, wanted, max_border_voxels) for side in (reference, prediction)]
    nothing = np.empty(0, dtype=np.int64)
    result: dict[int, Surface] = {}
    for label in labels:
        tolerance = tolerance_mm[label] if isinstance(tolerance_mm, dict) else tolerance_mm
        ours, theirs = (side.get(label, nothing) for side in borders)
        result[label] = _compare(ours, theirs, reference.shape, step, tolerance, diagonal)
    return result


def volume_error_ml(reference_mask: Mask, prediction_mask: Mask, spacing: Sequence[float]) -> float:
    """Signed volume difference, prediction minus reference, in millilitres (1 ml = 1000 mm^3)."""
    voxels = int(np.count_nonzero(prediction_mask)) - int(np.count_nonzero(reference_mask))
    return voxels * float(np.prod(np.asarray(spacing, dtype=np.float64))) / 1000.0


def lesion_f1(reference_mask: Mask, prediction_mask: Mask) -> float:
    """F1 over connected lesions: a lesion is found when at least one voxel of it is predicted.

    Parameters
    ----------
    reference_mask, prediction_mask : bool arrays of one shape
        Components are 26-connected (2-D: 8-connected).

    Returns
    -------
    float
        In [0, 1]. Recall counts reference lesions that are touched, precision counts predicted components
        that touch one, so one component over two lesions finds both. 1 when both are empty.
    """
    _require_same_shape(reference_mask, prediction_mask)
    neighbours = np.ones((3,) * reference_mask.ndim, dtype=bool)
    lesions, n_lesions = ndimage.label(reference_mask, structure=neighbours)
    found, n_found = ndimage.label(prediction_mask, structure=neighbours)
    if n_lesions == 0 or n_found == 0:
        return 1.0 if n_lesions == n_found else 0.0
    overlap = (lesions > 0) & (found > 0)
    recall = np.unique(lesions[overlap]).size / n_lesions
    precision = np.unique(found[overlap]).size / n_found
    return 0.0 if recall + precision == 0 else 2 * recall * precision / (recall + precision)


def _compare(
    ours: NDArray[np.int64],
    theirs: NDArray[np.int64],
    shape: tuple[int, ...],
    spacing: NDArray[np.float64],
    tolerance: float,
    diagonal: float,
) -> Surface:
    if ours.size == 0 and theirs.size == 0:
        return Surface(1.0, 0.0)
    if ours.size == 0 or theirs.size == 0:
        return Surface(0.0, diagonal)
    distances = tuple(
        distances_to_nearest(*pair, shape, spacing) for pair in ((ours, theirs), (theirs, ours))
    )
    within = sum(int(np.count_nonzero(side <= tolerance + TOLERANCE_SLACK_MM)) for side in distances)
    return Surface(
        nsd_voxel=within / (ours.size + theirs.size),
        hd95_directed_max=max(float(np.percentile(side, 95)) for side in distances),
    )


def _borders(labels: LabelMap, wanted: NDArray[np.bool_], limit: int) -> dict[int, NDArray[np.int64]]:
    """Flat indices of the border voxels of each wanted label."""
    plane = max(1, labels[:1].size)
    step = max(1, _SLAB_VOXELS // plane)
    places: list[NDArray[np.int64]] = []
    values: list[NDArray[np.integer]] = []
    total = 0
    for start in range(0, labels.shape[0], step):
        stop = min(start + step, labels.shape[0])
        edge = _edges(labels, start, stop)
        slab = labels[start:stop].ravel()
        flat = np.flatnonzero(edge)
        value = slab[flat]
        kept = wanted[value]
        places.append(flat[kept] + start * plane)
        values.append(value[kept])
        total += places[-1].size
        if total > limit:
            raise SurfaceTooLarge(f"more than {limit} border voxels: the mask looks like noise")
    if total == 0:
        return {}
    flat, value = np.concatenate(places), np.concatenate(values)
    order = np.argsort(value, kind="stable")
    found, first = np.unique(value[order], return_index=True)
    return {int(label): part for label, part in zip(found, np.split(flat[order], first[1:]), strict=True)}


def _edges(labels: LabelMap, start: int, stop: int) -> NDArray[np.bool_]:
    """Which voxels of planes ``start:stop`` touch another value, or the outside.

    Through a face (flattened).
    """
    low, high = max(start - 1, 0), min(stop + 1, labels.shape[0])
    around = labels[low:high]
    steps = np.zeros(around.shape, dtype=bool)
    for axis in range(around.ndim):
        moved, edge = np.moveaxis(around, axis, 0), np.moveaxis(steps, axis, 0)
        change = moved[1:] != moved[:-1]
        edge[1:] |= change
        edge[:-1] |= change
        if axis > 0:
            edge[0] = edge[-1] = True
    if start == 0:
        steps[0] = True
    if stop == labels.shape[0]:
        steps[-1] = True
    inner = slice(start - low, start - low + (stop - start))
    edges: NDArray[np.bool_] = (steps[inner] & (around[inner] != 0)).ravel()
    return edges


def _foreground_box(reference: LabelMap, prediction: LabelMap) -> tuple[slice, ...]:
    """The smallest box that holds every foreground voxel of both maps.

    What lies outside of it is background.
    """
    box = []
    for axis in range(reference.ndim):
        others = tuple(other for other in range(reference.ndim) if other != axis)
        used = np.flatnonzero(reference.any(axis=others) | prediction.any(axis=others))
        box.append(slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 0))
    return tuple(box)


def _slabs(reference: LabelMap, prediction: LabelMap) -> Iterator[tuple[LabelMap, LabelMap]]:
    """Flat pieces of both maps in the same voxel order.

    Small enough that a 64-bit copy of one stays in the cache.
    """
    if reference.flags.f_contiguous and not reference.flags.c_contiguous:
        reference, prediction = reference.T, prediction.T
    if reference.ndim == 0:
        reference, prediction = reference.reshape(1), prediction.reshape(1)
    step = max(1, _SLAB_VOXELS // max(1, reference[:1].size))
    for start in range(0, reference.shape[0], step):
        yield reference[start : start + step].ravel(), prediction[start : start + step].ravel()


def _largest_label(labels: LabelMap) -> int:
    if labels.size == 0:
        return 0
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"label maps must be integer arrays, found {labels.dtype}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high > MAX_LABEL:
        raise ValueError(f"labels must lie in 0..{MAX_LABEL}, found {low}..{high}")
    return high


def _require_same_shape(reference: NDArray[np.generic], prediction: NDArray[np.generic]) -> None:
    if reference.shape != prediction.shape:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
