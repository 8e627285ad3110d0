"""What the scripts for findings on grey films share: reading, checks, and a measure that needs no reference."""

import detection
import numpy as np
from scipy import ndimage as ndi

tidy, overlap, save = detection.tidy, detection.overlap, detection.save
SHIFT = 3


def make_box(name, corners, score):
    return detection.make_box(name, [float(corner) for corner in corners], score)


def load(folder, task):
    item = detection.load(folder, task)
    return item | {"grey": item["image"].mean(axis=2)}


def describe(item):
    grey = item["grey"]
    low, middle, high = np.percentile(grey, (2, 50, 98))
    print(
        f"shape {grey.shape}, 8-bit, no spacing given, "
        f"grey levels {low:.0f}, {middle:.0f}, {high:.0f} at 2, 50, 98 percent"
    )


def describe_result(result):
    names = sorted({box["class"] for box in result})
    counts = ", ".join(f"{name} {sum(box['class'] == name for box in result)}" for name in names)
    print(f"{len(result)} boxes: {counts or 'nothing found'}")


def disturbed(item):
    """The same film, a little softer and moved by a few pixels."""
    soft = ndi.gaussian_filter(item["image"], (0.6, 0.6, 0))
    moved = ndi.shift(soft, (SHIFT, SHIFT, 0), order=0, mode="nearest")
    return item | {"image": moved, "grey": moved.mean(axis=2)}


def quality(item, boxes, predict):
    """Scores of the kinds of findings that a disturbed film shows too, against all boxes: a crowd is noise."""
    again = predict(disturbed(item))
    for box in again:
        box |= {key: box[key] - SHIFT for key in ("x1", "y1", "x2", "y2")}
    held = {}
    for box in boxes:
        if any(box["class"] == other["class"] and overlap(box, other) > 0.5 for other in again):
            held[box["class"]] = max(box["score"], held.get(box["class"], 0.0))
    return sum(held.values()) / (1 + len(boxes))


def inspect(item, folder, task, show):
    """As for any detector, but a film may hold nothing."""
    problems = detection.inspect(item, folder, task, show)
    return [problem for problem in problems if problem != "no box at all"]


def frame(mask):
    """Corners of the smallest box around a mask."""
    rows, columns = np.nonzero(mask)
    return float(columns.min()), float(rows.min()), float(columns.max() + 1), float(rows.max() + 1)
