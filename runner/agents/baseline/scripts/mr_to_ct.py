"""A CT from an MR: tissues by signal, cavities and bone told apart by noise and depth, one HU value a tissue."""

import nibabel as nib
import numpy as np
from scipy import ndimage

AIR, FAT, SOFT, BONE, MARROW = -1000.0, -95.0, 45.0, 900.0, 400.0


def load(folder, task):
    image = nib.load(folder / task["output"]["shape_of"])
    mask = np.asarray(nib.load(folder / "mask.nii.gz").dataobj) > 0
    signal = np.asarray(image.dataobj).astype(np.float32)
    return {
        "name": folder.name,
        "image": signal,
        "mask": mask,
        "affine": image.affine,
        "spacing": tuple(map(float, image.header.get_zooms()[:3])),
    }


def describe(item):
    signal, mask = item["image"], item["mask"]
    print(
        f"shape {signal.shape}, spacing {[round(s, 3) for s in item['spacing']]} mm, "
        f"axes {nib.aff2axcodes(item['affine'])}"
    )
    print(
        f"signal {signal.min():.0f} to {signal.max():.0f}, inside of the mask "
        f"{np.percentile(signal[mask], (5, 50, 95)).round()}, it covers {mask.mean():.0%}"
    )


def describe_result(result):
    image = result["image"]
    print(f"result {image.shape}, {image.dtype}, {image.min():.0f} to {image.max():.0f} HU")


def level_of(item):
    """Signal over that of soft tissue, coils evened out, lightly smoothed."""
    signal, mask, spacing = item["image"], item["mask"], item["spacing"]
    bright = mask & (signal > np.percentile(signal[mask], 35))
    wide = [25 / s for s in spacing]
    field = ndimage.gaussian_filter(np.where(bright, signal, 0), wide) / np.maximum(
        ndimage.gaussian_filter(bright.astype(np.float32), wide), 1e-3
    )
    even = signal / np.maximum(field, 0.3 * np.median(field[mask]))
    return ndimage.gaussian_filter(even, [0.35 * min(spacing) / s for s in spacing])


def regions(item):
    """Level of the signal, the body without the air before its skin, and what is dark inside of it."""
    level = level_of(item)
    dark = level < dark_threshold(level[item["mask"]])
    air = ndimage.binary_propagation(~item["mask"], mask=~item["mask"] | dark)
    opened = ndimage.binary_opening(air, ndimage.generate_binary_structure(3, 1)) | ~item["mask"]
    skin = closed(~opened, item["spacing"], 4) & item["mask"]
    return level, skin, dark & skin


def dark_threshold(levels):
    """Between the dark and the bright group (Otsu), but well below soft tissue."""
    from skimage.filters import threshold_otsu

    return min(0.75 * float(threshold_otsu(np.clip(levels, 0, 2))), 0.45)


def closed(mask, spacing, millimetres):
    """Closed by a ball, away from the border of the grid."""
    steps = [max(1, round(millimetres / s)) for s in spacing]
    padded = np.pad(mask, [(n, n) for n in steps], mode="edge")
    grown = ndimage.distance_transform_edt(~padded, sampling=spacing) <= millimetres
    shut = ndimage.distance_transform_edt(grown, sampling=spacing) > millimetres
    return shut[tuple(slice(n, -n) for n in steps)] | mask


def classes(item):
    """Air in dark cavities that hold noise only; bone in dark sheets; marrow between them; fat where it is bright."""
    level, skin, dark = regions(item)
    noise = np.percentile(level[~item["mask"]], 75) if (~item["mask"]).any() else 0.02
    quiet = ndimage.uniform_filter(level, 3) < max(2.0 * noise, 0.03)
    core = ndimage.binary_opening(dark & quiet, iterations=1)
    cavity = ndimage.binary_propagation(
        core, mask=dark & (ndimage.uniform_filter(level, 3) < max(2.6 * noise, 0.05))
    )
    bone = dark & ~cavity & (ndimage.distance_transform_edt(skin, sampling=item["spacing"]) > 3)
    marrow = closed(bone, item["spacing"], 4) & ~bone & ~cavity & skin
    result = np.full(level.shape, AIR, dtype=np.float32)
    result[skin] = SOFT
    bright = float(np.percentile(level[skin & ~dark], 80))
    result[skin & (level > 0.5 * (1 + bright)) & (level > 1.12)] = FAT
    result[marrow] = MARROW
    result[bone] = BONE
    result[cavity] = AIR
    return softened(result, item)


def curve(item):
    """Hounsfield units as a smooth function of the signal alone, air kept outside of the skin."""
    level, skin, _dark = regions(item)
    result = np.interp(level, [0.0, 0.12, 0.35, 0.6, 1.1, 1.6], [AIR, 600, 250, SOFT, SOFT, FAT])
    return softened(np.where(skin, result, AIR), item)


def water(item):
    """Soft tissue inside of the skin and air outside."""
    _level, skin, _dark = regions(item)
    return softened(np.where(skin, SOFT, AIR), item)


def softened(result, item):
    """No scanner shows a border sharper than a voxel."""
    return {
        "image": ndimage.gaussian_filter(result.astype(np.float32), (0.4, 0.4, 0)),
        "affine": item["affine"],
    }


METHODS = {"classes": classes, "curve": curve, "water": water}


def shares(image, mask):
    """Share of the mask that is air, fat, soft tissue and bone."""
    values = image[mask]
    borders = ((-2000, -400), (-400, -30), (-30, 180), (180, 4000))
    return [float(np.mean((values > low) & (values <= high))) for low, high in borders]


def quality(item, result, _predict):
    """How much of the signal's variation the tissues explain, less where hardly any or too much bone was found."""
    signal, values = item["image"][item["mask"]], result["image"][item["mask"]]
    group = np.digitize(values, (-400, -30, 180))
    within = sum(signal[group == g].var() * np.mean(group == g) for g in range(4) if (group == g).any())
    bone = shares(result["image"], item["mask"])[3]
    return max(0.0, 1 - within / max(signal.var(), 1e-6)) * (1.0 if 0.02 <= bone <= 0.35 else 0.3)


def save(result, folder, task):
    nib.save(nib.Nifti1Image(result["image"], result["affine"]), folder / task["files"][0])


def inspect(item, folder, task, show):
    image = nib.load(folder / task["files"][0])
    result = np.asarray(image.dataobj)
    show(
        f"shape {result.shape} (input {item['image'].shape}), {result.dtype}, "
        f"range {result.min():.0f} to {result.max():.0f} HU"
    )
    if result.shape != item["image"].shape or not np.allclose(image.affine, item["affine"]):
        return ["shape or affine is not the input's"]
    air, fat, soft, bone = shares(result, item["mask"])
    outside = float(np.mean(result[~item["mask"]] > -500)) if (~item["mask"]).any() else 0.0
    show(
        f"inside of the mask: air {air:.0%}, fat {fat:.0%}, soft tissue {soft:.0%}, bone {bone:.0%}; "
        f"tissue outside of it {outside:.1%}"
    )
    problems = []
    if not np.isfinite(result).all():
        problems.append("not finite")
    if result.min() < -1100 or result.max() > 3500:
        problems.append("outside of the Hounsfield scale")
    if soft < 0.2 or bone > 0.5:
        problems.append("no plausible body")
    if outside > 0.05:
        problems.append("tissue outside of the body")
    return problems
