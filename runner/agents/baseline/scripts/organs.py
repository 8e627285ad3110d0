"""Organs, vessels and lesions of the trunk in contrast CT, from the surest structure to the least sure.

The priors and the frame they are written in are those of ``adult_anatomy.py``.
"""

import labelmaps
import numpy as np
import segmentation
from adult_anatomy import (
    AIR,
    BONE,
    LESIONS,
    PRIORS,
    ellipsoid,
    filled,
    frame,
    in_box,
    likely,
    lumps,
    to_half,
    typical,
)
from scipy import ndimage as ndi
from segmentation import around, closed, describe, grow, largest, opened, shrink

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]


SAME = {"hepatic_tumour": "liver_lesion"}
PAIRS = {
    "pancreas-seg-task": {"organ": ("pancreas", "pancreatic_lesion"), "lesion": ("pancreatic_lesion",)},
    "liver-seg-task": {"organ": ("liver", "liver_lesion"), "lesion": ("liver_lesion",)},
}
"""Targets of a task that unite structures."""


# --- organs -----------------------------------------------------------------------------------------------------------


def liver_of(item, place, free):
    """The largest organ of the right side, its vessels and lesions filled in."""
    smooth, spacing = place["smooth"], item["spacing"]
    zone = free & (place["right"] > -70) & (place["up"] > -90) & (place["up"] < 190)
    level = typical(smooth[zone & (place["right"] > 25) & (place["up"] > 15)], 50, 170)
    if level is None:
        return np.zeros_like(free), 100.0
    core = opened(zone & (np.abs(smooth - level) < 26), 6.0, spacing)
    liver = largest(core)
    window = around(liver, 25.0, spacing) if liver.any() else (slice(None),) * 3
    soft = free & (smooth > level - 75) & (smooth < level + 110)
    liver[window] |= closed(liver[window], 12.0, spacing) & soft[window]
    return filled(liver) & soft, level


def lungs_of(place, spacing):
    """Air inside the chest: large, above the kidneys, one on each side of the spine."""
    air = place["body"] & (place["smooth"] < AIR) & (place["up"] > 40)
    marks, count = ndi.label(air)
    sizes = ndi.sum_labels(air, marks, range(1, count + 1)) * np.prod(spacing) / 1000 if count else []
    lungs = np.isin(marks, [number for number, size in enumerate(sizes, 1) if size > 120])
    lungs = closed(lungs, 6.0, spacing) & place["body"] & (place["smooth"] < 60)
    return {"lung_right": lungs & (place["right"] > 0), "lung_left": lungs & (place["right"] <= 0)}


def great_vessels(item, place):
    """Two bright columns in front of the spine: the aorta at the left, the cava at the right."""
    calm, spacing = item["calm"], item["spacing"]
    bone = grow(opened(place["body"] & (calm > BONE), 3.0, spacing), 1.5, spacing)
    zone = (
        place["body"] & ~bone & (place["front"] > 22) & (place["front"] < 66) & (np.abs(place["right"]) < 40)
    )
    column = calm[zone & (calm > 90) & (calm < 300)]
    level = float(np.percentile(column, 80)) if column.size else 150.0
    bright = zone & (calm > 0.7 * level) & (calm < 1.6 * level) & (place["up"] > -160)
    sides = {"aorta": bright & (place["right"] <= 2), "postcava": bright & (place["right"] > 2)}
    return {name: largest(opened(mask, 3.0, spacing)) for name, mask in sides.items()}, level


def portal_of(item, place, free, level):
    """Bright tubes between the great vessels and the liver that are neither."""
    calm, spacing = item["calm"], item["spacing"]
    bright = free & in_box(place, PRIORS["veins"]) & (calm > 0.8 * level) & (calm < 1.5 * level)
    return largest(closed(bright, 3.0, spacing)) & free


def colon_of(item, place, free):
    """Gas and stool in the belly with a wall around, away from the stomach."""
    spacing, ct = item["spacing"], place["smooth"]
    gas = free & (ct < -250) & (place["up"] < 75) & place["body"]
    flanks = (np.abs(place["right"]) > 70) | (place["front"] > 70) | (place["up"] < -120)
    tube = opened(gas & flanks, 2.0, spacing)
    wall = grow(tube, 6.0, spacing) & free & (ct < 130)
    content = grow(tube, 45.0, spacing) & free & (np.abs(place["right"]) > 85) & (ct > -40) & (ct < 75)
    content = opened(content, 5.0, spacing)
    return closed(tube | wall | content, 4.0, spacing) & free


