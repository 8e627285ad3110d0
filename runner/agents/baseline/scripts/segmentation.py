"""Kidneys and kidney tumours in contrast CT by windows, morphology in millimetres and anatomical priors.

Arrays are in RAS order: the first axis runs to the patient's right or left, the second to the front, the third upwards.
"""

import nibabel as nib
import numpy as np
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform
from scipy import ndimage as ndi
from skimage.measure import block_reduce, label, regionprops
from skimage.segmentation import watershed

BONE_HU, FAT_HU = 300.0, -20.0
WORKING_MM = 2.4
LEVELS_HU = (200.0, 160.0, 130.0, 105.0)
KIDNEY_ML = 160.0


def load(folder, task):
    """The CT in RAS order, averaged to about 2.4 mm where voxels are finer; masks are brought back on saving."""
    image = nib.load(folder / task["output"]["files"][0]["grid_of"])
    to_ras = ornt_transform(io_orientation(image.affine), axcodes2ornt("RAS"))
    ct = apply_orientation(np.asarray(image.dataobj, dtype=np.float32), to_ras)
    spacing = np.array(image.header.get_zooms()[:3], dtype=float)[np.argsort(to_ras[:, 0])]
    factor = np.maximum(1, (WORKING_MM // spacing).astype(int))
    full = ct.shape
    if factor.max() > 1:
        ct, spacing = block_reduce(ct, tuple(factor), np.mean, cval=float(ct.min())), spacing * factor
    calm = ndi.gaussian_filter(ct, 1.2 / spacing)
    return {
        "name": folder.name,
        "image": image,
        "full": full,
        "factor": factor,
        "ct": ct,
        "calm": calm,
        "spacing": spacing,
    }


def describe(item):
    image, ct = item["image"], item["ct"]
    spacing = ", ".join(f"{step:.3f}" for step in image.header.get_zooms()[:3])
    print(f"shape {image.shape}, {image.get_data_dtype()}, spacing {spacing} mm")
    print(f"orientation {''.join(nib.aff2axcodes(image.affine))}, HU {ct.min():.0f} to {ct.max():.0f}")


def describe_result(result):
    for name in ("organ", "lesion"):
        print(f"{name}: {result[name].shape}, {result[name].sum()} voxels")


# --- morphology in millimetres ----------------------------------------------------------------------------------------


def grow(mask, millimetres, spacing):
    if not mask.any():
        return mask
    window, result = around(mask, millimetres, spacing), np.zeros_like(mask)
    result[window] = ndi.distance_transform_edt(~mask[window], sampling=spacing) <= millimetres
    return result


def shrink(mask, millimetres, spacing):
    if not mask.any():
        return mask
    window, result = around(mask, spacing.max(), spacing), np.zeros_like(mask)
    result[window] = ndi.distance_transform_edt(mask[window], sampling=spacing) > millimetres
    return result


def around(mask, millimetres, spacing):
    """The window of the array that holds ``mask`` and a margin."""
    window = []
    for axis, (step, size) in enumerate(zip(spacing, mask.shape, strict=True)):
        places = np.nonzero(mask.any(axis=tuple({0, 1, 2} - {axis})))[0]
        margin = int(np.ceil(millimetres / step))
        window.append(slice(max(0, places[0] - margin), min(size, places[-1] + margin + 1)))
    return tuple(window)


def opened(mask, millimetres, spacing):
    return mask & grow(shrink(mask, millimetres, spacing), millimetres, spacing)


def closed(mask, millimetres, spacing):
    return mask | shrink(grow(mask, millimetres, spacing), millimetres, spacing)


def millilitres(mask, spacing):
    return float(mask.sum() * np.prod(spacing) / 1000)


# --- the frame: body and spine ----------------------------------------------------------------------------------------


def largest(mask):
    marks, count = ndi.label(mask)
    return marks == 1 + np.argmax(ndi.sum_labels(mask, marks, range(1, count + 1))) if count else mask


def body_of(calm):
    body = largest(calm > -300)
    for k in range(body.shape[2]):
        body[:, :, k] = ndi.binary_fill_holes(body[:, :, k])
    return body


def frame_of(item):
    """Body mask, and the spine's place in millimetres (across, front-back); kept with the item once found."""
    if "frame" not in item:
        body = body_of(item["calm"])
        item["frame"] = {"body": body, "spine": spine_of(body, item["calm"], item["spacing"])}
    return item["frame"]


def spine_of(body, calm, spacing):
    """Bone in the back half of the body, near its middle."""
    if not body.any():
        return 0.0, 0.0
    across, front, _ = (axis * step for axis, step in zip(np.nonzero(body), spacing, strict=True))
    middle = np.median(across)
    x, y, _ = (axis * step for axis, step in zip(np.nonzero(body & (calm > 200)), spacing, strict=True))
    near = (np.abs(x - middle) < 35) & (y < np.median(front))
    return (np.median(x[near]), np.median(y[near])) if near.sum() > 20 else (middle, np.percentile(front, 30))


# --- kidneys ----------------------------------------------------------------------------------------------------------


def place_score(region, frame, spacing):
    """How much a component looks like a kidney by volume, distance from the spine, length and compactness; 0 to 1."""
    x, y, _ = np.array(region.centroid) * spacing
    size = (np.array(region.bbox[3:]) - np.array(region.bbox[:3])) * spacing
    volume = region.area * np.prod(spacing) / 1000
    aside, ahead = abs(x - frame["spine"][0]), y - frame["spine"][1]
    compact = volume * 1000 / (np.pi / 6 * np.prod(size))
    return float(
        np.exp(-((np.log(volume / KIDNEY_ML) / 0.9) ** 2))
        * np.exp(-(((aside - 60) / 25) ** 2))
        * np.exp(-(((ahead - 5) / 40) ** 2))
        * np.exp(-(((size[2] - 110) / 60) ** 2))
        * min(1.0, compact / 0.6)
    )


def best_kidneys(item, frame, levels):
    """The best component on each side over several thresholds: [(score, mask, level)], at most one a side."""
    calm, spacing = item["calm"], item["spacing"]
    bone = opened(frame["body"] & (calm > BONE_HU), 1.0, spacing)
    free = frame["body"] & ~grow(bone, 3.0, spacing)
    best = {}
    for level in levels:
        bright = opened(free & (calm > level), 4.0, spacing)
        marks = label(bright, connectivity=1)
        for region in regionprops(marks):
            if region.area * np.prod(spacing) < 15_000:
                continue
            score = place_score(region, frame, spacing)
            side = region.centroid[0] * spacing[0] > frame["spine"][0]
            if score > max(0.05, best.get(side, (0.0,))[0]):
                best[side] = (score, marks == region.label, level)
    return list(best.values())


def refined(mask, item, frame):
    """Regrow a component to the brightness half way between its own and the fat around it, and close small gaps."""
    calm, spacing = item["calm"], item["spacing"]
    inside = float(np.median(item["ct"][mask]))
    edge = (inside + 30.0) / 2
    near = grow(mask, 5.0, spacing) & frame["body"] & (calm > edge) & (calm < inside + 150)
    return ndi.binary_fill_holes(closed(opened(largest(near | mask), 2.0, spacing), 2.0, spacing)), inside


# --- tumours ----------------------------------------------------------------------------------------------------------


def tumour_of(kidney, others, inside, item, frame):
    """Compact soft tissue, darker than the kidney, that shares much of its surface with it."""
    spacing = item["spacing"]
    window = around(kidney, 50.0, spacing)
    near, ct, calm = kidney[window], item["ct"][window], item["calm"][window]
    allowed = frame["body"][window] & ~others[window] & ~near & grow(near, 45.0, spacing)
    soft = allowed & (calm > FAT_HU + 20) & (calm < 0.85 * inside)
    core = opened(soft, 3.0, spacing)
    touching = grow(near, 4.0, spacing)
    found = np.zeros_like(near)
    for region in regionprops(basins_of(core, spacing)):
        mean = float(ct[region.slice][region.image].mean())
        if region.area * np.prod(spacing) < 500 or not 30 < mean < 0.8 * inside:
            continue
        basin = np.pad(region.image, 1)
        rind = (basin & ~shrink(basin, float(spacing.max()), spacing))[1:-1, 1:-1, 1:-1]
        if (rind & touching[region.slice]).sum() > 0.18 * rind.sum():
            found[region.slice] |= region.image
    lesion = np.zeros_like(kidney)
    lesion[window] = grow(found, 2.0, spacing) & (soft | found)
    return lesion


def basins_of(mask, spacing):
    """Cut a mask at its necks: one label for each summit of the distance to its border."""
    depth = ndi.gaussian_filter(ndi.distance_transform_edt(mask, sampling=spacing), 2.0 / spacing)
    summits = mask & (depth >= ndi.maximum_filter(depth, size=odd_size(9.0, spacing)) - 1e-6)
    return watershed(-depth, label(summits), mask=mask)


def odd_size(millimetres, spacing):
    return tuple(int(2 * round(millimetres / 2 / step) + 1) for step in spacing)


# --- the candidates ---------------------------------------------------------------------------------------------------


def with_priors(item):
    frame = frame_of(item)
    kidneys = [refined(mask, item, frame) for _, mask, _ in best_kidneys(item, frame, LEVELS_HU)]
    organ = np.zeros(item["ct"].shape, bool)
    lesion = np.zeros_like(organ)
    for kidney, _ in kidneys:
        organ |= kidney
    for kidney, inside in kidneys:
        lesion |= tumour_of(kidney, organ & ~kidney, inside, item, frame)
    return as_result(organ | lesion, lesion, item)


def with_growth(item):
    """Seeds are the brightest compact blobs beside the spine; the region grows over voxels close to the seed's mean."""
    frame, calm = frame_of(item), item["calm"]
    organ = np.zeros(calm.shape, bool)
    for _, seed, _ in best_kidneys(item, frame, LEVELS_HU[::2]):
        mean, spread = float(calm[seed].mean()), float(calm[seed].std())
        similar = frame["body"] & (np.abs(calm - mean) < 3 * spread)
        organ |= ndi.binary_propagation(seed, mask=(similar & grow(seed, 15.0, item["spacing"])) | seed)
    return as_result(organ, np.zeros_like(organ), item)


def with_threshold(item):
    frame = frame_of(item)
    organ = np.zeros(item["ct"].shape, bool)
    for _, mask, _ in best_kidneys(item, frame, LEVELS_HU[3:4]):
        organ |= mask
    return as_result(organ, np.zeros_like(organ), item)


def as_result(organ, lesion, item):
    return {"organ": organ, "lesion": lesion, "item": item}


METHODS = {"prior": with_priors, "grow": with_growth, "threshold": with_threshold}


def quality(item, result, _predict):
    """Plausibility of the organ: place, likeness of the sides, contrast across the border, no bulge left out."""
    frame, spacing, organ = frame_of(item), item["spacing"], result["organ"]
    if not organ.any():
        return 0.0
    regions = sorted(regionprops(label(organ)), key=lambda region: -region.area)[:2]
    place = sum(place_score(region, frame, spacing) for region in regions) / 2
    balance = regions[1].area / regions[0].area if len(regions) == 2 else 0.0
    rim = organ & ~shrink(organ, 3.0, spacing)
    halo = grow(organ, 4.0, spacing) & ~grow(organ, 1.0, spacing)
    contrast = np.clip((item["ct"][rim].mean() - item["ct"][halo].mean()) / 150, 0, 1)
    left_over = tumour_of(organ, np.zeros_like(organ), float(np.median(item["ct"][organ])), item, frame)
    return float((place + balance + contrast + (not left_over.any())) / 4)


def on_full_grid(mask, item):
    """Undo the averaging of ``load``."""
    if item["factor"].max() == 1:
        return mask
    fine = ndi.zoom(mask.astype(np.float32), item["factor"], order=1, mode="nearest", grid_mode=True) > 0.5
    return fine[tuple(slice(size) for size in item["full"])]


def save(result, folder, task):
    """Back to the grid and orientation of the CT, as 8-bit masks with its affine."""
    image = result["item"]["image"]
    back = ornt_transform(axcodes2ornt("RAS"), io_orientation(image.affine))
    for name in task["files"]:
        mask = on_full_grid(result[name.split(".")[0]], result["item"]).astype(np.uint8)
        nib.save(nib.Nifti1Image(apply_orientation(mask, back), image.affine), folder / name)


def inspect(item, folder, task, show):
    image, problems, masks = item["image"], [], {}
    for name in task["files"]:
        written = nib.load(folder / name)
        mask = np.asarray(written.dataobj)
        ids, counts = np.unique(mask, return_counts=True)
        volume = millilitres(mask > 0, written.header.get_zooms()[:3])
        pieces = ndi.label(mask > 0)[1]
        show(
            f"{name}: shape {mask.shape}, {mask.dtype}, labels {dict(zip(ids.tolist(), counts.tolist(), strict=True))}"
        )
        show(f"  {volume:.1f} ml in {pieces} pieces, same affine {np.allclose(written.affine, image.affine)}")
        if mask.shape != image.shape or not np.allclose(written.affine, image.affine):
            return [f"{name} is not on the grid of the CT"]
        if not set(ids.tolist()) <= {0, 1}:
            problems.append(f"{name} has labels {ids.tolist()}")
        masks[name.split(".")[0]] = mask > 0
    volume = millilitres(masks["organ"], image.header.get_zooms()[:3])
    if not 20 < volume < 1600:
        problems.append(f"organ of {volume:.0f} ml")
    if (masks["lesion"] & ~masks["organ"]).any():
        problems.append("lesion outside the organ")
    return problems
