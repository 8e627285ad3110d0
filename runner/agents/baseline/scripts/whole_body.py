"""The larger structures of a CT of any region: air, bone, enhanced organs and fluid, told apart by place and size.

What cannot be named with some certainty stays empty, for an invented structure counts 0 like a missed one.
Arrays are in RAS order, see `volumes`.
"""

import numpy as np
from airways import careful_tree, inner_air, lungs_of, trachea_seed
from scipy import ndimage as ndi
from segmentation import best_kidneys, body_of, closed, grow, largest, opened, spine_of
from volumes import (
    as_result,
    centre_of,
    components,
    describe,
    describe_result,
    ids_by_name,
    inspect,
    load,
    save,
)

__all__ = ["METHODS", "describe", "describe_result", "inspect", "load", "quality", "save"]

BONE_HU, MARROW_HU = 250.0, 130.0
LARGE_LUNG_ML = 300.0


def scene(item):
    """What all finders need, found once: calm volume, body, spine, places in mm from the spine, lungs by side."""
    if "scene" in item:
        return item["scene"]
    ct, spacing = item["data"], item["spacing"]
    calm = ndi.gaussian_filter(ct, 1.2 / spacing)
    body = body_of(calm)
    spine = spine_of(body, calm, spacing)
    axes = [np.arange(n) * step for n, step in zip(ct.shape, spacing, strict=True)]
    right, front = (axes[0] - spine[0])[:, None, None], (axes[1] - spine[1])[None, :, None]
    item["ct"], item["calm"] = ct, calm
    item["scene"] = {
        "calm": calm,
        "body": body,
        "spine": spine,
        "right": np.broadcast_to(right, ct.shape),
        "front": np.broadcast_to(front, ct.shape),
        "up": np.broadcast_to(axes[2][None, None, :], ct.shape),
        "bone": body & (calm > BONE_HU),
    }
    return item["scene"]


def sides(mask, place):
    """The two halves of a mask by name; the patient's right is where indices are high."""
    return {"right": mask & (place["right"] > 0), "left": mask & (place["right"] < 0)}


def chest(item, place):
    """Lobes of both lungs, trachea, and the heart between the lungs."""
    tree = careful_tree(item, trachea_seed(item))
    found = {}
    lungs = lungs_of(item, tree)
    if lungs.sum() * np.prod(item["spacing"]) / 1000 < LARGE_LUNG_ML:
        return found
    bottom, top = np.nonzero(lungs.any((0, 1)))[0][[0, -1]] * item["spacing"][2]
    for side, lung in sides(lungs, place).items():
        back, ahead = (np.percentile(place["front"][lung], q) for q in (1, 99)) if lung.any() else (0, 1)
        share_up = (place["up"] - bottom) / max(1.0, top - bottom)
        share_front = (place["front"] - back) / max(1.0, ahead - back)
        upper = share_up + 0.55 * share_front > 0.75
        found[f"lung_lower_lobe_{side}"] = lung & ~upper
        found[f"lung_upper_lobe_{side}"] = lung & upper
        if side == "right":
            found["lung_upper_lobe_right"] = lung & upper & (share_up > 0.5)
            found["lung_middle_lobe_right"] = lung & upper & (share_up <= 0.5)
    if tree.any():
        carina = np.nonzero(tree.any((0, 1)))[0][0] * item["spacing"][2]
        found["trachea"] = (
            tree & (np.abs(place["right"]) < 25) & (place["up"] > max(carina, bottom + 0.35 * (top - bottom)))
        )
    found["heart"] = heart_of(item, place, lungs, bottom, top)
    return found


def heart_of(item, place, lungs, bottom, top):
    """Enhanced tissue between and before the lungs, in the lower part of the chest."""
    low = (place["up"] > bottom + 0.05 * (top - bottom)) & (place["up"] < bottom + 0.5 * (top - bottom))
    middle = (np.abs(place["right"] + 15) < 75) & (place["front"] > 32) & (place["front"] < 165)
    soft = (
        (place["calm"] > 78) & (place["calm"] < 240) & low & middle & place["body"] & ~place["bone"] & ~lungs
    )
    return closed(largest(opened(soft, 12.0, item["spacing"])), 8.0, item["spacing"])


def belly(item, place, lungs):
    """Liver, spleen, kidneys and aorta; the first three are sought below the lungs or, without lungs, anywhere."""
    spacing, found = item["spacing"], {}
    roof = np.nonzero(lungs.any((0, 1)))[0] * spacing[2]
    below = place["up"] < (roof[0] + 90 if roof.size else np.inf)
    soft = place["body"] & (place["calm"] > 72) & (place["calm"] < 150) & ~place["bone"] & below & ~lungs
    firm = opened(soft, 7.0, spacing)
    for name, least, reach in (("liver", 250, (place["right"] > -70)), ("spleen", 50, place["right"] < -55)):
        pieces = components(firm & reach & (place["front"] > -60) & (place["front"] < 150), least, spacing)
        pieces = [piece for piece in pieces if sided(name, centre_of(piece, spacing), place)]
        if pieces:
            found[name] = grow(pieces[0], 2.0, spacing) & soft
    frame = {"body": place["body"], "spine": place["spine"]}
    for _, kidney, _ in best_kidneys(item, frame, (200.0, 160.0, 130.0)):
        side = "right" if centre_of(kidney, spacing)[0] > place["spine"][0] else "left"
        found[f"kidney_{side}"] = kidney
    return found


