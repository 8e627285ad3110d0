"""The prostate's zones in T2-weighted and diffusion MR: the gland by its diffusion, the zones by T2 and place.

Arrays are in RAS order: indices grow towards the patient's right, front and head. Channel 0 is T2, channel 1 ADC.
"""

import labelmaps
import nibabel as nib
import numpy as np
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform
from scipy import ndimage as ndi
from segmentation import closed, grow, largest, opened, shrink
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops

GLAND_ML, GLAND_MM = 45.0, (25.0, 19.0, 20.0)
REACH_MM = 45.0
"""The gland is looked for within this distance of the middle of the field of view, which is centred on it."""


def load(folder, task):
    image = nib.load(folder / task["output"]["files"][0]["grid_of"])
    to_ras = ornt_transform(io_orientation(image.affine), axcodes2ornt("RAS"))
    both = apply_orientation(np.asarray(image.dataobj, dtype=np.float32), to_ras)
    spacing = np.array(image.header.get_zooms()[:3], dtype=float)[np.argsort(to_ras[:, 0])]
    t2, adc = (ndi.gaussian_filter(both[..., channel], 1.2 / spacing) for channel in (0, 1))
    shape = t2.shape
    return {
        "task": task,
        "image": image,
        "t2": t2,
        "adc": adc,
        "spacing": spacing,
        "full": shape,
        "factor": np.ones(3, int),
    }


def describe(item):
    spacing = ", ".join(f"{step:.3f}" for step in item["spacing"])
    print(f"shape {item['image'].shape}, {item['image'].get_data_dtype()}, spacing {spacing} mm in RAS order")
    for name in ("t2", "adc"):
        print(name, "percentiles", np.percentile(item[name], (1, 50, 99)).round())


def describe_result(result):
    for name, mask in result["masks"].items():
        print(f"{name}: {mask.sum()} voxels")


def offsets(item):
    """Millimetres from the middle of the field of view, along each axis."""
    shape = item["t2"].shape
    axes = np.ogrid[tuple(map(slice, shape))]
    return [
        (axis - (size - 1) / 2) * step for axis, size, step in zip(axes, shape, item["spacing"], strict=True)
    ]


def gland_of(item):
    """Free diffusion (unlike fat and muscle), less free than urine, compact, in the middle; kept with the item."""
    if "gland" not in item:
        right, front, up = offsets(item)
        spacing, adc = item["spacing"], item["adc"]
        near = (right**2 + front**2 < REACH_MM**2) & (np.abs(up) < 40)
        low, high = labelmaps.signal_levels(adc[near], 3)
        urine = opened(adc > max(1.15 * high, 2000.0), 3.0, spacing)
        tissue = near & (adc > (low + high) / 2) & ~grow(urine, 2.0, spacing)
        marks = label(opened(tissue, 4.0, spacing), connectivity=1)
        best = max(regionprops(marks), key=lambda region: gland_score(region, item), default=None)
        core = marks == best.label if best is not None else np.zeros_like(near)
        item["gland"] = filled(closed(core, 5.0, spacing)) & near & ~urine
    return item["gland"]


def gland_score(region, item):
    spacing = item["spacing"]
    centre = (np.array(region.centroid) - (np.array(item["t2"].shape) - 1) / 2) * spacing
    volume = region.area * np.prod(spacing) / 1000
    return float(np.exp(-((np.log(volume / GLAND_ML) / 0.8) ** 2) - ((centre / 25.0) ** 2).sum()))


def filled(mask):
    planes = [ndi.binary_fill_holes(mask[:, :, k]) for k in range(mask.shape[2])]
    return np.stack(planes, axis=2)


def with_zones(item):
    """Dark tissue of the gland in one piece at its front is the transition zone; the rest is the peripheral zone."""
    gland, spacing = gland_of(item), item["spacing"]
    if not gland.any():
        return as_result(item, gland, gland)
    inner = shrink(gland, 2.0, spacing)
    level = threshold_otsu(item["t2"][inner]) if inner.any() else float(np.median(item["t2"][gland]))
    dark = opened(gland & (item["t2"] < level), 3.0, spacing)
    marks = label(dark, connectivity=1)
    front = offsets(item)[1]
    best = max(
        regionprops(marks),
        key=lambda region: region.area * (1.5 if ahead(region, front, gland) else 1.0),
        default=None,
    )
    core = marks == best.label if best is not None else np.zeros_like(gland)
    transition = filled(closed(core, 4.0, spacing)) & gland
    return as_result(item, gland & ~grow(transition, 1.0, spacing), transition)


def ahead(region, front, gland):
    """Whether a piece lies before the middle of the gland."""
    middle = np.broadcast_to(front, gland.shape)[gland].mean()
    return front[0, int(region.centroid[1]), 0] > middle


def with_halves(item):
    """The gland cut at a fixed depth: the front is the transition, the back the peripheral zone."""
    gland = gland_of(item)
    front = np.broadcast_to(offsets(item)[1], gland.shape)
    cut = np.percentile(front[gland], 45) if gland.any() else 0.0
    return as_result(item, gland & (front <= cut), gland & (front > cut))


def with_place(item):
    """Two ellipsoids in the middle of the field of view, whatever the signal."""
    gland = ellipsoid(item, (0.0, 0.0, 0.0), GLAND_MM)
    inner = ellipsoid(item, (0.0, 5.0, 2.0), tuple(0.72 * radius for radius in GLAND_MM)) & gland
    return as_result(item, gland & ~inner, inner)


def ellipsoid(item, centre, radii):
    return sum(((axis - c) / r) ** 2 for axis, c, r in zip(offsets(item), centre, radii, strict=True)) < 1


def as_result(item, peripheral, transition):
    return {"masks": {"peripheral_zone": peripheral, "transition_zone": transition}, "item": item}


METHODS = {"zones": with_zones, "halves": with_halves, "place": with_place}


def quality(item, result, _predict):
    """A gland of plausible volume, free diffusion inside, and a peripheral zone brighter than the transition zone."""
    peripheral, transition = result["masks"].values()
    if not (peripheral.any() and transition.any()):
        return 0.0
    spacing, gland = item["spacing"], peripheral | transition
    volume = gland.sum() * np.prod(spacing) / 1000
    around = grow(gland, 6.0, spacing) & ~grow(gland, 2.0, spacing)
    diffusion = np.clip(item["adc"][gland].mean() / max(item["adc"][around].mean(), 1e-6) - 1, 0, 1)
    contrast = np.clip(item["t2"][peripheral].mean() / max(item["t2"][transition].mean(), 1e-6) - 1, 0, 1)
    sure = np.exp(-((np.log(volume / GLAND_ML) / 0.8) ** 2))
    return float((sure + diffusion + contrast + largest(transition).sum() / transition.sum()) / 4)


def save(result, folder, task):
    labelmaps.save(result["masks"], result["item"], folder, task)


def inspect(item, folder, task, show):
    return labelmaps.inspect(
        item, folder, task, show, {"peripheral_zone": (2, 150), "transition_zone": (2, 250)}
    )
