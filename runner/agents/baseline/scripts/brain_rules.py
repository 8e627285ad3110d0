"""Tell brain tumours in one slice apart by where the brightest lump lies and how even it is."""

import numpy as np
from fuzzy import ramp
from scipy import ndimage as ndi
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

CLASSES = ("glioma", "meningioma", "notumor", "pituitary")


def head_of(grey):
    """The head without the air around it."""
    smooth = ndi.gaussian_filter(grey, 2)
    head = ndi.binary_fill_holes(smooth > 0.4 * threshold_otsu(smooth))
    marks = label(head)
    return marks == (1 + np.argmax(np.bincount(marks.ravel())[1:])) if marks.any() else head


def measure(rgb):
    """Size, place and evenness of the brightest lump within the skull, in shares of the head's half width."""
    grey = ndi.gaussian_filter(rgb.mean(axis=2), 1.0)
    head = head_of(grey)
    if not head.any():
        return {"share": 0.0}
    rows, columns = np.nonzero(head.any(axis=1))[0], np.nonzero(head.any(axis=0))[0]
    half = max(np.ptp(columns) / 2, 1)
    depth = ndi.distance_transform_edt(head) / half
    inside = depth > 0.2
    if inside.sum() < 200:
        return {"share": 0.0}
    level = float(np.median(grey[inside]))
    spread = float(np.median(np.abs(grey[inside] - level)))
    bright = opening((grey > level + max(4 * spread, 0.25 * level)) & (depth > 0.15), disk(1))
    lumps = regionprops(label(ndi.binary_closing(bright, disk(3))))
    if not lumps:
        return {"share": 0.0}
    lump = max(lumps, key=lambda one: one.area_filled)
    row, column = lump.centroid
    return {
        "share": float(lump.area_filled / head.sum()),
        "aside": float(abs(column - (columns.min() + columns.max()) / 2) / half),
        "height": float((row - rows.min()) / max(np.ptp(rows), 1)),
        "depth": float(np.percentile(depth[lump.slice][lump.image], 2)),
        "hollow": float(1 - lump.area / lump.area_filled),
        "solid": float(lump.area_filled / max(lump.area_convex, 1)),
    }


def scores(rgb):
    found = measure(rgb)
    there = ramp(found["share"], 0.003, 0.012)
    if there == 0:
        return dict.fromkeys(CLASSES, 0.0) | {"notumor": 1.0}
    even = ramp(found["hollow"], 0.1, 0.02) * ramp(found["solid"], 0.75, 0.92)
    middle = ramp(found["aside"], 0.25, 0.1) * ramp(abs(found["height"] - 0.45), 0.25, 0.12)
    outside = ramp(found["depth"], 0.3, 0.2)
    return {
        "glioma": there * max(1 - even, 0.4 * (1 - outside) * (1 - middle)),
        "meningioma": there * outside * (0.3 + 0.7 * even) * (1 - 0.8 * middle),
        "notumor": 1 - there,
        "pituitary": there * middle * (0.3 + 0.7 * even) * (1 - outside),
    }
