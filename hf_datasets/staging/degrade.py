"""Degradations that turn a reference into an input: seeded where they are random, each stated in physical terms.

Every function has its sentence for the manifest beside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Plane = NDArray[np.float32]

NOISE_SIGMA = 0.05
NOISE_NOTE = {
    "degradation": f"independent Gaussian noise, standard deviation {NOISE_SIGMA} of the [0, 1] scale, added after "
    "the window; not clipped",
}
BICUBIC_NOTE = {
    "degradation": "half the pixels along each axis: bicubic (a = -0.5) with its support widened by 2 against "
    "aliasing, as in Pillow; clipped to [0, 1]",
}
KSPACE_NOTE = {
    "degradation": "half the resolution along each axis: the inner half of k-space in both directions, coil by "
    "coil, without a window; shifted so that a coarse pixel covers two by two fine ones",
}
THICK = 4
THICK_NOTE = {
    "degradation": f"slices {THICK} times as thick: the mean of {THICK} neighbouring slices, brought back to the "
    "target grid by linear interpolation between slab centres (trilinear with unchanged planes), the outermost "
    "slabs held",
}


def noisy(image: Plane, seed: int) -> Plane:
    """The image with white Gaussian noise of `NOISE_SIGMA`; not clipped, as noise is not."""
    noise = np.random.default_rng(seed).standard_normal(image.shape, dtype=np.float32)
    return np.asarray(image + np.float32(NOISE_SIGMA) * noise, dtype=np.float32)


def bicubic_half(image: Plane) -> Plane:
    """A [0, 1] image of even sides at half its size, by antialiased bicubic interpolation."""
    rows, columns = image.shape
    small = Image.fromarray(image.astype(np.float32)).resize(
        (columns // 2, rows // 2), Image.Resampling.BICUBIC
    )
    return np.clip(np.asarray(small, dtype=np.float32), 0, 1)


def kspace_half(coils: NDArray[np.complexfloating]) -> NDArray[np.complex64]:
    """What a scan of half the matrix would give of the same field of view.

    Parameters
    ----------
    coils
        Complex coil images (coils, rows, columns) of even sides.

    Returns
    -------
    array
        Complex coil images (coils, rows / 2, columns / 2) of the same brightness.
    """
    rows, columns = coils.shape[-2:]
    if rows % 4 or columns % 4:
        raise ValueError(f"expected sides that are multiples of 4, found {rows}x{columns}")
    spectrum = np.fft.fftshift(np.fft.fft2(coils), axes=(-2, -1))
    inner = spectrum[..., rows // 4 : -(rows // 4), columns // 4 : -(columns // 4)]
    shift = np.exp(1j * np.pi * (_frequencies(rows)[:, None] + _frequencies(columns)[None, :]))
    small = np.fft.ifft2(np.fft.ifftshift(inner * shift, axes=(-2, -1))) / 4
    return np.asarray(small, dtype=np.complex64)


def _frequencies(size: int) -> NDArray[np.float64]:
    """Cycles a fine pixel of the kept frequencies, lowest first."""
    return np.arange(-(size // 4), size // 4) / size


def thick_slices(volume: NDArray[np.floating]) -> NDArray[np.float32]:
    """A volume whose last axis was scanned in slabs of `THICK` slices and interpolated back.

    Parameters
    ----------
    volume
        (x, y, slices); the number of slices is a multiple of `THICK`.
    """
    slices = volume.shape[2]
    if slices % THICK:
        raise ValueError(f"expected a multiple of {THICK} slices, found {slices}")
    slabs = volume.reshape(*volume.shape[:2], slices // THICK, THICK).mean(axis=3, dtype=np.float32)
    at = np.clip((np.arange(slices) - (THICK - 1) / 2) / THICK, 0, slabs.shape[2] - 1)
    low = np.minimum(at.astype(np.intp), max(slabs.shape[2] - 2, 0))
    high = np.minimum(low + 1, slabs.shape[2] - 1)
    share = (at - low).astype(np.float32)
    return np.asarray(slabs[..., low] * (1 - share) + slabs[..., high] * share, dtype=np.float32)
