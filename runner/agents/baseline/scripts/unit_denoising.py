"""Denoise a CT slice on [0, 1] whose noise is white and equally strong everywhere."""

import numpy as np
from enhancement import blocks_of, load, save, shrunk
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude

__all__ = ["load", "save"]  # the CT denoiser's own: a slice is read and written alike

LOWEST = 1e-4


def describe(item):
    image = item["image"]
    print(f"shape {image.shape}, {image.dtype}, {image.min():.3f} to {image.max():.3f}, no unit")
    print(f"all finite {bool(np.isfinite(image).all())}, noise about {noise_of(image):.4f}")


def describe_result(result):
    print(f"result {result.shape}, {result.dtype}, {result.min():.3f} to {result.max():.3f}")


def noise_of(image):
    """Standard deviation of the noise, from the finest diagonal detail."""
    detail = image[:-1, :-1] - image[1:, :-1] - image[:-1, 1:] + image[1:, 1:]
    return max(float(np.median(np.abs(detail)) / 0.6745 / 2), LOWEST)


def dct_shrink(item, step=1):
    """Two passes over overlapping cosine blocks: a hard threshold, then Wiener weights from the first result."""
    image, noise = item["image"].astype(np.float64), noise_of(item["image"])
    return shrunk(blocks_of(image, step), noise, 2.8, image.shape, step)


def nlm(item):
    from skimage.restoration import denoise_nl_means

    image, sigma = item["image"], noise_of(item["image"])
    return denoise_nl_means(image, patch_size=5, patch_distance=7, h=0.7 * sigma, sigma=sigma, fast_mode=True)


def tv(item):
    from skimage.restoration import denoise_tv_chambolle

    image, sigma = item["image"], noise_of(item["image"])
    return denoise_tv_chambolle(image / sigma, weight=1.1, max_num_iter=100) * sigma


def bounded(restore):
    """The restored slice as float32 on [0, 1], where the noise went beyond."""

    def run(item):
        return np.clip(restore(item), 0, 1).astype(np.float32)

    return run


METHODS = {"dct": bounded(dct_shrink), "nlm": bounded(nlm), "tv": bounded(tv)}


def noise_and_edges(image, result):
    """Share of the scatter that is left in flat regions, and share of the gradient that is left on strong edges."""
    image = np.clip(image, 0, 1)
    slope = gaussian_gradient_magnitude(image, 2.0)
    flat, edge = slope <= np.median(slope), slope >= np.quantile(slope, 0.97)
    left = np.std((result - gaussian_filter(result, 2.0))[flat]) / max(
        np.std((image - gaussian_filter(image, 2.0))[flat]), 1e-6
    )
    kept = np.mean(gaussian_gradient_magnitude(result, 1.5)[edge]) / max(
        np.mean(gaussian_gradient_magnitude(image, 1.5)[edge]), 1e-6
    )
    return float(left), float(min(kept, 1.0))


def quality(item, result, _predict):
    left, kept = noise_and_edges(item["image"], result)
    return max(0.0, 1 - left) * kept


def inspect(item, folder, task, show):
    image, result = item["image"], np.load(folder / task["files"][0], allow_pickle=False)
    show(
        f"shape {result.shape} (input {image.shape}), {result.dtype}, range {result.min():.3f} to {result.max():.3f}"
    )
    if result.shape != image.shape:
        return [f"shape {result.shape} instead of {image.shape}"]
    left, kept = noise_and_edges(image, result)
    drift = float(result.mean() - np.clip(image, 0, 1).mean())
    show(
        f"noise left in flat regions {left:.0%}, gradient kept on edges {kept:.0%}, mean moved by {drift:+.4f}"
    )
    problems = []
    if not np.isfinite(result).all():
        problems.append("not finite")
    if result.min() < 0 or result.max() > 1:
        problems.append("outside of [0, 1]")
    if left > 0.98:
        problems.append("no noise was removed")
    if kept < 0.5 or abs(drift) > 0.03:
        problems.append("edges or mean were lost")
    return problems
