"""Frame what stands out on a wrist film: letters beside the arm, metal on it, dark lines on shafts, swellings."""

import numpy as np
from films import describe, describe_result, frame, inspect, load, make_box, quality, save, tidy
from scipy import ndimage as ndi
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

FRACTURE, METAL, SWELLING, TEXT = "fracture", "metal", "softtissue", "text"


def arm_of(grey):
    """The largest piece that is brighter than the empty film."""
    smooth = ndi.gaussian_filter(grey, 2)
    if np.ptp(smooth) < 1:
        return np.zeros(grey.shape, bool)
    empty = np.percentile(smooth, 5)
    marks = label(smooth > empty + 0.25 * (np.median(smooth[smooth > threshold_otsu(smooth)]) - empty))
    sizes = np.bincount(marks.ravel())[1:]
    return marks == 1 + int(sizes.argmax()) if sizes.size else np.zeros(grey.shape, bool)


def letters(grey, arm):
    """Bright pieces beside the arm; those that stand in one line belong together."""
    ink = (grey > 0.6 * grey.max()) & ~ndi.binary_dilation(arm, iterations=2)
    words = label(ndi.binary_dilation(ink, np.ones((3, 7))))
    boxes = []
    for region in regionprops(words):
        own = ink & (words == region.label)
        if 12 < own.sum() < 0.02 * grey.size:
            boxes.append(make_box(TEXT, frame(own), 0.9))
    return boxes


def metal(grey, arm):
    """Nearly white pieces on the arm, whiter than any bone."""
    bone = np.percentile(grey[arm], 98)
    white = (grey > max(0.93 * grey.max(), 1.1 * np.percentile(grey[arm], 90))) & arm
    pieces = label(ndi.binary_closing(white, iterations=2))
    boxes = []
    for region in regionprops(pieces):
        if region.area > 0.001 * grey.size and grey[pieces == region.label].mean() > bone - 5:
            top, left, bottom, right = region.bbox
            boxes.append(make_box(METAL, (left, top, right, bottom), 0.8))
    return boxes


def shafts(grey, arm):
    """The long bones of the forearm: bright pieces that reach the film's lower border, as columns at the border."""
    height = grey.shape[0]
    foot = ndi.gaussian_filter1d(grey[int(0.88 * height) : int(0.97 * height)].mean(axis=0), 2)
    inside = arm[int(0.92 * height)]
    if inside.sum() < 10:
        return []
    bright = (foot > threshold_otsu(foot[inside])) & inside
    runs = regionprops(label(bright[None, :].astype(int)))
    return [(run.bbox[1], run.bbox[3]) for run in runs if run.bbox[3] - run.bbox[1] > 0.04 * grey.shape[1]]


def dark_lines(grey, arm):
    """Short dips of the brightness along a shaft, below the growth plate: a film is centred on the wrist."""
    height, start = grey.shape[0], grey.shape[0] // 2
    boxes = []
    for left, right in shafts(grey, arm):
        profile = ndi.gaussian_filter1d(grey[:, left + 2 : right - 2].mean(axis=1), 1.5)
        smooth = ndi.median_filter(profile, int(0.1 * height) | 1)
        dip = smooth - profile
        noise = 1.4826 * np.median(np.abs(dip[start:])) + 1e-6
        row = start + int(dip[start:].argmax())
        if dip[row] < max(6 * noise, 4):
            continue
        reach = int(0.035 * height)
        flare = int(0.3 * (right - left) * max(0.0, 1 - (row - start) / (0.17 * height)))
        corners = (left - flare, row - reach, right + flare, row + reach)
        boxes.append(make_box(FRACTURE, corners, min(1.0, 0.3 + dip[row] / 60)))
    return boxes


def swellings(arm):
    """Rows where the arm is much wider than a straight line between above and below."""
    height, width = arm.shape
    rows = np.arange(int(0.35 * height), int(0.95 * height))
    rows = rows[arm[rows].any(axis=1)]
    boxes = []
    for side in (-1, 1):
        edge = np.array([np.nonzero(arm[row])[0][0 if side < 0 else -1] for row in rows]) * side
        if edge.size < 20:
            continue
        usual = ndi.gaussian_filter1d(ndi.grey_opening(edge, int(0.3 * height)).astype(float), 5)
        bulge = edge - usual
        swollen = rows[bulge > 0.4 * bulge.max()]
        if bulge.max() > 0.05 * width:
            outer, inner = side * edge.max(), side * (usual[bulge.argmax()] - 0.06 * width)
            corners = (min(outer, inner), swollen.min(), max(outer, inner), swollen.max())
            boxes.append(make_box(SWELLING, corners, 0.3))
    return boxes


def parts(item):
    """Letters, metal, dark lines across the shafts and swellings."""
    grey = ndi.median_filter(item["grey"], 3)
    arm = arm_of(grey)
    if not arm.any():
        return []
    white = metal(grey, arm)
    lines = [] if white else dark_lines(grey, arm)
    return tidy(letters(item["grey"], arm) + white + lines + swellings(arm), item)


def bright_only(item):
    """Letters and metal."""
    grey = item["grey"]
    arm = arm_of(grey)
    return tidy(letters(grey, arm) + metal(grey, arm), item) if arm.any() else []


def dark_tophat(item):
    """Letters, and every dark thin structure on the arm taken for a fracture."""
    grey = item["grey"]
    arm = arm_of(grey)
    if not arm.any():
        return []
    inner = ndi.binary_erosion(arm, iterations=12)
    dark = ndi.black_tophat(ndi.gaussian_filter(grey, 1), size=9)
    boxes = []
    for region in regionprops(label(opening(inner & (dark > np.percentile(dark[inner], 97)), disk(1)))):
        top, left, bottom, right = region.bbox
        if region.area > 40:
            boxes.append(make_box(FRACTURE, (left - 4, top - 8, right + 4, bottom + 8), 0.2))
    return tidy(letters(grey, arm) + boxes, item)


METHODS = {"parts": parts, "bright": bright_only, "tophat": dark_tophat}
