"""Bring thin slices back from interpolated thick ones: slab means are known exactly, the rest is a choice."""

import nibabel as nib
import numpy as np

THICK = 4
STEPS = 60
AIR = -1024.0


def load(folder, task):
    image = nib.load(folder / task["output"]["shape_of"])
    volume = np.asarray(image.dataobj).astype(np.float32)
    return {
        "name": folder.name,
        "image": volume,
        "affine": image.affine,
        "spacing": image.header.get_zooms()[:3],
    }


def describe(item):
    volume, slabs = item["image"], slabs_of(item["image"])
    print(
        f"shape {volume.shape}, spacing {[round(float(s), 3) for s in item['spacing']]} mm, "
        f"{volume.min():.0f} to {volume.max():.0f} HU"
    )
    print(
        f"axes {nib.aff2axcodes(item['affine'])}, {slabs.shape[2]} slabs of {THICK}, "
        f"all finite {bool(np.isfinite(volume).all())}"
    )
    print(
        f"interpolating the slab means gives the input but for {np.abs(interpolated(slabs) - volume).max():.1f} HU"
    )


def describe_result(result):
    image = result["image"]
    print(f"result {image.shape}, {image.dtype}, {image.min():.0f} to {image.max():.0f} HU")


def slabs_of(volume):
    """Mean of each slab: its third and fourth slice lie on the line to the next one, at 1/8 and 3/8 of the way."""
    if volume.shape[2] % THICK:
        raise ValueError(f"expected a multiple of {THICK} slices, found {volume.shape[2]}")
    return 1.5 * volume[..., 2::THICK] - 0.5 * volume[..., 3::THICK]


def interpolated(slabs):
    at = np.clip((np.arange(slabs.shape[2] * THICK) - 1.5) / THICK, 0, slabs.shape[2] - 1)
    low = np.minimum(at.astype(int), slabs.shape[2] - 2)
    return slabs[..., low] * (1 - (at - low)) + slabs[..., low + 1] * (at - low)


def total_variation(item):
    """The volume of least total variation in space whose slabs have exactly the known means."""
    slabs = slabs_of(item["image"])
    result = running_sum(item).astype(np.float32)
    dual = [np.zeros_like(result) for _ in range(3)]
    steep, ahead = 10.0, result
    primal, step = 20 / np.sqrt(12), 0.05 / np.sqrt(12)
    for _ in range(STEPS):
        for axis, part in enumerate(dual):
            inner = tuple(slice(-1) if other == axis else slice(None) for other in range(3))
            part[inner] += step * np.diff(ahead, axis=axis)
        norm = np.maximum(1, np.sqrt(sum(part**2 for part in dual)) / steep)
        for part in dual:
            part /= norm
        moved = result + primal * sum(np.diff(part, axis=axis, prepend=0) for axis, part in enumerate(dual))
        moved += np.repeat(slabs - means(moved), THICK, axis=2)
        ahead, result = 2 * moved - result, moved
    return result


def running_sum(item):
    """A monotone curve through the running sum of the slabs, whose steps are the slices; slab means stay exact."""
    from scipy.interpolate import PchipInterpolator

    slabs = slabs_of(item["image"]) - AIR
    total = np.concatenate([np.zeros_like(slabs[..., :1]), np.cumsum(slabs, axis=2)], axis=2) * THICK
    curve = PchipInterpolator(THICK * np.arange(total.shape[2]), total, axis=2)
    return np.diff(curve(np.arange(slabs.shape[2] * THICK + 1)), axis=2) + AIR


def shape_preserving(item):
    """A curve through the slab means that rises and falls only where they do."""
    from scipy.interpolate import PchipInterpolator

    slabs = slabs_of(item["image"])
    centres = THICK * np.arange(slabs.shape[2]) + (THICK - 1) / 2
    at = np.clip(np.arange(slabs.shape[2] * THICK), centres[0], centres[-1])
    return PchipInterpolator(centres, slabs, axis=2)(at)


def means(volume):
    return volume.reshape(*volume.shape[:2], -1, THICK).mean(axis=3)


def bounded(restore):
    """The restored volume as float32 within the input's range, with its affine."""

    def run(item):
        volume = item["image"]
        result = np.clip(restore(item), min(volume.min(), AIR), volume.max() * 1.2 + 50).astype(np.float32)
        return {"image": result, "affine": item["affine"]}

    return run


METHODS = {"tv": bounded(total_variation), "sum": bounded(running_sum), "pchip": bounded(shape_preserving)}


def quality(item, _result, predict):
    """One scale down: slab means are taken for thin slices, made thick, restored, and compared with themselves."""
    slabs = slabs_of(item["image"])
    slabs = slabs[..., : slabs.shape[2] // THICK * THICK]
    if slabs.shape[2] < 2 * THICK:
        return 0.0
    thick = interpolated(means(slabs))
    again = predict(item | {"image": thick})["image"]
    return float(1 - np.abs(again - slabs).mean() / max(2 * np.abs(thick - slabs).mean(), 1e-6))


def save(result, folder, task):
    nib.save(nib.Nifti1Image(result["image"], result["affine"]), folder / task["files"][0])


def inspect(item, folder, task, show):
    image = nib.load(folder / task["files"][0])
    volume, result = item["image"], np.asarray(image.dataobj)
    show(
        f"shape {result.shape} (input {volume.shape}), {result.dtype}, "
        f"range {result.min():.0f} to {result.max():.0f} HU"
    )
    if result.shape != volume.shape or not np.allclose(image.affine, item["affine"]):
        return ["shape or affine is not the input's"]
    off = float(np.abs(means(result) - slabs_of(volume)).mean())
    steps = float(np.abs(np.diff(result, axis=2)).mean() / max(np.abs(np.diff(volume, axis=2)).mean(), 1e-6))
    show(
        f"thick again off by {off:.2f} HU, {steps:.2f} times the change from slice to slice, "
        f"mean moved by {result.mean() - volume.mean():+.2f} HU"
    )
    problems = []
    if not np.isfinite(result).all():
        problems.append("not finite")
    if off > 40 or abs(float(result.mean() - volume.mean())) > 20:
        problems.append("does not agree with the thick slices")
    if steps < 0.5:
        problems.append("blurred along the axis")
    return problems
