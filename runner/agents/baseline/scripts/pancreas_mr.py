"""Pancreas and tumour in abdominal MRI: a gland of known brightness relative to liver and fat, before the spine.

In the arterial phase (T1) the gland is brighter than the liver, a tumour darker than the gland; on T2 the gland lies
between liver and fat and a tumour is brighter. Which of the two a scan is, is told by its fat. Arrays are in RAS order.
"""

import numpy as np
from scipy import ndimage as ndi
from segmentation import around, closed, grow, largest, opened
from skimage.filters import threshold_otsu
from volumes import as_result, components, describe, describe_result, inspect, load, save

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

TYPICAL_ML, SMALLEST_TUMOUR_ML, LARGEST_TUMOUR_ML = 45.0, 1.2, 80.0


def frame_of(item):
    """Body, places relative to it in mm (right of the midline; behind the front, as a share), liver and fat levels."""
    if "frame" in item:
        return item["frame"]
    spacing = item["spacing"]
    calm = ndi.gaussian_filter(item["data"], 1.5 / spacing)
    body = largest(calm > 0.5 * threshold_otsu(calm))
    for k in range(body.shape[2]):
        body[:, :, k] = ndi.binary_fill_holes(body[:, :, k])
    x, y, _ = np.nonzero(body)
    middle, (back, front) = np.median(x), np.percentile(y, (1, 99))
    right = ((np.arange(body.shape[0]) - middle) * spacing[0])[:, None, None]
    depth = ((front - np.arange(body.shape[1])) / (front - back))[None, :, None]
    height = ((np.arange(body.shape[2]) - body.shape[2] / 2) * spacing[2])[None, None, :]
    places = np.broadcast_arrays(right, depth, height)
    skin = body & ~ndi.binary_erosion(body, iterations=3)
    liver = (
        body & (places[0] > 35) & (places[0] < 110) & (places[1] > 0.25) & (places[1] < 0.6) & (places[2] > 0)
    )
    item["frame"] = {
        "calm": calm,
        "body": body,
        "places": places,
        "liver": float(np.median(calm[liver])),
        "fat": float(np.percentile(calm[skin], 75)),
    }
    return item["frame"]


def window_of(frame):
    """Brightness of the gland: lowest, highest; and whether a tumour is darker than it."""
    liver, fat = frame["liver"], frame["fat"]
    if fat < liver:
        return 1.25 * liver, 2.0 * liver, True
    return 1.3 * liver, 0.5 * (1.5 * liver + fat), False


def near(frame, reach=1.0):
    """Where the pancreas may lie: from right of the midline far to the left, in front of the spine, mid-height."""
    right, depth, height = frame["places"]
    across = (right < 50 * reach) & (right > -95 * reach)
    return frame["body"] & across & (np.abs(depth - 0.44) < 0.12 * reach) & (np.abs(height) < 50 * reach)


def gland_of(item):
    """Pieces of the gland's brightness in its place, weighed by size and place; neighbours of the best one join it."""
    frame, spacing = frame_of(item), item["spacing"]
    low, high, _ = window_of(frame)
    bright = (frame["calm"] > low) & (frame["calm"] < high) & near(frame)
    pieces = components(opened(bright, 0.8 * spacing[:2].max(), spacing), 1.5, spacing)
    if not pieces:
        return np.zeros(bright.shape, bool)
    best = max(pieces, key=lambda piece: weight(piece, frame, spacing))
    joined = [piece for piece in pieces if (grow(best, 14.0, spacing) & piece).any()]
    gland = np.logical_or.reduce(joined)
    return gland | (ndi.binary_dilation(gland) & (frame["calm"] > low) & (frame["calm"] < high))


def weight(piece, frame, spacing):
    right, depth, height = (float(np.mean(place[piece])) for place in frame["places"])
    ml = piece.sum() * np.prod(spacing) / 1000
    return (
        np.exp(-((np.log(ml / TYPICAL_ML) / 1.2) ** 2))
        * np.exp(-(((right + 20) / 45) ** 2))
        * np.exp(-(((depth - 0.44) / 0.09) ** 2))
        * np.exp(-((height / 45) ** 2))
    )


def tumour_of(item, gland):
    """Compact tissue of another brightness that the gland surrounds in part."""
    frame, spacing = frame_of(item), item["spacing"]
    empty = np.zeros(gland.shape, bool)
    if not gland.any():
        return empty
    _, _, darker = window_of(frame)
    window, level = around(gland, 25.0, spacing), float(np.median(frame["calm"][gland]))
    calm, part = frame["calm"][window], gland[window]
    if darker:
        other = (calm < 0.78 * level) & (calm > 0.35 * level)
    else:
        other = (calm > 1.18 * level) & (calm < 0.9 * frame["fat"])
    allowed = other & grow(closed(part, 12.0, spacing), 6.0, spacing) & ~(part & ~other)
    best, best_share = empty[window], 0.3
    for piece in components(opened(allowed, 5.0, spacing), SMALLEST_TUMOUR_ML, spacing):
        rind = grow(piece, 1.2 * spacing.max(), spacing) & ~piece
        share = (rind & part).sum() / max(1, rind.sum())
        if share > best_share and piece.sum() * np.prod(spacing) / 1000 < LARGEST_TUMOUR_ML:
            best, best_share = piece, share
    empty[window] = best
    return empty


def with_tumour(item):
    gland = gland_of(item)
    tumour = tumour_of(item, gland)
    return as_result(item, organ=gland | tumour, lesion=tumour)


def without_tumour(item):
    gland = gland_of(item)
    return as_result(item, organ=gland, lesion=np.zeros_like(gland))


def by_place(item):
    """The usual place of the gland, whatever is there."""
    right, depth, height = frame_of(item)["places"]
    usual = (((right + 18) / 60) ** 2 + ((depth - 0.44) / 0.06) ** 2 + (height / 16) ** 2 < 1) & frame_of(
        item
    )["body"]
    return as_result(item, organ=usual, lesion=np.zeros(usual.shape, bool))


METHODS = {"gland": with_tumour, "organ": without_tumour, "place": by_place}


def quality(item, result, _predict):
    """Place and size of the organ, contrast across its border, and whether a spot within it was left out."""
    frame, spacing = frame_of(item), item["spacing"]
    organ, lesion = result["files"]["organ.nii.gz"] > 0, result["files"]["lesion.nii.gz"] > 0
    if not organ.any():
        return 0.0
    gland = organ & ~lesion
    halo = grow(organ, 6.0, spacing) & ~grow(organ, 2.0, spacing)
    contrast = np.abs(frame["calm"][gland].mean() - np.median(frame["calm"][halo])) / frame["liver"]
    left_out = tumour_of(item, gland).any() and not lesion.any()
    return float((weight(organ, frame, spacing) + min(1.0, contrast) + (not left_out)) / 3)
