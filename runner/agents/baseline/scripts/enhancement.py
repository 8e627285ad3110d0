"""Denoise a CT slice. The noise is read off the slice: its strength, and how it spreads over fine and coarse detail."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import dctn, idctn
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude

BLOCK = 8
BODY_HU = -500.0


def load(folder, task):
    image = np.load(folder / task["output"]["shape_of"]).astype(np.float32)
    return {"name": folder.name, "image": image}


def describe(item):
    image = item["image"]
    print(f"shape {image.shape}, {image.dtype}, {image.min():.0f} to {image.max():.0f} HU, no spacing given")
    print(f"all finite {bool(np.isfinite(image).all())}, body covers {np.mean(image > BODY_HU):.0%}")
    print(f"noise about {noise_of(image):.1f} HU")


def describe_result(result):
    print(f"result {result.shape}, {result.dtype}, {result.min():.0f} to {result.max():.0f}")


def noise_of(image):
    """Standard deviation of the noise in HU, over all cosine coefficients of a block but the mean."""
    return float(np.sqrt(np.mean(noise_spectrum(blocks_of(image, 4)).ravel()[1:] ** 2)))


def blocks_of(image, step):
    padded = np.pad(image, BLOCK, mode="reflect")
    windows = sliding_window_view(padded, (BLOCK, BLOCK))[::step, ::step]
    return dctn(windows, axes=(-2, -1), norm="ortho")


def from_blocks(coefficients, weights, shape, step):
    """Average the overlapping blocks back into an image."""
    blocks = idctn(coefficients, axes=(-2, -1), norm="ortho") * weights
    rows, columns = blocks.shape[:2]
    total = np.zeros((shape[0] + 2 * BLOCK, shape[1] + 2 * BLOCK))
    count = np.zeros_like(total)
    for i in range(BLOCK):
        for j in range(BLOCK):
            place = (slice(i, i + rows * step, step), slice(j, j + columns * step, step))
            total[place] += blocks[..., i, j]
            count[place] += weights[..., 0, 0]
    inner = (slice(BLOCK, -BLOCK), slice(BLOCK, -BLOCK))
    return total[inner] / count[inner]


def dct_shrink(item, step=2):
    """Two passes over overlapping cosine blocks: a hard threshold, then Wiener weights from the first result."""
    image = item["image"].astype(np.float64)
    noisy = blocks_of(image, step)
    return shrunk(noisy, 1.1 * noise_spectrum(noisy), 2.7, image.shape, step)


def shrunk(noisy, noise, threshold, shape, step):
    """The image behind cosine blocks of known noise, whose coefficients below ``threshold`` times it go first."""
    keep = np.abs(noisy) > threshold * noise
    keep[..., 0, 0] = True
    first = from_blocks(noisy * keep, 1 / keep.sum(axis=(-2, -1), keepdims=True), shape, step)
    signal = blocks_of(first, step) ** 2
    gain = signal / (signal + noise**2)
    gain[..., 0, 0] = 1.0
    return from_blocks(noisy * gain, 1 / (gain**2).sum(axis=(-2, -1), keepdims=True), shape, step)


def noise_spectrum(coefficients):
    """Noise of each cosine coefficient, read off separately in calm blocks of the body, for CT noise is not white."""
    dc = coefficients[..., 0, 0] / BLOCK
    energy = np.abs(coefficients).sum(axis=(-2, -1)) - np.abs(coefficients[..., 0, 0])
    inside = dc > BODY_HU
    if inside.sum() < 200:
        inside = np.ones_like(inside)
    calm = inside & (energy <= np.median(energy[inside]))
    return np.maximum(np.median(np.abs(coefficients[calm]), axis=0) / 0.6745, 1e-3)


# These two import where they are used: the import takes longer than a slice does, and every call is a new process.


def nlm(item):
    from skimage.restoration import denoise_nl_means

    image = item["image"]
    sigma = noise_of(image)
    return denoise_nl_means(image, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=True)


def tv(item):
    from skimage.restoration import denoise_tv_chambolle

    image = item["image"]
    sigma = noise_of(image)
    return denoise_tv_chambolle(image / sigma, weight=1.0, max_num_iter=60) * sigma


def bounded(restore):
    """The restored slice as float32 within the input's range."""

    def run(item):
        image = item["image"]
        return np.clip(restore(item), image.min(), image.max()).astype(np.float32)

    return run


METHODS = {"dct": bounded(dct_shrink), "nlm": bounded(nlm), "tv": bounded(tv)}


def noise_and_edges(image, result):
    """Share of the scatter that is left in flat regions, and share of the gradient that is left on strong edges."""
    smooth = gaussian_filter(image, 2.0)
    slope = gaussian_gradient_magnitude(image, 2.0)
    body = smooth > BODY_HU
    flat = body & (slope < np.quantile(slope[body], 0.3)) if body.any() else slope <= np.median(slope)
    edge = slope >= np.quantile(slope, 0.97)
    left = np.std((result - gaussian_filter(result, 2.0))[flat]) / max(np.std((image - smooth)[flat]), 1e-6)
    kept = np.mean(gaussian_gradient_magnitude(result, 1.5)[edge]) / np.mean(
        gaussian_gradient_magnitude(image, 1.5)[edge]
    )
    return float(left), float(min(kept, 1.0))


def quality(item, result, _predict):
    left, kept = noise_and_edges(item["image"], result)
    return max(0.0, 1 - left) * kept


def save(result, folder, task):
    np.save(folder / task["files"][0], result.astype(np.float32))


def inspect(item, folder, task, show):
    image, result = item["image"], np.load(folder / task["files"][0], allow_pickle=False)
    show(
        f"shape {result.shape} (input {image.shape}), {result.dtype}, range {result.min():.0f} to {result.max():.0f} HU"
    )
    if result.shape != image.shape:
        return [f"shape {result.shape} instead of {image.shape}"]
    left, kept = noise_and_edges(image, result)
    drift = float(result.mean() - image.mean())
    show(
        f"noise left in flat regions {left:.0%}, gradient kept on edges {kept:.0%}, mean moved by {drift:+.2f} HU"
    )
    problems = []
    if not np.isfinite(result).all():
        problems.append("not finite")
    if result.min() < image.min() - 1 or result.max() > image.max() + 1:
        problems.append("outside the input's range")
    if left > 0.98:
        problems.append("no noise was removed")
    if kept < 0.5 or abs(drift) > 5:
        problems.append("edges or mean were lost")
    return problems
