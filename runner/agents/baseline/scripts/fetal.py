"""Seven tissues of the fetal brain in T2-weighted MRI: brightness classes, then place.

Fluid is brightest, white matter, not yet myelinated, is next, grey matter is darkest. Arrays are in RAS order.
"""

import numpy as np
from scipy import ndimage as ndi
from segmentation import closed, grow, largest, opened
from skimage.filters import threshold_multiotsu
from volumes import as_result, describe, describe_result, ids_by_name, inspect, load, save

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

CORTEX_MM, SMALL_HEAD_MM = 3.2, 30.0


def evened(item):
    """The volume with slow changes of brightness taken out, estimated on the head alone."""
    data, spacing = item["data"], item["spacing"]
    head = ndi.binary_fill_holes(largest(data > 0.15 * np.percentile(data[data > 0], 90)))
    return np.where(head, data / np.percentile(data[head], 90), 0), head, spacing


def frame_of(head, spacing):
    """Coordinates in units of the head's half size: x to the right, y to the front, z up; and half its width in mm."""
    axes, halves = [], []
    for axis in range(3):
        places = np.nonzero(head.any(axis=tuple({0, 1, 2} - {axis})))[0]
        middle, half = (places[0] + places[-1]) / 2, (places[-1] - places[0]) / 2
        axes.append(
            ((np.arange(head.shape[axis]) - middle) / half).reshape(
                [-1 if i == axis else 1 for i in range(3)]
            )
        )
        halves.append(half * spacing[axis])
    return np.broadcast_arrays(*axes), halves[0]


def fluids(image, head, spacing):
    """Fluid around the brain and fluid inside of it, and what the skull holds."""
    inner = ndi.binary_erosion(head, iterations=max(1, round(2.5 / spacing.min())))
    tissue = ndi.gaussian_filter(image, 0.4)
    low, high = threshold_multiotsu(tissue[inner], classes=3)
    fluid = head & (tissue > high)
    shell = largest(opened(fluid, spacing.max(), spacing) | (fluid & ~inner))
    outer = largest(fluid & ndi.binary_propagation(shell & fluid, mask=fluid))
    holds = closed(outer, 8.0, spacing)
    for k in range(holds.shape[2]):
        holds[:, :, k] = ndi.binary_fill_holes(holds[:, :, k])
    return outer, fluid & holds & ~outer, holds, tissue, low


def by_rules(item):
    image, head, spacing = evened(item)
    (x, y, z), half = frame_of(head, spacing)
    outer, ventricles, holds, tissue, low = fluids(image, head, spacing)
    brain = holds & ~outer & ~ventricles
    border = (np.median(tissue[brain & (tissue > low)]) + np.median(tissue[brain & (tissue <= low)])) / 2
    dark = brain & (tissue < border)
    behind_below = (z < -0.3) & (y < -0.12)
    stem = dark & (np.abs(x) < 0.25) & (z < -0.18) & (y < 0.15) & (y > -0.42 - 0.1 * z)
    cerebellum = largest(opened(dark & behind_below & ~stem & (z < -0.33), spacing.max(), spacing))
    surface = ndi.distance_transform_edt(~outer, sampling=spacing)
    deep = (
        dark
        & ~stem
        & ~cerebellum
        & (surface > 0.16 * half)
        & (np.abs(x) < 0.6)
        & (np.abs(y) < 0.55)
        & (z > -0.45)
    )
    deep = largest(opened(deep, 1.5 * spacing.max(), spacing)) | opened(deep, 2 * spacing.max(), spacing)
    return label_map(
        item, brain, outer, ventricles, dark & ~stem & ~cerebellum & ~deep, cerebellum, deep, stem
    )


def label_map(item, brain, outer, ventricles, grey, cerebellum, deep, stem):
    ids, labels = ids_by_name(item["task"]), np.zeros(brain.shape, np.uint8)
    layers = {
        "WM": brain,
        "eCSF": outer,
        "LV": ventricles,
        "GM": grey,
        "SGM": deep,
        "CBM": cerebellum,
        "BS": stem,
    }
    for name, mask in layers.items():
        labels[mask] = ids[name]
    return as_result(item, dseg=labels)


def by_brightness(item):
    image, head, spacing = evened(item)
    outer, ventricles, holds, tissue, low = fluids(image, head, spacing)
    brain, none = holds & ~outer & ~ventricles, np.zeros(head.shape, bool)
    return label_map(item, brain, outer, ventricles, brain & (tissue < low), none, none, none)


def by_depth(item):
    image, head, spacing = evened(item)
    outer, ventricles, holds, _, _ = fluids(image, head, spacing)
    brain, none = holds & ~outer & ~ventricles, np.zeros(head.shape, bool)
    depth = ndi.distance_transform_edt(brain | ventricles, sampling=spacing)
    return label_map(item, brain, outer, ventricles, brain & (depth < CORTEX_MM), none, none, none)


METHODS = {"rules": by_rules, "brightness": by_brightness, "depth": by_depth}


def quality(item, result, _predict):
    """The share of the seven tissues found, and how much darker grey matter is than white and white than fluid."""
    image, _, spacing = evened(item)
    ids, labels = ids_by_name(item["task"]), result["files"]["dseg.nii.gz"]
    found = sum((labels == value).any() for value in ids.values()) / len(ids)
    levels = [
        np.median(image[labels == ids[name]]) if (labels == ids[name]).any() else 0.0
        for name in ("GM", "WM", "eCSF")
    ]
    steps = np.clip(np.diff(levels) / 0.15, 0, 1)
    inside = grow(labels == ids["WM"], CORTEX_MM, spacing) & (labels == ids["GM"])
    wrapped = inside.sum() / max(1, (labels == ids["GM"]).sum())
    return float((found + steps.mean() + wrapped) / 3)
