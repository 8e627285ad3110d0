"""Measure a chest film by geometry and brightness. Sides are the patient's: the right lung is on the picture's left.

Films are brought to a width of 300 pixels first, so sizes below are in thirds of a percent of the film's width.
"""

import numpy as np
from PIL import Image
from scipy import ndimage as ndi
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening, white_tophat

WIDTH = 300
SIDES = ("right", "left")


def film(path):
    """Grey film of standard width, float 0..255."""
    image = Image.open(path).convert("L")
    height = max(1, round(image.height * WIDTH / image.width))
    return np.asarray(image.resize((WIDTH, height), Image.Resampling.BILINEAR), dtype=np.float32)


def lungs_of(grey):
    """The dark fields that do not reach the film's border, largest first: at most two masks."""
    smooth = ndi.gaussian_filter(grey, 1.5)
    dark = opening(smooth < threshold_otsu(smooth), disk(2))
    marks = label(dark, connectivity=1)
    border = set(marks[0]) | set(marks[-1]) | set(marks[:, 0]) | set(marks[:, -1])
    regions = [
        region
        for region in regionprops(marks)
        if region.label not in border and region.area > 0.02 * grey.size
    ]
    regions.sort(key=lambda region: -region.area)
    return [marks == region.label for region in regions[:2]]


def is_frontal(grey):
    """Two dark fields on either side of the middle; a lateral film has one."""
    lungs = lungs_of(grey)
    if len(lungs) < 2:
        return False
    first, second = (np.nonzero(lung)[1].mean() for lung in lungs)
    return (first - WIDTH / 2) * (second - WIDTH / 2) < 0


