"""The left atrium in bright-blood MR: blood by brightness, cut at its necks; the pool before the spine is taken.

Arrays are in RAS order, as in ``segmentation.py``, whose reader and morphology are used here.
"""

import labelmaps
import numpy as np
import segmentation
from scipy import ndimage as ndi
from segmentation import closed, grow, largest, opened, shrink
from skimage.feature import peak_local_max
from skimage.measure import regionprops
from skimage.segmentation import watershed

DEPTH = 0.4
"""Where between back (0) and front (1) of the chest the middle of the atrium lies."""
ATRIUM_ML, RADII_MM = 75.0, (30.0, 20.0, 24.0)
CHAMBER_MM = 14.0
"""Summits of the distance to the wall that are nearer to each other than this belong to one chamber."""


def load(folder, task):
    return segmentation.load(folder, task) | {"task": task}


def describe(item):
    segmentation.describe(item)
    print("signal without a unit; percentiles", np.percentile(item["ct"], (1, 50, 99)).round())


def describe_result(result):
    for name, mask in result["masks"].items():
        print(f"{name}: {mask.sum()} voxels")


def frame(item):
    """Body, blood, and the point where the atrium is expected (mm); made once a case."""
    if "chest" not in item:
        calm, spacing = item["calm"], item["spacing"]
        levels = labelmaps.signal_levels(calm[::2, ::2, ::2], 4)
        body = filled(largest(closed(calm > levels[0] / 2, 6.0, spacing)))
        inner = shrink(body, 30.0, spacing)
        blood = inner & (calm > levels[2])
        seen = np.nonzero(body if body.any() else ~body)
        x, y, z = (axis * step for axis, step in zip(seen, spacing, strict=True))
        low, high = np.percentile(y, (1, 99))
        middle = np.array([np.median(x), low + DEPTH * (high - low), np.median(z)])
        item["chest"] = {"body": body, "inner": inner, "blood": blood, "middle": middle, "level": levels[2]}
    return item["chest"]


def filled(mask):
    planes = [ndi.binary_fill_holes(mask[:, :, k]) for k in range(mask.shape[2])]
    return np.stack(planes, axis=2)


def score(region, item):
    """How much a pool looks like the atrium by volume, place and shape; 0 to 1."""
    spacing = item["spacing"]
    away = (np.array(region.centroid) * spacing - frame(item)["middle"]) / (45.0, 22.0, 45.0)
    size = (np.array(region.bbox[3:]) - np.array(region.bbox[:3])) * spacing
    volume = region.area * np.prod(spacing) / 1000
    stretched = max(0.0, size[2] / max(size[0], size[1]) - 1.0)
    return float(np.exp(-((np.log(volume / ATRIUM_ML) / 0.9) ** 2) - (away**2).sum() - stretched**2))


def with_necks(item):
    """The blood is cut where it is narrow; the best chamber, and what of its veins is wide enough, is the atrium."""
    spacing, blood = item["spacing"], frame(item)["blood"]
    depth = ndi.gaussian_filter(ndi.distance_transform_edt(blood, sampling=spacing), 2.0 / spacing)
    apart = max(1, int(CHAMBER_MM / spacing.min()))
    seeds = np.zeros(blood.shape, int)
    for number, place in enumerate(peak_local_max(depth, min_distance=apart, threshold_abs=5.0), 1):
        seeds[tuple(place)] = number
    chambers = watershed(-depth, seeds, mask=blood)
    best = max(regionprops(chambers), key=lambda region: score(region, item), default=None)
    chosen = chambers == best.label if best is not None else np.zeros_like(blood)
    return as_result(item, opened(largest(chosen), 3.0, spacing))


def with_pool(item):
    """The component of the blood that fits best, uncut."""
    marks = ndi.label(opened(frame(item)["blood"], 5.0, item["spacing"]))[0]
    best = max(regionprops(marks), key=lambda region: score(region, item), default=None)
    return as_result(item, marks == best.label if best is not None else np.zeros(marks.shape, bool))


def with_place(item):
    """An ellipsoid of an adult's size where the atrium is expected, whatever the brightness."""
    axes = np.ogrid[tuple(map(slice, item["ct"].shape))]
    level = sum(
        ((axis * step - centre) / radius) ** 2
        for axis, step, centre, radius in zip(
            axes, item["spacing"], frame(item)["middle"], RADII_MM, strict=True
        )
    )
    return as_result(item, level < 1)


def as_result(item, mask):
    return {"masks": {"left_atrium": mask}, "item": item}


METHODS = {"necks": with_necks, "pool": with_pool, "place": with_place}


def quality(item, result, _predict):
    """Volume, place and shape of an atrium, bright inside and darker around."""
    mask = result["masks"]["left_atrium"]
    if not mask.any():
        return 0.0
    region = regionprops(mask.astype(np.uint8))[0]
    bright = (item["calm"][mask] > frame(item)["level"]).mean()
    around = grow(mask, 6.0, item["spacing"]) & ~grow(mask, 2.0, item["spacing"])
    darker = (item["calm"][around] < frame(item)["level"]).mean()
    return float((score(region, item) + bright + darker) / 3)


def save(result, folder, task):
    labelmaps.save(result["masks"], result["item"], folder, task)


def inspect(item, folder, task, show):
    return labelmaps.inspect(item, folder, task, show, {"left_atrium": (10, 400)})
