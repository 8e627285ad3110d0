"""Lungs and airways in chest CT: air inside the body, and growth from the trachea that steps back from leaks.

Arrays are in RAS order, see `volumes`.
"""

import numpy as np
from scipy import ndimage as ndi
from segmentation import closed, grow
from volumes import as_result, components, describe, describe_result, ids_by_name, inspect, load, save

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

AIR_HU, TUBE_HU, WALL_HU, FIXED_HU = -400.0, -750.0, -550.0, -950.0
LADDER_HU = range(-980, -740, 10)
LEAK_RATIO, LARGEST_TREE_ML = 1.35, 220.0
SMALLEST_LUNG_ML = 150.0
OUTSIDE_SHARE, LUNG_HU = 0.02, -870.0


def inner_air(ct):
    """Air that is not around the patient: outside air lies along the image's sides, a lung at most touches them."""
    marks, _ = ndi.label(ct < AIR_HU)
    sides = np.concatenate([side.ravel() for side in (marks[0], marks[-1], marks[:, 0], marks[:, -1])])
    sizes = np.bincount(marks.ravel())
    outside = np.bincount(sides, minlength=sizes.size) > OUTSIDE_SHARE * sizes
    outside[0] = True
    return ~outside[marks]


def trachea_seed(item):
    """The middle of the roundest, darkest airy spot near the midline of any slice but the lowest ones."""
    ct, spacing = item["data"], item["spacing"]
    air = inner_air(ct)
    middle = ndi.center_of_mass(ct > AIR_HU)[0]
    best = (0.0, None)
    for k in range(ct.shape[2] // 5, ct.shape[2]):
        marks, _ = ndi.label(air[:, :, k] & (ct[:, :, k] < TUBE_HU))
        for number, box in enumerate(ndi.find_objects(marks), 1):
            spot = marks[box] == number
            area = spot.sum() * spacing[0] * spacing[1]
            size = np.array(spot.shape) * spacing[:2]
            aside = abs((box[0].start + box[0].stop) / 2 - middle) * spacing[0]
            x, y = (round(c) for c in ndi.center_of_mass(marks == number))
            dark = np.clip((LUNG_HU - ct[x, y, k]) / 60, 0, 1)
            score = dark * spot.mean() * size.min() / size.max() * np.exp(-((aside / 25) ** 2))
            if 100 < area < 700 and score > best[0]:
                best = (score, (x, y, k))
    return best[1]


def reached(ct, seed, threshold):
    """The connected region below a threshold that holds the seed; nothing without one."""
    marks, _ = ndi.label(ct < threshold)
    found = seed is not None and marks[seed] > 0
    return (marks == marks[seed]) if found else np.zeros(ct.shape, bool)


def careful_tree(item, seed):
    """Raise the threshold step by step; where the volume jumps, the lung was entered and the step before is taken."""
    inside = np.where(inner_air(item["data"]), item["data"], 0)
    tree, volume = np.zeros(inside.shape, bool), 0.0
    for threshold in LADDER_HU:
        region = reached(inside, seed, threshold)
        ml = region.sum() * np.prod(item["spacing"]) / 1000
        if ml > LARGEST_TREE_ML or (volume > 12 and ml > LEAK_RATIO * volume):
            break
        tree, volume = region, ml
    return tree


def lungs_of(item, tree):
    """The large airy pieces without the tree, closed over vessels, bronchial walls and small masses."""
    spacing = item["spacing"]
    airy = inner_air(item["data"]) & ~grow(tree, 1.2 * spacing.max(), spacing)
    lungs = np.logical_or.reduce(
        components(airy, SMALLEST_LUNG_ML, spacing)[:2] or [np.zeros(tree.shape, bool)]
    )
    whole = closed(lungs, 9.0, spacing)
    for k in range(whole.shape[2]):
        whole[:, :, k] = ndi.binary_fill_holes(whole[:, :, k])
    return whole


def with_walls(item, tree, lungs):
    """Voxels at the border of the tree that are mostly air count too, but none of the lung's own."""
    rim = ndi.binary_dilation(tree) & (item["data"] < WALL_HU)
    return ndi.binary_fill_holes(tree | (rim & ~lungs))


def label_map(item, tree):
    ids = ids_by_name(item["task"])
    lungs = lungs_of(item, tree)
    tree = with_walls(item, tree, lungs)
    labels = np.zeros(tree.shape, np.uint8)
    labels[lungs] = ids["lung"]
    labels[tree] = ids["airway"]
    return as_result(item, dseg=labels)


def with_leak_control(item):
    return label_map(item, careful_tree(item, trachea_seed(item)))


def with_fixed_threshold(item):
    inside = np.where(inner_air(item["data"]), item["data"], 0)
    return label_map(item, reached(inside, trachea_seed(item), FIXED_HU))


def with_lungs_only(item):
    return label_map(item, np.zeros(item["data"].shape, bool))


METHODS = {"careful": with_leak_control, "fixed": with_fixed_threshold, "lungs": with_lungs_only}


def quality(item, result, _predict):
    """Plausible volumes, one connected tree, and how far it reaches out to both sides of the lungs."""
    ids, labels, spacing = ids_by_name(item["task"]), result["files"]["dseg.nii.gz"], item["spacing"]
    lungs, tree = labels == ids["lung"], labels == ids["airway"]
    ml = tree.sum() * np.prod(spacing) / 1000
    if not (lungs.any() and tree.any()):
        return 0.25 * float(lungs.any())
    span = [np.ptp(np.nonzero(mask)[0]) for mask in (tree, lungs)]
    pieces = components(tree, 0.0, spacing)
    return float(
        (1 + (15 < ml < LARGEST_TREE_ML) + pieces[0].sum() / tree.sum() + min(1.0, span[0] / span[1])) / 4
    )
