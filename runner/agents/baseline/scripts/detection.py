"""Find blood cells in a stained smear: stain and size give the class, shape cuts touching red cells apart."""

import json

import numpy as np
from PIL import Image
from scipy import ndimage as ndi
from skimage.feature import canny, peak_local_max
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening, remove_small_objects
from skimage.segmentation import watershed
from skimage.transform import hough_circle, hough_circle_peaks

RED, WHITE, PLATELET = "rbc", "wbc", "platelets"


def load(folder, task):
    image = Image.open(folder / task["output"]["image"]).convert("RGB")
    return {"name": folder.name, "image": np.asarray(image, dtype=np.float32), "task": task}


def describe(item):
    image = item["image"]
    print(
        f"shape {image.shape}, 8-bit RGB, {image.min():.0f} to {image.max():.0f}, mean {image.mean((0, 1)).round()}"
    )
    maps = stains(image)
    cells, purple = maps["cells"].mean(), maps["purple"].mean()
    print(
        f"background {maps['background'].round()}, cells cover {cells:.0%}, purple {purple:.1%}, no spacing given"
    )


def describe_result(result):
    print(
        f"{len(result)} boxes: "
        + ", ".join(
            f"{name} {sum(box['class'] == name for box in result)}" for name in (RED, WHITE, PLATELET)
        )
    )


def stains(image):
    """Masks of cells, of everything purple and of dark nuclei, from optical densities against the background.

    Haemoglobin takes out green and blue alike, the purple stain leaves blue: their ratio tells red cells from others.
    """
    smooth = ndi.gaussian_filter(image, (1, 1, 0))
    brightness = smooth.min(axis=2)
    background = np.median(smooth[brightness >= np.quantile(brightness, 0.8)], axis=0)
    density = -np.log((smooth + 1) / (background + 1))
    red, green, blue = density[..., 0], density[..., 1], density[..., 2]
    cells = green > max(0.07, 0.7 * threshold_otsu(np.minimum(green, 0.5)))
    purple = cells & (blue < 0.55 * green)
    return {
        "background": background,
        "cells": cells,
        "purple": purple,
        "dark": purple & (red > 0.25),
        "green": green,
    }


def region_box(region):
    top, left, bottom, right = region.bbox
    return float(left), float(top), float(right), float(bottom)


def roundness(region):
    """Area against that of the ellipse in the bounding box: 1 for an ellipse, less for clumps and fragments."""
    top, left, bottom, right = region.bbox
    return min(1.0, region.area / (np.pi / 4 * (bottom - top) * (right - left)))


def typical_radius(cells):
    """Radius of a red cell in pixels: middle of the peaks of the distance transform, small debris left out."""
    distance = ndi.gaussian_filter(ndi.distance_transform_edt(cells), 1)
    peaks = peak_local_max(distance, min_distance=5, threshold_abs=3, exclude_border=False)
    heights = np.array([distance[tuple(peak)] for peak in peaks])
    big = heights[heights > 0.4 * heights.max()] if heights.size else np.array([12.0])
    return float(np.median(big))


def purple_cells(maps, radius):
    """White cells and platelets: stained regions with a dark core, told apart by size; and the mask that they cover."""
    purple = opening(ndi.binary_closing(maps["purple"], iterations=2), disk(1))
    marks = label(ndi.binary_fill_holes(purple))
    boxes, covered = [], np.zeros_like(purple)
    for region in regionprops(marks, intensity_image=maps["dark"].astype(float)):
        size = np.sqrt(region.area / np.pi) / radius
        if size < 0.15 or region.intensity_mean * region.area < 0.01 * radius**2:
            continue
        covered[region.slice] |= region.image
        if size > 0.75:
            boxes.append(make_box(WHITE, region_box(region), 0.5 + 0.5 * roundness(region)))
        else:
            boxes.append(make_box(PLATELET, region_box(region), 0.4 + 0.5 * roundness(region)))
    return boxes, covered


def make_box(name, corners, score):
    return dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True)) | {
        "class": name,
        "score": round(float(score), 4),
    }


def red_mask(maps, covered, radius):
    cells = ndi.binary_fill_holes(maps["cells"]) & ~ndi.binary_dilation(covered, iterations=2)
    return remove_small_objects(opening(cells, disk(2)), max_size=int(0.3 * radius**2))


def red_boxes(marks, radius):
    boxes = []
    for region in regionprops(marks):
        size = np.sqrt(region.area / np.pi) / radius
        if size > 0.4:
            fit = np.exp(-(np.log(size) ** 2) / 0.18)
            boxes.append(make_box(RED, region_box(region), 0.15 + 0.8 * fit * roundness(region)))
    return boxes


