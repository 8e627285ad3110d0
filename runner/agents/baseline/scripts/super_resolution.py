"""Enlarge an image twofold: the image of least variation that gives the small one when it is reduced again."""

import numpy as np
from scipy.ndimage import zoom

CUT_IN_KSPACE = ("mri-sr-task",)
"""Tasks whose brief says that the small image is the inner half of k-space; the others were reduced bicubically."""
WEIGHT = {"cut": 2e-3, "damped": 5e-4}
"""Of the total variation: an image that was cut off rings beside edges and needs more of it."""
STEPS = 120
LOBES = 8


def load(folder, task):
    image = np.load(folder / task["output"]["shape_of"]).astype(np.float32)
    model = "cut" if task["id"] in CUT_IN_KSPACE else "damped"
    return {"name": folder.name, "image": image, "model": model, "scale": task["output"]["scale"]}


def describe(item):
    image = item["image"]
    print(
        f"shape {image.shape}, {image.dtype}, {image.min():.3f} to {image.max():.3f}, "
        f"to be {item['scale']} times as large"
    )
    print(
        f"all finite {bool(np.isfinite(image).all())}, mean {image.mean():.3f}, reduced by a {item['model']} spectrum"
    )


def describe_result(result):
    print(f"result {result.shape}, {result.dtype}, {result.min():.3f} to {result.max():.3f}")


def spline(item):
    """Cubic splines; a small pixel covers two by two large ones."""
    return zoom(item["image"], 2, order=3, mode="nearest", grid_mode=True)


def back_projection(item):
    """What the enlarged image lacks when it is reduced again is given back, a few times."""
    result = spline(item)
    for _ in range(8):
        result = result + spline(item | {"image": item["image"] - reduced(result, item["model"])})
    return result


def total_variation(item):
    """Least squares to the small image plus total variation, by primal and dual steps in turn."""
    small, weight = item["image"], WEIGHT[item["model"]]
    rows, columns = (reducer(2 * size, item["model"]) for size in small.shape)
    result = spline(item)
    ahead, residual = result, np.zeros_like(small)
    down, right = np.zeros_like(result), np.zeros_like(result)
    bound = 8 + (np.linalg.norm(rows, 2) * np.linalg.norm(columns, 2)) ** 2
    primal, dual = 4 / np.sqrt(bound), 0.25 / np.sqrt(bound)
    for _ in range(STEPS):
        down[:-1] += dual * np.diff(ahead, axis=0)
        right[:, :-1] += dual * np.diff(ahead, axis=1)
        steep = np.maximum(1, np.hypot(down, right) / weight)
        down /= steep
        right /= steep
        residual = (residual + dual * (rows @ ahead @ columns.T - small)) / (1 + dual)
        spread = np.diff(down, axis=0, prepend=0) + np.diff(right, axis=1, prepend=0)
        stepped = result - primal * (rows.T @ residual @ columns - spread)
        ahead, result = 2 * stepped - result, stepped
    return result


def reduced(image, model):
    """The image at half its size, as the brief says the small images were made."""
    rows, columns = (reducer(size, model) for size in image.shape)
    return rows @ image @ columns.T


def reducer(size, model):
    """A matrix that halves one axis: an ideal low pass, or a cubic kernel twice as wide."""
    away = (np.arange(-size, 2 * size)[None] - (2 * np.arange(size // 2) + 0.5)[:, None]) / 2
    kernel = low_pass(away) if model == "cut" else cubic(away)
    folded = kernel[:, size : 2 * size] + kernel[:, size - 1 :: -1] + kernel[:, : 2 * size - 1 : -1]
    return (folded / folded.sum(axis=1, keepdims=True)).astype(np.float32)


def low_pass(away):
    return np.sinc(away) * np.where(np.abs(away) < LOBES, np.cos(np.pi * away / (2 * LOBES)) ** 2, 0)


def cubic(away):
    x = np.abs(away)
    near, far = (1.5 * x - 2.5) * x**2 + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def bounded(enlarge):
    """The enlarged image as float32 on the scale of the input."""

    def run(item):
        return np.clip(enlarge(item), 0, 1).astype(np.float32)

    return run


METHODS = {"tv": bounded(total_variation), "ibp": bounded(back_projection), "spline": bounded(spline)}


def quality(item, _result, predict):
    """One scale down: the input is reduced, enlarged by the method, and compared with itself."""
    from skimage.metrics import structural_similarity

    image = item["image"]
    image = image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2]
    again = predict(item | {"image": reduced(image, item["model"]).astype(np.float32)})
    return float(structural_similarity(image, again, data_range=1.0, gaussian_weights=True))


def save(result, folder, task):
    np.save(folder / task["files"][0], result.astype(np.float32))


def inspect(item, folder, task, show):
    image, result = item["image"], np.load(folder / task["files"][0], allow_pickle=False)
    wanted = tuple(item["scale"] * size for size in image.shape)
    show(
        f"shape {result.shape} (input {image.shape}), {result.dtype}, range {result.min():.3f} to {result.max():.3f}"
    )
    if result.shape != wanted:
        return [f"shape {result.shape} instead of {wanted}"]
    off = float(np.abs(reduced(result, item["model"]) - image).mean())
    sharper = mean_slope(result) / max(mean_slope(spline(item)), 1e-9)
    show(
        f"reduced again off by {off:.4f}, {sharper:.2f} times as steep as a spline, "
        f"mean moved by {result.mean() - image.mean():+.4f}"
    )
    problems = []
    if not np.isfinite(result).all():
        problems.append("not finite")
    if result.min() < 0 or result.max() > 1:
        problems.append("outside of [0, 1]")
    if off > 0.03 or abs(float(result.mean() - image.mean())) > 0.01:
        problems.append("does not agree with the input")
    if sharper < 0.5:
        problems.append("blurred")
    return problems


def mean_slope(image):
    return float(np.abs(np.diff(image, axis=0)).mean() + np.abs(np.diff(image, axis=1)).mean())
