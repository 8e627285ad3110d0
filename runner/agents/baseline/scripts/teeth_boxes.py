"""Frame diseased teeth on a panoramic film: crowns are bright pieces, roots hang on them, dark spots are disease."""

import numpy as np
from films import describe, describe_result, inspect, load, make_box, quality, save, tidy
from scipy import ndimage as ndi
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

CARIES, DEEP, TIP, IMPACTED = "Caries", "Deep Caries", "Periapical Lesion", "Impacted"


def calm(item):
    """The film without its speckle."""
    return ndi.median_filter(item["grey"], 3)


def bright_teeth(grey):
    """Mask of what is brighter than the bone around it, at the scale of the film."""
    smooth = ndi.gaussian_filter(grey, grey.shape[1] / 400)
    contrast = smooth - ndi.gaussian_filter(grey, grey.shape[1] / 14)
    return opening(contrast > 0.5 * np.percentile(contrast, 98), disk(1))


def pieces(grey):
    """Bright pieces of the size of a crown, with or without a root; neighbours that touch are cut apart."""
    height, width = grey.shape
    mask = bright_teeth(grey)
    for region in regionprops(label(mask)):
        cut = waist(region.image)
        if cut is not None and region.image.shape[1] < 0.3 * width:
            mask[region.bbox[0] : region.bbox[2], region.bbox[1] + cut] = False
    return [
        region
        for region in regionprops(label(mask))
        if 0.02 * width < region.image.shape[1] < 0.12 * width
        and 0.035 * height < region.image.shape[0] < 0.3 * height
    ]


def waist(image):
    """The column between two crowns that touch: much thinner than both sides; None where there is none."""
    thick = image.sum(axis=0)
    third = len(thick) // 3
    if third < 5:
        return None
    middle = third + int(thick[third:-third].argmin())
    both = min(thick[:middle].max(), thick[middle:].max())
    return middle if thick[middle] < 0.65 * both and len(thick) > 1.3 * both else None


def is_lying(region):
    """A long piece whose axis is far from upright."""
    tilt = abs(np.degrees(region.orientation))
    return tilt > 35 and region.axis_major_length > max(1.6 * region.axis_minor_length, 25)


def crowns(grey):
    """Columns, chewing edge and direction of the root (1 down, -1 up) of every upright tooth."""
    found = [region for region in pieces(grey) if not is_lying(region)]
    if len(found) < 8:
        return []
    rows = np.array([region.centroid[0] for region in found])
    across = np.array([region.centroid[1] for region in found]) / grey.shape[1] - 0.5
    arch = np.polyval(np.polyfit(across, rows, 2), across)
    teeth = []
    for region, row, middle in zip(found, rows, arch, strict=True):
        down = 1 if row > middle else -1
        top, left, bottom, right = region.bbox
        teeth.append((left, right, top if down > 0 else bottom - 1, down))
    return teeth


def column_of(grey, tooth):
    """The film from the chewing edge towards the root and beyond, as wide as the crown."""
    left, right, edge, down = tooth
    rows = np.clip(edge + down * np.arange(int(0.42 * grey.shape[0])), 0, grey.shape[0] - 1)
    return grey[rows, left:right]


def root_end(patch, bone):
    """Row of the tip of the root: where nothing in the middle is brighter than bone any more."""
    margin = patch.shape[1] // 5
    core = ndi.gaussian_filter1d(np.percentile(patch[:, margin : -margin or None], 80, axis=1), 1.5)
    level = np.median(core[: len(core) // 3])
    faint = np.nonzero(core < bone + 0.25 * (level - bone))[0]
    late = faint[faint > len(core) // 5]
    return int(late[0]) if late.size else len(core) // 2


def diseases(patch, tip, bone, crown):
    """Name, score and last row of what is dark in the crown or beyond the tip of the root."""
    width = patch.shape[1]
    smooth = ndi.gaussian_filter(patch, 0.8)
    inner = smooth[2 : int(0.7 * crown), width // 8 : -(width // 8) or None]
    holes = regionprops(label(inner < bone + 0.4 * (np.percentile(inner, 70) - bone)))
    share = max((region.area for region in holes), default=0) / inner.size
    beyond = smooth[tip - 4 : tip + width]
    dark = opening(beyond < 0.7 * bone, disk(2))
    if dark.sum() > 0.12 * width**2:
        yield TIP, min(1.0, 0.5 + dark.mean()), tip - 3 + int(np.nonzero(dark.any(axis=1))[0].max())
    if share > 0.16:
        yield DEEP, min(1.0, 0.4 + share), tip
    elif share > 0.03:
        yield CARIES, min(1.0, 0.4 + 3 * share), tip


def tooth_boxes(grey):
    teeth = crowns(grey)
    if not teeth:
        return []
    patches = [column_of(grey, tooth) for tooth in teeth]
    bone = float(np.median([np.median(patch[-len(patch) // 3 :]) for patch in patches]))
    tips = [root_end(patch, bone) for patch in patches]
    usual = int(np.median(tips))
    boxes = []
    for (left, right, edge, down), patch, tip in zip(teeth, patches, tips, strict=True):
        tip = int(np.clip(tip, 0.75 * usual, 1.25 * usual))
        for name, score, reach in diseases(patch, tip, bone, usual / 3):
            ends = sorted((edge, edge + down * reach))
            boxes.append(make_box(name, (left - 1, ends[0], right + 1, ends[1] + 1), score))
    return boxes


def lying_boxes(grey):
    """Single bright pieces at the ends of the arch that lie aslant."""
    boxes = []
    for region in pieces(grey):
        aside = abs(region.centroid[1] / grey.shape[1] - 0.5)
        if aside > 0.28 and is_lying(region):
            top, left, bottom, right = region.bbox
            boxes.append(make_box(IMPACTED, (left, top, right, bottom), min(1.0, 0.3 + aside)))
    return boxes


def crown_by_crown(item):
    grey = calm(item)
    return tidy(tooth_boxes(grey) + lying_boxes(grey), item)


def dark_spots(item):
    """Dark spots near bright teeth; the box has the size of a usual tooth around the spot."""
    grey = calm(item)
    wide, high = grey.shape[1] / 22, grey.shape[0] / 4
    near = ndi.binary_dilation(bright_teeth(grey), iterations=6)
    ground = ndi.gaussian_filter(grey, grey.shape[1] / 60)
    spots = opening(near & (ndi.gaussian_filter(grey, 1.5) < 0.6 * ground), disk(2))
    boxes = []
    for region in regionprops(label(spots)):
        y, x = region.centroid
        top = y - (0.8 if y < grey.shape[0] / 2 else 0.2) * high
        name = CARIES if region.area < 0.1 * wide * high else DEEP
        boxes.append(make_box(name, (x - wide / 2, top, x + wide / 2, top + high), 0.3))
    return tidy(boxes, item)


def lying(item):
    """Impacted teeth alone."""
    return tidy(lying_boxes(calm(item)), item)


METHODS = {"crowns": crown_by_crown, "spots": dark_spots, "lying": lying}