def femurs_of(item, place):
    """Bone at the sides below the hips' roofs."""
    bone = place["body"] & (item["calm"] > BONE) & (place["up"] < -290) & (np.abs(place["right"]) > 50)
    bone = opened(filled(closed(bone, 3.0, item["spacing"]), axes=(2,)), 4.0, item["spacing"])
    return {"femur_right": bone & (place["right"] > 0), "femur_left": bone & (place["right"] <= 0)}


def adrenals_of(item, place, free):
    """Small soft tissue in the fat above and before each kidney's upper pole."""
    names = ("adrenal_gland_right", "adrenal_gland_left")
    return {name: likely(item, place, PRIORS[name], free, image="calm") for name in names}


def pancreatic_lesion(item, core, free):
    """A compact pocket beside the enhanced gland, darker than it and brighter than fluid."""
    spacing, calm = item["spacing"], item["calm"]
    if not core.any():
        return core
    level = float(np.median(calm[core]))
    dark = grow(core, 24.0, spacing) & free & ~core & (calm > 34) & (calm < level - 20)
    beside, found = grow(core, 7.0, spacing), np.zeros_like(core)
    for region, part in lumps(opened(dark, 4.5, spacing), spacing):
        if (part & beside[region.slice]).any():
            found[region.slice] |= part
    return to_half(found, item, free & ~core & (calm < level - 10), 3.0)


def lesions_in(item, organ, level):
    """Compact pockets of an organ that are clearly darker than it and not fluid."""
    spacing, smooth = item["spacing"], frame(item)["smooth"]
    found = np.zeros_like(organ)
    for region, part in lumps(opened(organ & (smooth > 36) & (smooth < level - 20), 5.0, spacing), spacing):
        found[region.slice] |= part
    return grow(found, 1.5, spacing) & organ & (smooth > 25) & (smooth < level - 12)


# --- the tasks' targets -----------------------------------------------------------------------------------------------


def anatomy(item):
    """Every structure the priors know, found from the surest to the least sure; each takes what is still free."""
    if "anatomy" in item:
        return item["anatomy"]
    place, spacing = frame(item), item["spacing"]
    found = lungs_of(place, spacing)
    for mask in place["kidneys"]:
        side = "right" if (mask & (place["right"] > 0)).sum() > mask.sum() / 2 else "left"
        found[f"kidney_{side}"] = mask
    vessels, vessel_level = great_vessels(item, place)
    found |= vessels | femurs_of(item, place)
    free = place["body"] & ~union(found)
    free &= ~grow(place["body"] & (item["calm"] > BONE), 2.0, spacing) & shrink(place["body"], 10.0, spacing)
    solid = free & shrink(place["body"], 22.0, spacing)
    liver, liver_level = liver_of(item, place, solid)
    found["liver"] = to_half(liver, item, free, 6.0)

    def settle(name, mask):
        found[name] = mask & free
        solid[mask] = False

    solid &= ~found["liver"]
    spleen = closed(likely(item, place, PRIORS["spleen"], solid), 4.0, spacing)
    settle("spleen", to_half(spleen, item, free & ~found["liver"], 6.0))
    settle("veins", portal_of(item, place, solid, vessel_level))
    beside = solid & grow(found["liver"], 14.0, spacing)
    for name, where in (("gall_bladder", beside), ("bladder", solid)):
        fluid = likely(item, place, PRIORS[name], where)
        settle(name, grow(fluid, 5.0, spacing) & where & (place["smooth"] > -40) & (place["smooth"] < 48))
    core = likely(item, place, PRIORS["pancreas"], solid)
    lesion = pancreatic_lesion(item, core, solid & in_box(place, LESIONS["pancreatic_lesion"]))
    settle("pancreatic_lesion", lesion)
    settle("pancreas", to_half(core, item, solid, 4.5))
    stomach = likely(item, place, PRIORS["stomach"], solid)
    settle("stomach", filled(closed(stomach, 14.0, spacing)) & solid)
    settle("duodenum", likely(item, place, PRIORS["duodenum"], solid))
    settle("colon", colon_of(item, place, solid))
    settle("prostate", likely(item, place, PRIORS["prostate"], solid))
    found |= adrenals_of(item, place, solid)
    item["anatomy"] = {
        "masks": found,
        "free": solid,
        "liver_level": liver_level,
        "vessel_level": vessel_level,
    }
    return item["anatomy"]


def union(masks):
    return np.logical_or.reduce(list(masks.values()))


