"""Fidelity of restored and synthesised images, always against a data range fixed by the task.

A range taken from the prediction, or from one image, moves the score without any change of the picture; so
every function that needs one takes it as an argument and guesses nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
Mask = NDArray[np.bool_]

PSNR_CAP_DB = 100.0
SSIM_RADIUS = 5
"""Half width of the 11x11 window."""
SSIM_SIGMA = 1.5
K1, K2 = 0.01, 0.03

_BLOCK_ROWS = 32
"""Rows filtered at a time: the working set then stays in the second-level cache."""


class Psnr(NamedTuple):
    """``db`` in dB, at most 100; ``capped`` when the images agree better than that or are identical."""

    db: float
    capped: bool


def ssim(
    reference: NDArray[np.generic],
    prediction: NDArray[np.generic],
    data_range: float,
    *,
    slice_axis: int = -1,
) -> float:
    """Structural similarity, ``ssim_gaussian``.

    Parameters
    ----------
    reference, prediction : arrays of one shape, 2-D or 3-D
        At least 11 pixels along both image axes. A volume is scored as the mean over its slices.
    data_range : float
        Width of the task's fixed value range, > 0, in the unit of the images.
    slice_axis : int
        Axis of a volume along which the slices lie; the last one in canonical NIfTI order is the axial one.

    Returns
    -------
    float
        In [-1, 1], 1 for identical images. Negative values are not clipped.

    Notes
    -----
    Wang et al., IEEE TIP 13(4), 2004: Gaussian window 11x11 with sigma 1.5, K1 = 0.01, K2 = 0.03, population
    covariance, mean over the pixels whose window lies inside the image (a 5 pixel frame is left out). Equal
    to scikit-image's ``structural_similarity(gaussian_weights=True, sigma=1.5,
    use_sample_covariance=False)``.
    """
    _require_comparable(reference, prediction)
    _require_range(data_range)
    if reference.ndim == 2:
        return _ssim_slice(reference, prediction, data_range)
    if reference.ndim != 3:
        raise ValueError(f"expected a 2-D or 3-D image, found {reference.ndim}-D")
    pairs = zip(np.moveaxis(reference, slice_axis, 0), np.moveaxis(prediction, slice_axis, 0), strict=True)
    return float(np.mean([_ssim_slice(ref, pred, data_range) for ref, pred in pairs]))


def psnr(reference: NDArray[np.generic], prediction: NDArray[np.generic], data_range: float) -> Psnr:
    """Peak signal-to-noise ratio, 10 log10(range^2 / MSE), pooled over all pixels.

    Parameters
    ----------
    reference, prediction : arrays of one shape
    data_range : float
        Width of the task's fixed value range, > 0.

    Returns
    -------
    Psnr
        Decibels, at most 100 (identical images are infinite; the cap keeps means finite), and whether the cap
        was used.
    """
    _require_range(data_range)
    error = rmse(reference, prediction)
    if error == 0.0:
        return Psnr(PSNR_CAP_DB, capped=True)
    decibels = 20.0 * float(np.log10(data_range / error))
    return Psnr(min(decibels, PSNR_CAP_DB), capped=decibels > PSNR_CAP_DB)


def mae(reference: NDArray[np.generic], prediction: NDArray[np.generic], mask: Mask | None = None) -> float:
    """Mean absolute error in the unit of the images, >= 0.

    Over ``mask`` where one is given (an empty mask is refused).
    """
    return float(np.mean(np.abs(_difference(reference, prediction, mask))))


def rmse(reference: NDArray[np.generic], prediction: NDArray[np.generic], mask: Mask | None = None) -> float:
    """Root mean square error in the unit of the images, >= 0.

    Over ``mask`` where one is given (an empty mask is refused).
    """
    return float(np.sqrt(np.mean(np.square(_difference(reference, prediction, mask)))))


def _difference(
    reference: NDArray[np.generic], prediction: NDArray[np.generic], mask: Mask | None
) -> NDArray[np.float64]:
    _require_comparable(reference, prediction)
    if mask is not None:
        if not mask.any():
            raise ValueError("the mask is empty: no pixel to compare")
        reference, prediction = reference[mask], prediction[mask]
    difference: NDArray[np.float64] = np.subtract(prediction, reference, dtype=np.float64)
    return difference


def _ssim_slice(reference: NDArray[np.generic], prediction: NDArray[np.generic], data_range: float) -> float:
    window = 2 * SSIM_RADIUS + 1
    if min(reference.shape) < window:
        raise ValueError(f"image {reference.shape} is smaller than the {window}x{window} window")
    c1, c2 = (K1 * data_range) ** 2, (K2 * data_range) ** 2
    ref = np.ascontiguousarray(reference, dtype=np.float64)
    pred = np.ascontiguousarray(prediction, dtype=np.float64)
    rows = ref.shape[0] - 2 * SSIM_RADIUS
    total = 0.0
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, min(start + _BLOCK_ROWS, rows) + 2 * SSIM_RADIUS)
        total += _ssim_sum(ref[block], pred[block], c1, c2)
    return float(total / (rows * (ref.shape[1] - 2 * SSIM_RADIUS)))


def _ssim_sum(x: NDArray[np.float64], y: NDArray[np.float64], c1: float, c2: float) -> float:
    """Sum of the SSIM map of a block.

    Only the sum of the two variances enters, so four moments do instead of five.
    """
    moments = np.empty((4, *x.shape))
    moments[0], moments[1] = x, y
    np.multiply(x, y, out=moments[2])
    np.square(x, out=moments[3])
    moments[3] += np.square(y)
    mean_x, mean_y, mean_xy, mean_squares = _blur(_blur(moments, axis=1), axis=2)
    product = mean_x * mean_y
    squares = np.square(mean_x) + np.square(mean_y)
    numerator = (2.0 * product + c1) * (2.0 * (mean_xy - product) + c2)
    denominator = (squares + c1) * (mean_squares - squares + c2)
    return float(np.sum(numerator / denominator))


def _gaussian() -> list[float]:
    offsets = np.arange(-SSIM_RADIUS, SSIM_RADIUS + 1)
    weights = np.exp(-0.5 * (offsets / SSIM_SIGMA) ** 2)
    return [float(weight) for weight in weights / weights.sum()]


_WEIGHTS = _gaussian()


def _blur(stack: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Gaussian filter along one axis, where the window fits.

    Taps of equal weight are added before they are scaled.
    """
    size = stack.shape[axis] - 2 * SSIM_RADIUS

    def tap(offset: int) -> NDArray[np.float64]:
        return stack[(slice(None),) * axis + (slice(offset, offset + size),)]

    result = tap(SSIM_RADIUS) * _WEIGHTS[SSIM_RADIUS]
    pair = np.empty_like(result)
    for offset in range(SSIM_RADIUS):
        np.add(tap(offset), tap(2 * SSIM_RADIUS - offset), out=pair)
        pair *= _WEIGHTS[offset]
        result += pair
    return result


def _require_comparable(reference: NDArray[np.generic], prediction: NDArray[np.generic]) -> None:
    if reference.shape != prediction.shape:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    if reference.size == 0:
        raise ValueError("the images are empty")


def _require_range(data_range: float) -> None:
    if not (np.isfinite(data_range) and data_range > 0):
        raise ValueError(f"data_range must be a positive number fixed by the task, found {data_range}")
