"""Tell skin lesions apart by their colour against the skin around, its unevenness, and the sharpness of the border."""

import numpy as np
from fuzzy import ramp
from scipy import ndimage as ndi
from skimage.color import rgb2lab
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

CLASSES = (
    "actinic_keratoses",
    "basal_cell_carcinoma",
    "benign_keratosis_like_lesions",
    "dermatofibroma",
    "melanoma",
    "melanocytic_nevi",
    "vascular_lesions",
)


def against_skin(lab):
    """Difference from the skin, whose colour and shading are fitted to the picture's rim, where hairs are cut off."""
    height, width = lab.shape[:2]
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y], axis=-1)
    rim = np.maximum(np.abs(x), np.abs(y)) > 0.8
    light = lab[..., 0] >= np.percentile(lab[rim][:, 0], 25)
    fit, *_ = np.linalg.lstsq(terms[rim & light], lab[rim & light], rcond=None)
    return lab - terms @ fit


def lesion_of(away):
    """The largest part that differs from the skin; hairs are too thin to count."""
    size = ndi.gaussian_filter(np.linalg.norm(away, axis=2), 2)
    marks = label(ndi.binary_fill_holes(opening(size > 0.8 * threshold_otsu(size), disk(4))))
    regions = regionprops(marks)
    if not regions:
        return np.ones(away.shape[:2], bool), 1.0
    best = max(regions, key=lambda region: region.area)
    return marks == best.label, float(best.solidity)


def measure(rgb):
    away = against_skin(rgb2lab(ndi.median_filter(rgb, (5, 5, 1)) / 255))
    mask, solid = lesion_of(away)
    inner = ndi.binary_erosion(mask, iterations=3) if mask.sum() > 400 else mask
    part, fine = away[inner], against_skin(rgb2lab(rgb / 255))[inner]
    depth = ndi.distance_transform_edt(mask)
    core, ring = depth > 0.7 * depth.max(), mask & (depth < 0.45 * depth.max()) & (depth > 3)
    return {
        "dark": float(-np.median(part[:, 0])),
        "darkest": float(-np.percentile(part[:, 0], 5)),
        "red": float(np.median(part[:, 1])),
        "uneven": float(np.linalg.norm(part.std(axis=0))),
        "grey": float(((part[:, 2] < -12) & (part[:, 1] < 2)).mean()),
        "specks": float((fine[:, 0] > np.median(fine[:, 0]) + 14).mean()),
        "plugs": float((fine[:, 0] < np.median(fine[:, 0]) - 12).mean()),
        "heart": float(np.median(away[core][:, 0]) - np.median(away[ring][:, 0])) if ring.any() else 0.0,
        "solid": solid,
    }


def scores(rgb):
    """Each kind is a few demands at once; the weakest of them decides."""
    m = measure(rgb)
    brown, even = ramp(m["dark"], 6, 16), ramp(m["uneven"], 10, 5)
    spots = m["specks"] + m["plugs"]
    pink = ramp(m["red"], 4, 10)
    return {
        "vascular_lesions": min(ramp(m["red"], 18, 30), ramp(m["dark"], 10, 22)),
        "melanoma": min(ramp(m["darkest"], 26, 38), ramp(m["uneven"], 6, 11), ramp(m["red"], 22, 14)),
        "dermatofibroma": min(ramp(m["heart"], 5, 15), ramp(m["dark"], 25, 14)),
        "basal_cell_carcinoma": min(ramp(m["grey"], 0.005, 0.03), ramp(m["dark"], 20, 10)),
        "actinic_keratoses": min(pink, ramp(m["dark"], 24, 12), ramp(m["grey"], 0.03, 0.01)),
        "benign_keratosis_like_lesions": min(
            brown, ramp(spots, 0.02, 0.07), ramp(m["darkest"], 46, 34), ramp(m["red"], 8, 2)
        ),
        "melanocytic_nevi": min(
            brown, even, ramp(m["solid"], 0.8, 0.92), ramp(spots, 0.09, 0.03), ramp(m["red"], 22, 14)
        ),
    }