def sided(name, centre, place):
    aside = centre[0] - place["spine"][0]
    return aside > 20 if name == "liver" else aside < -70


def vessels(item, place):
    """The bright tube in front of the spine and to its left."""
    tube = (place["calm"] > 120) & (place["calm"] < 260) & (place["right"] < 8) & (place["right"] > -38)
    tube &= (
        (place["front"] > 14)
        & (place["front"] < 48)
        & place["body"]
        & ~grow(place["bone"], 2.0, item["spacing"])
    )
    pieces = components(opened(tube, 3.0, item["spacing"]), 8.0, item["spacing"])
    return {"aorta": grow(pieces[0], 3.0, item["spacing"]) & tube} if pieces else {}


def pelvis(item, place):
    """Hips and femurs where large bone lies far to both sides, and the bladder between them."""
    spacing, found = item["spacing"], {}
    wide = place["bone"] & (np.abs(place["right"]) > 30) & (np.abs(place["right"]) < 150)
    area = (wide & (np.abs(place["right"]) > 45)).sum((0, 1)) * spacing[0] * spacing[1]
    ribs_above = inner_air(item["data"]).sum((0, 1)) * spacing[0] * spacing[1] > 6000
    lowest_lung = np.nonzero(ribs_above)[0].min() if ribs_above.any() else area.size
    rows = np.nonzero(area[: max(0, lowest_lung - int(90 / spacing[2]))] > 900)[0]
    if rows.size < 4:
        return found
    top, joint = rows.max() * spacing[2], np.argmax(area[: rows.max() + 1]) * spacing[2]
    for side, bones in sides(wide & (place["up"] <= top + 5), place).items():
        shaft = (np.abs(place["right"]) > 80) & (place["up"] < joint + 15) & (place["front"] < 75)
        solid = ndi.binary_fill_holes(closed(bones, 4.0, spacing))
        found[f"femur_{side}"] = largest(solid & shaft)
        found[f"hip_{side}"] = largest(solid & ~found[f"femur_{side}"])
    fluid = (
        place["body"]
        & (np.abs(place["calm"] - 8) < 22)
        & (np.abs(place["right"]) < 60)
        & (np.abs(place["up"] - joint) < 60)
    )
    balls = components(opened(fluid & (place["front"] > 10), 8.0, spacing), 25.0, spacing)
    if balls:
        found["urinary_bladder"] = grow(balls[0], 3.0, spacing) & fluid
    return found


def head(item, place):
    """A closed shell of bone with soft tissue inside."""
    spacing = item["spacing"]
    shell = place["body"] & (place["calm"] > MARROW_HU + 60)
    inside = np.zeros_like(shell)
    for k in range(shell.shape[2]):
        inside[:, :, k] = ndi.binary_fill_holes(shell[:, :, k]) & ~shell[:, :, k]
    soft = components(
        opened(inside & (place["calm"] > -20) & (place["calm"] < 90), 10.0, spacing), 400.0, spacing
    )
    if not soft:
        return {}
    brain = grow(soft[0], 4.0, spacing) & inside
    return {
        "brain": brain,
        "skull": place["bone"] & grow(brain, 40.0, spacing) & (place["up"] > place["up"][brain].min() - 30),
    }


def back(item, place):
    """The muscles beside the spinous processes."""
    muscle = place["body"] & (place["calm"] > 20) & (place["calm"] < 90) & ~place["bone"]
    beside = (
        (np.abs(place["right"]) > 9)
        & (np.abs(place["right"]) < 52)
        & (place["front"] < -12)
        & (place["front"] > -60)
    )
    trunk = (place["body"].sum((0, 1)) * item["spacing"][0] * item["spacing"][1] > 35_000)[None, None, :]
    strip = opened(muscle & beside & trunk, 4.0, item["spacing"])
    return {f"autochthon_{side}": largest(mask) for side, mask in sides(strip, place).items() if mask.any()}


def by_rules(item, finders=("chest", "belly", "rest")):
    place = scene(item)
    found = chest(item, place)
    lungs = np.logical_or.reduce(
        [mask for name, mask in found.items() if name.startswith("lung_")] or [place["bone"] & False]
    )
    if "rest" in finders:
        found |= back(item, place) | pelvis(item, place) | head(item, place)
    if "belly" in finders:
        found |= belly(item, place, lungs) | vessels(item, place)
    return label_map(item, found)


def label_map(item, found):
    ids, labels = ids_by_name(item["task"]), np.zeros(item["data"].shape, np.uint8)
    for name, mask in sorted(found.items(), key=lambda pair: -pair[1].sum()):
        labels[mask] = ids[name]
    return as_result(item, dseg=labels)


METHODS = {
    "rules": by_rules,
    "organs": lambda item: by_rules(item, ("chest", "belly")),
    "air": lambda item: by_rules(item, ("chest",)),
}


def quality(item, result, _predict):
    """How many structures were named, each weighed by how far its border follows a step in the image."""
    labels, place = result["files"]["dseg.nii.gz"], scene(item)
    step = ndi.gaussian_gradient_magnitude(place["calm"], 1.0)
    inner = np.percentile(step[place["body"]], 60)
    total = 0.0
    for value in np.unique(labels[labels > 0]):
        mask = labels == value
        rim = mask & ~ndi.binary_erosion(mask)
        total += float((step[rim] > inner).mean())
    return total / len(ids_by_name(item["task"]))