def measure(grey):
    """Findings of a frontal film with the numbers they rest on; None where no lungs can be outlined."""
    if not is_frontal(grey):
        return None
    pair = sorted(lungs_of(grey), key=lambda lung: np.nonzero(lung)[1].mean())
    lungs = dict(zip(SIDES, pair, strict=True))
    both = pair[0] | pair[1]
    air = float(np.median(grey[both]))
    middle = slice(WIDTH // 2 - 30, WIDTH // 2 + 30)
    rows = np.nonzero(both.any(axis=1))[0]
    solid = float(np.median(grey[rows.mean().astype(int) : rows.max(), middle]))
    frame = {"lungs": lungs, "air": air, "solid": solid, "top": int(rows.min()), "bottom": int(rows.max())}
    dark = {side: dark_share(grey, lungs[side], both) for side in SIDES}
    blunt = {side: blunting(lungs[side], side) for side in SIDES}
    dense = {side: dense_share(grey, frame, side) for side in SIDES}
    return {
        "ratio": heart_ratio(grey, frame),
        "pneumothorax": [side for side in SIDES if dark[side] > 0.08],
        "effusion": [side for side in SIDES if blunt[side] > 0],
        "consolidation": [side for side in SIDES if dense[side][0] > (0.045 if dark[side] <= 0.08 else 0.15)],
        "zone": {side: dense[side][1] for side in SIDES},
        "nodule": nodules(grey, frame),
        "devices": devices(grey, frame),
        "numbers": {"dark": dark, "blunt": blunt, "dense": {side: dense[side][0] for side in SIDES}},
    }


def heart_ratio(grey, frame):
    """Cardiothoracic ratio: widest bright run through the midline above the diaphragms against the widest thorax."""
    both = frame["lungs"]["right"] | frame["lungs"]["left"]
    columns = np.nonzero(both)[1]
    middle = (columns.min() + columns.max()) // 2
    bright = ndi.gaussian_filter(grey, 1.0) > frame["air"] + 0.8 * (frame["solid"] - frame["air"])
    base = min(int(np.median(base_of(frame["lungs"][side], side, 0.3, 0.5))) for side in SIDES)
    widths = []
    for row in range((frame["top"] + base) // 2, base - 3):
        gaps = np.nonzero(~bright[row])[0]
        left, right = gaps[gaps < middle], gaps[gaps > middle]
        if left.size and right.size:
            widths.append(right.min() - left.max())
    return float(np.percentile(widths, 95) / (columns.max() - columns.min())) if widths else 0.0


def base_of(lung, side, start, stop):
    """Lowest row of the lung in the columns between two shares of its width, counted from its outer edge."""
    columns = np.nonzero(lung.any(axis=0))[0]
    base = np.array([np.nonzero(lung[:, column])[0].max() for column in columns])
    base = base if side == "right" else base[::-1]
    return base[int(start * len(base)) : max(int(stop * len(base)), int(start * len(base)) + 1)]


def blunting(lung, side):
    """How much higher the lung ends at its outer edge than further in, in film widths; below 0 if sharp."""
    return float((np.median(base_of(lung, side, 0.33, 0.67)) - base_of(lung, side, 0.08, 0.25).max()) / WIDTH)


def dark_share(grey, lung, both):
    """Share of a lung field that is much darker than lung: air without vessels."""
    weight = ndi.gaussian_filter(both.astype(float), 4)
    mean = ndi.gaussian_filter(grey * both, 4) / np.maximum(weight, 1e-3)
    return float((lung & (mean < 0.68 * np.median(grey[both]))).sum() / lung.sum())


def field_of(frame, side):
    """A lung field with what lies hidden in it: every row from the lung's outermost to its innermost column."""
    lung = frame["lungs"][side]
    filled = ndi.binary_fill_holes(lung)
    rows = np.nonzero(filled.any(axis=1))[0]
    outline = np.zeros_like(filled)
    outer = np.array([np.nonzero(filled[row])[0][[0, -1]] for row in rows])
    outer[:, 0] = ndi.minimum_filter1d(outer[:, 0], 41)
    outer[:, 1] = ndi.maximum_filter1d(outer[:, 1], 41)
    for row, (start, stop) in zip(rows, outer, strict=True):
        outline[row, start : stop + 1] = True
    return outline


def dense_share(grey, frame, side):
    """Share of a lung field that is denser than lung and less dense than the heart, and the zone where it lies."""
    smooth = ndi.gaussian_filter(grey, 2.5)
    level = (smooth - frame["air"]) / (frame["solid"] - frame["air"])
    field = field_of(frame, side)
    dense = opening(field & (level > 0.5) & (level < 0.93), disk(7))
    if not dense.any():
        return 0.0, ""
    height = (np.nonzero(dense)[0].mean() - frame["top"]) / (frame["bottom"] - frame["top"])
    return float(
        dense.sum() / field.sum()
    ), "upper" if height < 0.4 else "middle" if height < 0.6 else "lower"


def nodules(grey, frame):
    """Sides where the lung surrounds a small, round spot as bright as bone."""
    smooth = ndi.gaussian_filter(grey, 1.0)
    found = []
    for side in SIDES:
        lung = frame["lungs"][side]
        for region in regionprops(label(ndi.binary_fill_holes(lung) & ~lung), intensity_image=smooth):
            height, width = region.image.shape
            round_enough = region.area > 0.6 * width * height and max(width, height) < 1.6 * min(
                width, height
            )
            if 4 <= width <= 24 and round_enough and region.intensity_max > 0.95 * frame["solid"]:
                found.append(side)
                break
    return found


def devices(grey, frame):
    """A generator box in the upper chest, and thin white lines longer than any vessel."""
    upper = np.arange(grey.shape[0])[:, None] < (frame["top"] + frame["bottom"]) / 2
    box = opening((grey > 247) & upper, disk(4)).any()
    lines = (white_tophat(ndi.gaussian_filter(grey, 0.7), disk(4)) > 14) & (grey > 0.98 * frame["solid"])
    lengths = [
        max(r.bbox[2] - r.bbox[0], r.bbox[3] - r.bbox[1]) for r in regionprops(label(lines, connectivity=2))
    ]
    line = max(lengths, default=0) > 45
    return {"pacemaker": bool(box), "line": bool(line and not box), "length": max(lengths, default=0)}