def watershed_cells(item):
    maps = stains(item["image"])
    radius = typical_radius(ndi.binary_fill_holes(maps["cells"] & ~maps["purple"]))
    boxes, covered = purple_cells(maps, radius)
    cells = red_mask(maps, covered, radius)
    distance = ndi.gaussian_filter(ndi.distance_transform_edt(np.pad(cells, 1))[1:-1, 1:-1], radius / 8)
    peaks = peak_local_max(
        distance, min_distance=max(3, int(0.6 * radius)), threshold_abs=0.35 * radius, exclude_border=False
    )
    markers = np.zeros(cells.shape, int)
    markers[tuple(peaks.T)] = np.arange(1, len(peaks) + 1)
    return tidy(boxes + red_boxes(watershed(-distance, markers, mask=cells), radius), item)


def component_cells(item):
    maps = stains(item["image"])
    radius = typical_radius(ndi.binary_fill_holes(maps["cells"] & ~maps["purple"]))
    boxes, covered = purple_cells(maps, radius)
    return tidy(boxes + red_boxes(label(red_mask(maps, covered, radius)), radius), item)


def circle_cells(item):
    maps = stains(item["image"])
    radius = typical_radius(ndi.binary_fill_holes(maps["cells"] & ~maps["purple"]))
    boxes, covered = purple_cells(maps, radius)
    cells = red_mask(maps, covered, radius)
    radii = np.unique(np.linspace(0.75 * radius, 1.3 * radius, 6).astype(int))
    votes = hough_circle(canny(maps["green"], 2.0) & ndi.binary_dilation(cells, iterations=3), radii)
    found = hough_circle_peaks(votes, radii, int(radius), int(radius), threshold=0.35, total_num_peaks=100)
    for vote, x, y, r in zip(*found, strict=True):
        if cells[min(y, cells.shape[0] - 1), min(x, cells.shape[1] - 1)]:
            boxes.append(make_box(RED, (x - r, y - r, x + r, y + r), min(1.0, float(vote))))
    return tidy(boxes, item)


METHODS = {"watershed": watershed_cells, "circles": circle_cells, "components": component_cells}


def overlap(one, other):
    """Intersection over union of two boxes."""
    width = min(one["x2"], other["x2"]) - max(one["x1"], other["x1"])
    height = min(one["y2"], other["y2"]) - max(one["y1"], other["y1"])
    shared = max(0.0, width) * max(0.0, height)
    return shared / (area(one) + area(other) - shared)


def area(box):
    return (box["x2"] - box["x1"]) * (box["y2"] - box["y1"])


def tidy(boxes, item):
    """Clip to the image, drop duplicates of the same class, keep the best of what the task allows."""
    height, width = item["image"].shape[:2]
    kept = []
    for box in sorted(boxes, key=lambda box: -box["score"]):
        box |= {"x1": max(0.0, box["x1"]), "y1": max(0.0, box["y1"])}
        box |= {"x2": min(float(width), box["x2"]), "y2": min(float(height), box["y2"])}
        if box["x2"] - box["x1"] < 2 or box["y2"] - box["y1"] < 2:
            continue
        if all(other["class"] != box["class"] or overlap(box, other) < 0.5 for other in kept):
            kept.append(box)
    return kept[: item["task"]["output"]["max_detections"]]


def quality(item, boxes, _predict):
    """Share of the cell area in boxes of single-cell size, less the share of boxes that overlap another by a third."""
    maps = stains(item["image"])
    cells = ndi.binary_fill_holes(maps["cells"])
    radius = typical_radius(ndi.binary_fill_holes(maps["cells"] & ~maps["purple"]))
    single = np.zeros_like(cells)
    for box in boxes:
        side = np.sqrt(area(box)) / (2 * radius)
        if box["class"] != RED or 0.6 < side < 1.5:
            single[int(box["y1"]) : int(box["y2"]) + 1, int(box["x1"]) : int(box["x2"]) + 1] = True
    clash = [any(overlap(box, other) > 1 / 3 for other in boxes if other is not box) for box in boxes]
    return float((single & cells).sum() / max(cells.sum(), 1)) - (float(np.mean(clash)) if clash else 0.0)


def save(result, folder, task):
    (folder / task["files"][0]).write_text(json.dumps({"boxes": result}, indent=1))


def inspect(item, folder, task, show):
    boxes = json.loads((folder / task["files"][0]).read_text())["boxes"]
    height, width = item["image"].shape[:2]
    show(f"{len(boxes)} boxes on an image of {width} x {height}")
    for box in boxes[:5]:
        show("  {class} {score:.2f}: ({x1:.0f}, {y1:.0f}) to ({x2:.0f}, {y2:.0f})".format(**box))
    problems = [] if boxes else ["no box at all"]
    for box in boxes:
        if not (0 <= box["x1"] < box["x2"] <= width and 0 <= box["y1"] < box["y2"] <= height):
            problems.append(f"box outside the image: {box}")
        if box["class"] not in task["output"]["classes"] or not 0 <= box["score"] <= 1:
            problems.append(f"class or score not allowed: {box}")
    if len(boxes) > task["output"]["max_detections"]:
        problems.append(f"{len(boxes)} boxes, more than allowed")
    return problems[:5]