def hepatic_vessels(item, parts):
    """Voxels of the liver that are brighter than it, in pieces that are not specks."""
    place, spacing = frame(item), item["spacing"]
    inside = shrink(parts["masks"]["liver"], 2.0, spacing)
    sharp = ndi.gaussian_filter(item["ct"], 1.6 / spacing)
    bright = inside & (sharp > parts["liver_level"] + 24) & (place["up"] > -60)
    marks, count = ndi.label(bright, np.ones((3, 3, 3)))
    sizes = ndi.sum_labels(bright, marks, range(1, count + 1)) * np.prod(spacing) / 1000 if count else []
    return np.isin(marks, [number for number, size in enumerate(sizes, 1) if size > 0.6])


def colon_cancer(item, parts):
    """A compact, enhancing mass that touches gas or stool and is no known organ."""
    place, spacing, smooth = frame(item), item["spacing"], frame(item)["smooth"]
    known = union(
        {name: mask for name, mask in parts["masks"].items() if name not in ("colon", "duodenum", "stomach")}
    )
    enhanced = place["body"] & shrink(place["body"], 22.0, spacing) & ~grow(known, 2.0, spacing)
    enhanced &= (smooth > 74) & (smooth < 135) & (place["up"] < 80)
    gas = grow(place["body"] & (smooth < -150) & (place["up"] < 80), 9.0, spacing)
    best, chosen = 0.0, np.zeros_like(known)
    for region, part in lumps(opened(enhanced, 6.0, spacing), spacing):
        volume = region.area * np.prod(spacing) / 1000
        beside = (gas[region.slice] & part).any()
        score = min(volume, 60.0) * (1.0 if beside else 0.5)
        if volume > 5 and score > best:
            best, chosen = score, np.zeros_like(known)
            chosen[region.slice] = part
    return grow(chosen, 2.5, spacing) & (smooth > 45) & (smooth < 140)


def with_priors(item):
    parts = anatomy(item)
    masks = dict(parts["masks"])
    masks["liver_lesion"] = lesions_in(item, masks["liver"], parts["liver_level"])
    masks["hepatic_vessel"] = hepatic_vessels(item, parts)
    masks["colon_cancer"] = colon_cancer(item, parts)
    return as_result(item, masks)


def with_windows(item):
    """What lies in a structure's box and brightness, without components; lesions are left out."""
    place = frame(item)
    smooth = place["smooth"]
    boxes = {
        name: place["body"] & in_box(place, prior) & (smooth > prior.hu[0]) & (smooth < prior.hu[1])
        for name, prior in PRIORS.items()
    }
    return as_result(item, boxes)


def with_places(item):
    """An ellipsoid in each structure's box, whatever the brightness; lesions are left out."""
    place = frame(item)
    return as_result(item, {name: place["body"] & ellipsoid(place, prior) for name, prior in PRIORS.items()})


def as_result(item, masks):
    """The task's targets by name; a structure that was not looked for is empty."""
    nothing = np.zeros(item["ct"].shape, bool)
    unions = PAIRS.get(item["task"]["id"], {})
    targets = {}
    for target in item["task"]["output"]["targets"]:
        parts = unions.get(target["name"], (SAME.get(target["name"], target["name"]),))
        targets[target["name"]] = np.logical_or.reduce([masks.get(part, nothing) for part in parts])
    return {"masks": targets, "item": item}


METHODS = {"prior": with_priors, "window": with_windows, "place": with_places}


# --- what the shared steps ask for ------------------------------------------------------------------------------------


def load(folder, task):
    return segmentation.load(folder, task) | {"task": task}


def describe_result(result):
    for name, mask in result["masks"].items():
        print(f"{name}: {mask.sum()} voxels")


def quality(item, result, _predict):
    """How plausible the targets are: volume, brightness within limits, one piece; a missing lesion counts a little."""
    place, spacing = frame(item), item["spacing"]
    scores = []
    for name, mask in result["masks"].items():
        parts = PAIRS.get(item["task"]["id"], {}).get(name, (SAME.get(name, name),))
        prior = (PRIORS | LESIONS)[parts[0]]
        if not mask.any():
            scores.append(0.2 if parts[0] in LESIONS else 0.0)
            continue
        volume = mask.sum() * np.prod(spacing) / 1000
        bright = (place["smooth"][mask] > prior.hu[0] - 25) & (place["smooth"][mask] < prior.hu[1] + 25)
        piece = largest(mask).sum() / mask.sum()
        scores.append(np.exp(-((np.log(volume / prior.volume) / 1.2) ** 2)) * bright.mean() * piece)
    return float(np.mean(scores))


def save(result, folder, task):
    labelmaps.save(result["masks"], result["item"], folder, task)


def inspect(item, folder, task, show):
    sure = {"organ": (15, 4000), "liver": (200, 4000), "spleen": (15, 2000), "hepatic_vessel": (1, 400)}
    return labelmaps.inspect(item, folder, task, show, sure)
