"""Frame findings on a frontal chest film: outlines of the lungs first, then what is too wide, too dense or too dark."""

import chest
import numpy as np
from films import describe, describe_result, frame, inspect, load, make_box, quality, save, tidy
from PIL import Image
from scipy import ndimage as ndi
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

HEART, AORTA, FLUID, AIR = "Cardiomegaly", "Aortic enlargement", "Pleural effusion", "Pneumothorax"
PATCH, SPOT = "Consolidation", "Nodule/Mass"


def standard(item):
    """The film at the width that the measures are made for, and the factor back to the original's pixels."""
    grey = item["grey"]
    size = (chest.WIDTH, max(1, round(grey.shape[0] * chest.WIDTH / grey.shape[1])))
    small = Image.fromarray(grey.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
    return np.asarray(small, dtype=np.float32), grey.shape[1] / chest.WIDTH


def frame_of(grey):
    """Lungs by side, levels of air and of solid tissue, first and last row of the lungs; None without lungs."""
    if not chest.is_frontal(grey):
        return None
    pair = sorted(chest.lungs_of(grey), key=lambda lung: np.nonzero(lung)[1].mean())
    both = pair[0] | pair[1]
    rows = np.nonzero(both.any(axis=1))[0]
    middle = slice(chest.WIDTH // 2 - 30, chest.WIDTH // 2 + 30)
    return {
        "lungs": dict(zip(chest.SIDES, pair, strict=True)),
        "both": both,
        "air": float(np.median(grey[both])),
        "solid": float(np.median(grey[rows.mean().astype(int) : rows.max(), middle])),
        "top": int(rows.min()),
        "bottom": int(rows.max()),
        "middle": int(np.nonzero(both)[1].min() + np.nonzero(both)[1].max()) // 2,
    }


def shadow(grey, found):
    """First and last column of the bright run through the midline, for every row between the lungs."""
    bright = ndi.gaussian_filter(grey, 1.0) > found["air"] + 0.75 * (found["solid"] - found["air"])
    runs = {}
    for row in range(found["top"] + 5, found["bottom"]):
        gaps = np.nonzero(~bright[row])[0]
        left, right = gaps[gaps < found["middle"]], gaps[gaps > found["middle"]]
        if left.size and right.size:
            runs[row] = (int(left.max()) + 1, int(right.min()))
    return runs


def heart_box(grey, found):
    """Where the shadow is wider than half of the chest: from where it widens down to the diaphragm."""
    columns = np.nonzero(found["both"])[1]
    chest_width = columns.max() - columns.min()
    runs = shadow(grey, found)
    base = min(int(np.median(chest.base_of(found["lungs"][side], side, 0.3, 0.5))) for side in chest.SIDES)
    half = (found["top"] + base) // 2
    low = {row: run for row, run in runs.items() if half - 15 < row < base - 3}
    if not low:
        return []
    widths = {row: right - left for row, (left, right) in low.items()}
    ratio = np.percentile(list(widths.values()), 95) / chest_width
    if ratio < 0.5:
        return []
    narrow = np.percentile([right - left for row, (left, right) in runs.items() if row < half], 20)
    wide = [row for row, width in widths.items() if width > narrow + 0.25 * (max(widths.values()) - narrow)]
    sides = [low[row] for row in wide if widths[row] <= 1.05 * ratio * chest_width]
    left, right = min(side[0] for side in sides), max(side[1] for side in sides)
    return [make_box(HEART, (left, min(wide), right, base + 12), min(1.0, 0.5 + 2 * (ratio - 0.5)))]


def aorta_box(grey, found):
    """A bulge of the shadow above the heart towards the patient's left."""
    runs = shadow(grey, found)
    height = found["bottom"] - found["top"]
    upper = {
        row: right - found["middle"]
        for row, (_, right) in runs.items()
        if 0.08 < (row - found["top"]) / height < 0.5
    }
    if len(upper) < 10:
        return []
    usual = np.percentile(list(upper.values()), 20)
    most = max(upper.values())
    rows = [row for row, reach in upper.items() if reach > usual + 0.3 * (most - usual)]
    bulge = most - usual
    if bulge < 0.075 * chest.WIDTH or len(rows) > 0.6 * len(upper):
        return []
    corners = (found["middle"] - 4, min(rows) - 4, found["middle"] + most, max(rows) + 4)
    return [make_box(AORTA, corners, min(1.0, bulge / 60))]


def fluid_boxes(found):
    """A lung that ends higher at its outer edge: the box reaches down to where the other lung ends."""
    boxes = []
    for side in chest.SIDES:
        lung = found["lungs"][side]
        blunt = chest.blunting(lung, side)
        if blunt > 0:
            x1, _, x2, _ = frame(lung)
            edge = chest.base_of(lung, side, 0.0, 0.25).min()
            boxes.append(make_box(FLUID, (x1, edge, x2, found["bottom"] + 5), min(1.0, 0.5 + 4 * blunt)))
    return boxes


def air_boxes(grey, found):
    """Air without vessels in the outer part of a lung: the box goes around the whole lung."""
    weight = ndi.gaussian_filter(found["both"].astype(float), 4)
    mean = ndi.gaussian_filter(grey * found["both"], 4) / np.maximum(weight, 1e-3)
    boxes = []
    for side in chest.SIDES:
        dark = found["lungs"][side] & (mean < 0.68 * found["air"])
        share = dark.sum() / found["lungs"][side].sum()
        if share > 0.08:
            boxes.append(make_box(AIR, frame(opening(dark, disk(2)) | dark), min(1.0, 0.4 + share)))
    return boxes


def patch_boxes(grey, found):
    """Regions of a lung field denser than lung and less dense than the heart."""
    smooth = ndi.gaussian_filter(grey, 2.5)
    level = (smooth - found["air"]) / (found["solid"] - found["air"])
    boxes = []
    for side in chest.SIDES:
        field = chest.field_of(found, side)
        if chest.blunting(found["lungs"][side], side) > 0:
            continue
        dense = opening(field & (level > 0.5) & (level < 0.93), disk(7))
        for region in regionprops(label(dense)):
            share = region.area / field.sum()
            if share > 0.045:
                top, left, bottom, right = region.bbox
                boxes.append(
                    make_box(PATCH, (left - 2, top - 2, right + 2, bottom + 2), min(1.0, 0.4 + 3 * share))
                )
    return boxes


def spot_boxes(grey, found):
    """Small round spots as bright as bone that the lung surrounds."""
    smooth, boxes = ndi.gaussian_filter(grey, 1.0), []
    for side in chest.SIDES:
        lung = found["lungs"][side]
        holes = label(ndi.binary_fill_holes(lung) & ~lung)
        for region in regionprops(holes, intensity_image=smooth):
            height, width = region.image.shape
            fill = region.area / (width * height)
            if (
                4 <= width <= 30
                and 4 <= height <= 30
                and fill > 0.55
                and region.intensity_max > 0.9 * found["solid"]
            ):
                boxes.append(make_box(SPOT, frame_in(region.bbox, 1), 0.5 + 0.5 * fill))
    return boxes


def frame_in(bbox, margin):
    top, left, bottom, right = bbox
    return left + margin, top + margin, right - margin, bottom - margin


def outlines(item):
    """Everything that can be told from the outlines and the levels inside of them."""
    grey, factor = standard(item)
    found = frame_of(grey)
    if found is None:
        return []
    boxes = heart_box(grey, found) + aorta_box(grey, found) + fluid_boxes(found) + air_boxes(grey, found)
    return back(boxes + patch_boxes(grey, found) + spot_boxes(grey, found), factor, item)


def heart_only(item):
    """The heart alone."""
    grey, factor = standard(item)
    found = frame_of(grey)
    return [] if found is None else back(heart_box(grey, found), factor, item)


def asymmetry(item):
    """What differs from the mirrored film: denser than its mirror image is a patch or fluid, darker is air."""
    grey, factor = standard(item)
    found = frame_of(grey)
    if found is None:
        return []
    smooth = ndi.gaussian_filter(grey, 4)
    axis = 2 * found["middle"] - np.arange(grey.shape[1])
    mirrored = smooth[:, np.clip(axis, 0, grey.shape[1] - 1)]
    level = (smooth - mirrored) / (found["solid"] - found["air"])
    fields = chest.field_of(found, "right") | chest.field_of(found, "left")
    boxes = []
    for name, mask in ((PATCH, level > 0.45), (AIR, level < -0.3)):
        for region in regionprops(label(opening(mask & fields, disk(6)))):
            if region.area > 0.03 * fields.sum():
                low = region.centroid[0] > 0.75 * found["bottom"]
                kind = FLUID if name == PATCH and low else name
                boxes.append(make_box(kind, frame_in(region.bbox, 0), 0.5))
    return back(boxes, factor, item)


def back(boxes, factor, item):
    """From the standard width to the original's pixels."""
    for box in boxes:
        box |= {key: box[key] * factor for key in ("x1", "y1", "x2", "y2")}
    return tidy(boxes, item)


METHODS = {"outlines": outlines, "asymmetry": asymmetry, "heart": heart_only}
