"""Where adults have their organs: a frame from spine and kidneys, a table of priors, and the choice of a structure.

Places are in millimetres from the spine (to the patient's right, to the front) and from the kidneys' middle (up).
Arrays are in RAS order, as in ``segmentation.py``, whose morphology and kidneys are used here.
"""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage as ndi
from segmentation import LEVELS_HU, best_kidneys, frame_of, grow, opened, refined
from skimage.measure import label, regionprops

AIR, BONE = -500.0, 220.0
ADULT_KIDNEY_MM = 110.0


@dataclass(frozen=True)
class Prior:
    """Box (right, front, up) in mm, brightness, opening in mm, expected volume in ml."""

    right: tuple[float, float]
    front: tuple[float, float]
    up: tuple[float, float]
    hu: tuple[float, float]
    opening: float
    volume: float


PRIORS = {
    "liver": Prior((-70, 160), (-50, 140), (-50, 150), (75, 140), 6, 1500),
    "spleen": Prior((-165, -45), (-45, 75), (-25, 145), (85, 165), 5, 200),
    "pancreas": Prior((-85, 55), (24, 85), (-35, 65), (78, 132), 2, 70),
    "stomach": Prior((-105, 25), (15, 125), (-10, 145), (0, 95), 5, 350),
    "duodenum": Prior((8, 80), (15, 85), (-65, 35), (8, 82), 2, 70),
    "gall_bladder": Prior((15, 95), (25, 125), (-50, 55), (-15, 32), 5, 25),
    "colon": Prior((-150, 150), (-30, 140), (-280, 70), (-1000, -150), 2, 450),
    "kidney_right": Prior((30, 110), (-35, 50), (-65, 65), (120, 260), 4, 160),
    "kidney_left": Prior((-110, -30), (-35, 50), (-65, 65), (120, 260), 4, 160),
    "adrenal_gland_right": Prior((14, 70), (-5, 45), (12, 62), (25, 125), 0, 3),
    "adrenal_gland_left": Prior((-70, -14), (-5, 45), (12, 62), (25, 125), 0, 3),
    "aorta": Prior((-30, 3), (8, 62), (-150, 350), (120, 260), 3, 100),
    "postcava": Prior((3, 40), (8, 62), (-150, 130), (110, 200), 3, 90),
    "veins": Prior((-85, 60), (30, 90), (-30, 75), (140, 260), 0, 25),
    "lung_right": Prior((0, 150), (-60, 140), (60, 400), (-1000, -500), 0, 1500),
    "lung_left": Prior((-150, 0), (-60, 140), (60, 400), (-1000, -500), 0, 1400),
    "bladder": Prior((-55, 55), (-10, 110), (-400, -220), (-15, 30), 6, 180),
    "prostate": Prior((-34, 34), (-5, 75), (-400, -300), (45, 110), 5, 30),
    "femur_right": Prior((55, 140), (-30, 70), (-430, -295), (220, 1500), 4, 120),
    "femur_left": Prior((-140, -55), (-30, 70), (-430, -295), (220, 1500), 4, 120),
    "hepatic_vessel": Prior((-40, 140), (-20, 110), (-20, 140), (130, 250), 0, 40),
}
LESIONS = {
    "pancreatic_lesion": Prior((-85, 55), (24, 85), (-35, 65), (40, 70), 3, 10),
    "liver_lesion": Prior((-40, 150), (-40, 130), (-40, 140), (35, 75), 5, 25),
    "colon_cancer": Prior((-130, 130), (-30, 130), (-250, 60), (75, 130), 6, 40),
}


# --- the frame --------------------------------------------------------------------------------------------------------


def frame(item):
    """Coordinates from spine and kidneys, a smoother image, and the kidneys themselves; made once a case."""
    if "trunk" not in item:
        base, spacing = frame_of(item), item["spacing"]
        found = best_kidneys(item, base, LEVELS_HU[:3]) or best_kidneys(item, base, LEVELS_HU[3:])
        kidneys = [refined(mask, item, base)[0] for _, mask, _ in found]
        right, front, up = (
            axis * step
            for axis, step in zip(np.ogrid[tuple(map(slice, item["ct"].shape))], spacing, strict=True)
        )
        item["trunk"] = {
            "body": base["body"],
            "kidneys": kidneys,
            "right": right - base["spine"][0],
            "front": front - base["spine"][1],
            "up": up - kidney_level(kidneys, item),
            "smooth": ndi.gaussian_filter(item["ct"], 2.5 / spacing),
        }
    return item["trunk"]


