"""Simulated low dose: parallel rays, Poisson counts, filtered back projection of the noise.

The noise of a low-dose scan is added to the normal-dose slice: the slice is projected, photons are counted,
and the difference between the counted and the true line integrals is reconstructed. Back projection is
linear, so this equals reconstructing the noisy scan, without the blur of a second reconstruction, which
would otherwise be mistaken for noise.

Everything is measured in the field of view, so that 256 and 512 pixel slices of one body are equally noisy.
A clinical ray through 35 cm of tissue would let none of a thousand photons pass; line integrals are scaled
to a stated peak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from skimage.transform import resize

I0 = 1000
"""Photons a ray before the patient."""
PEAK = 2.0
"""The largest line integral of a slice (natural logarithm of attenuation)."""
VIEWS = 480
CELLS = 256
"""Detector cells across the side of the (square) field of view."""

RECIPE = {
    "degradation": "Poisson noise of a simulated low-dose scan added to the normal-dose slice",
    "photons": f"I0 = {I0} a ray",
    "geometry": f"parallel beam, {VIEWS} views over half a turn, {CELLS} detector cells a field of view",
    "attenuation": f"water-scaled HU, line integrals scaled to a peak of {PEAK} a slice",
    "reconstruction": "filtered back projection, Hann-windowed ramp",
}

_BINS = int(np.ceil(CELLS * np.sqrt(2))) + 3

Slice = NDArray[np.float32]


def low_dose(hu: Slice, seed: int) -> Slice:
    """The low-dose version of a slice.

    Parameters
    ----------
    hu
        Square normal-dose slice in Hounsfield units.
    seed
        Of the photon counts.

    Returns
    -------
    Slice
        float32, same shape, in HU; not clipped, as a scanner's noise isn't.
    """
    water = np.clip(hu.astype(np.float64) / 1000 + 1, 0, None)
    line = _project(resize(water, (CELLS, CELLS), anti_aliasing=hu.shape[0] > CELLS))
    scale = PEAK / max(line.max(), 1e-6)
    counts = np.random.default_rng(seed).poisson(I0 * np.exp(-scale * line))
    noise = -np.log(np.maximum(counts, 1) / I0) - scale * line
    return np.asarray(hu + _back_project(noise, hu.shape[0]) / scale * 1000, dtype=np.float32)


def _angles() -> NDArray[np.float64]:
    return np.arange(VIEWS) * np.pi / VIEWS


def _project(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Line integrals in cells: each pixel's value goes to the two detector cells nearest to its centre."""
    rows, columns = np.nonzero(image)
    values = image[rows, columns]
    x, y = columns - (CELLS - 1) / 2, rows - (CELLS - 1) / 2
    line = np.empty((VIEWS, _BINS))
    for view, angle in enumerate(_angles()):
        at = x * np.cos(angle) + y * np.sin(angle) + (_BINS - 1) / 2
        low = at.astype(np.intp)
        share = at - low
        line[view] = np.bincount(low, values * (1 - share), _BINS) + np.bincount(
            low + 1, values * share, _BINS
        )
    return line


def _back_project(line: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Filtered back projection on a ``size`` x ``size`` grid over the field of view."""
    length = 1 << (2 * _BINS - 1).bit_length()
    frequency = np.fft.rfftfreq(length)
    window = frequency * 0.5 * (1 + np.cos(2 * np.pi * frequency))
    filtered = np.fft.irfft(np.fft.rfft(line, length) * window, length)[:, :_BINS].astype(np.float32)
    centre = (np.arange(size, dtype=np.float32) + 0.5) * (CELLS / size) - CELLS / 2
    image = np.zeros((size, size), dtype=np.float32)
    for view, angle in enumerate(_angles()):
        at = (
            centre[None, :] * np.float32(np.cos(angle))
            + centre[:, None] * np.float32(np.sin(angle))
            + (_BINS - 1) / 2
        )
        low = at.astype(np.intp)
        share = at - low
        row = filtered[view]
        image += row[low] * (1 - share) + row[low + 1] * share
    return np.asarray(image * (np.pi / VIEWS), dtype=np.float64)