def kidney_level(kidneys, item):
    """Height of the kidneys' middle; one that the scan cuts off is completed to an adult's length."""
    step, height = item["spacing"][2], item["ct"].shape[2]
    levels = []
    for mask in kidneys:
        places = np.nonzero(mask.any(axis=(0, 1)))[0]
        low, high = places[0] * step, places[-1] * step
        if places[0] == 0:
            low = min(low, high - ADULT_KIDNEY_MM)
        if places[-1] == height - 1:
            high = max(high, low + ADULT_KIDNEY_MM)
        levels.append((low + high) / 2)
    return float(np.mean(levels)) if levels else level_without_kidneys(item)


def level_without_kidneys(item):
    """About 150 mm below the lungs' bases where there are lungs, else the middle of the scan."""
    step, height = item["spacing"][2], item["ct"].shape[2]
    aired = (frame_of(item)["body"] & (item["calm"] < AIR)).sum(axis=(0, 1)) * np.prod(item["spacing"][:2])
    slices = np.nonzero(aired > 8000)[0]
    return float(slices[0] * step - 130) if slices.size else height * step / 2


def in_box(place, prior):
    box = np.ones(place["body"].shape, bool)
    for name in ("right", "front", "up"):
        low, high = getattr(prior, name)
        box &= (place[name] > low) & (place[name] < high)
    return box


def typical(values, low, high):
    """The most frequent brightness between two limits."""
    counts, edges = np.histogram(values[(values > low) & (values < high)], bins=np.arange(low, high + 4, 4))
    return (
        float(edges[np.argmax(ndi.gaussian_filter1d(counts.astype(float), 1.5))] + 2)
        if counts.any()
        else None
    )


def ellipsoid(place, prior):
    level = 0.0
    for name in ("right", "front", "up"):
        low, high = getattr(prior, name)
        level = level + ((place[name] - (low + high) / 2) / ((high - low) / 2)) ** 2
    return level < 1


# --- picking a structure ----------------------------------------------------------------------------------------------


def likely(item, place, prior, free, image="smooth"):
    """The component within the prior's box and brightness that fits its volume and its middle best."""
    spacing, (low, high) = item["spacing"], prior.hu
    values = place["smooth"] if image == "smooth" else item["calm"]
    candidates = free & in_box(place, prior) & (values > low) & (values < high)
    marks = label(opened(candidates, prior.opening, spacing), connectivity=1)
    middle = [np.mean(getattr(prior, name)) for name in ("right", "front", "up")]
    best, chosen = 0.0, np.zeros_like(free)
    for region in regionprops(marks):
        volume = region.area * np.prod(spacing) / 1000
        if volume < prior.volume / 12:
            continue
        x, y, z = (round(value) for value in region.centroid)
        spot = place["right"][x, 0, 0], place["front"][0, y, 0], place["up"][0, 0, z]
        away = np.array([spot[i] - middle[i] for i in range(3)]) / 80
        score = np.exp(-((np.log(volume / prior.volume) / 1.2) ** 2) - (away**2).sum())
        if score > best:
            best, chosen = score, marks == region.label
    return chosen


def to_half(mask, item, free, reach):
    """Regrow a core to where brightness has fallen half way to that of fat."""
    if not mask.any():
        return mask
    edge = (float(np.median(item["calm"][mask])) - 90.0) / 2
    return mask | (grow(mask, reach, item["spacing"]) & free & (item["calm"] > edge))


def filled(mask, axes=(0, 1, 2)):
    """Holes of the slices along each axis closed."""
    for axis in axes:
        planes = np.moveaxis(mask, axis, 0)
        mask = np.moveaxis(np.stack([ndi.binary_fill_holes(plane) for plane in planes]), 0, axis)
    return mask


def lumps(mask, spacing):
    """The compact components of a mask of at least one millilitre."""
    for region in regionprops(label(mask, connectivity=1)):
        size = (np.array(region.bbox[3:]) - np.array(region.bbox[:3])) * spacing
        volume = region.area * np.prod(spacing)
        if volume > 1000 and volume > 0.45 * np.pi / 6 * np.prod(size):
            yield region, region.image
