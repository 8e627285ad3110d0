"""Image metrics: laws, and agreement with scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from evaluator.metrics.image import PSNR_CAP_DB, mae, psnr, rmse, ssim


def picture(seed: int, shape: tuple[int, ...] = (40, 53)) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=shape)
    return 100.0 * ndimage.gaussian_filter(noise, 1.0)


def test_identity_is_best() -> None:
    image = picture(0)
    assert ssim(image, image, 50.0) == pytest.approx(1.0, abs=1e-12)
    assert psnr(image, image, 50.0) == (PSNR_CAP_DB, True)
    assert mae(image, image) == rmse(image, image) == 0.0


def test_symmetry() -> None:
    a, b = picture(0), picture(1)
    assert ssim(a, b, 50.0) == pytest.approx(ssim(b, a, 50.0), abs=1e-12)
    assert psnr(a, b, 50.0) == psnr(b, a, 50.0)
    assert mae(a, b) == mae(b, a)


def test_more_noise_is_worse() -> None:
    image, noise = picture(0), picture(1)
    scores = [ssim(image, image + step * noise, 100.0) for step in (0, 0.2, 0.5, 1, 2)]
    decibels = [psnr(image, image + step * noise, 100.0).db for step in (0, 0.2, 0.5, 1, 2)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 5
    assert decibels == sorted(decibels, reverse=True)


def test_unit_and_range_scale_together() -> None:
    a, b = picture(0), picture(1)
    assert ssim(7 * a, 7 * b, 350.0) == pytest.approx(ssim(a, b, 50.0), abs=1e-9)
    assert psnr(7 * a, 7 * b, 350.0).db == pytest.approx(psnr(a, b, 50.0).db)


def test_turning_both_images_changes_nothing() -> None:
    a, b = picture(0), picture(1)
    assert ssim(a.T, b.T, 50.0) == pytest.approx(ssim(a, b, 50.0), abs=1e-12)
    assert ssim(a[::-1], b[::-1], 50.0) == pytest.approx(ssim(a, b, 50.0), abs=1e-12)


def test_volume_is_the_mean_over_its_last_axis() -> None:
    a, b = picture(0, (20, 24, 5)), picture(1, (20, 24, 5))
    each = [ssim(a[..., k], b[..., k], 50.0) for k in range(5)]
    assert ssim(a, b, 50.0) == pytest.approx(np.mean(each), abs=1e-12)
    assert ssim(np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0), 50.0, slice_axis=0) == ssim(a, b, 50.0)


def test_negative_similarity_is_kept() -> None:
    image = picture(0)
    assert ssim(200 + image, 200 - image, 50.0) < 0.0


def test_near_identical_images_are_capped_and_said_so() -> None:
    image = picture(0)
    assert psnr(image, image + 1e-9, 50.0) == (PSNR_CAP_DB, True)


def test_integers_do_not_wrap_around() -> None:
    a, b = np.full((12, 12), 3, np.uint8), np.full((12, 12), 250, np.uint8)
    assert mae(a, b) == mae(b, a) == 247.0
    assert psnr(a, b, 255.0).db == pytest.approx(peak_signal_noise_ratio(a, b, data_range=255))


def test_masked_errors() -> None:
    a, b = picture(0), picture(1)
    mask = a > 0
    assert mae(a, b, mask) == pytest.approx(np.abs(a - b)[mask].mean())
    assert rmse(a, b, mask) == pytest.approx(np.sqrt(((a - b)[mask] ** 2).mean()))


@pytest.mark.parametrize("data_range", [0.0, -1.0, float("nan"), float("inf")])
def test_range_must_be_usable(data_range: float) -> None:
    with pytest.raises(ValueError, match="data_range"):
        ssim(picture(0), picture(1), data_range)
    with pytest.raises(ValueError, match="data_range"):
        psnr(picture(0), picture(1), data_range)


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        ssim(picture(0), picture(0)[:-1], 50.0)
    with pytest.raises(ValueError, match="2-D or 3-D"):
        ssim(np.zeros(5), np.zeros(5), 1.0)
    with pytest.raises(ValueError, match="empty"):
        mae(np.zeros((0, 3)), np.zeros((0, 3)))


def _cross_check(cases: int) -> None:
    generator = np.random.default_rng(3)
    for _ in range(cases):
        height, width = (int(side) for side in generator.integers(11, 120, 2))
        scale = float(10 ** generator.uniform(-3, 4))
        reference = scale * (generator.random((height, width)) + generator.uniform(-3, 3))
        prediction = reference + scale * generator.normal(0, generator.uniform(0, 0.5), reference.shape)
        options = {
            "gaussian_weights": True,
            "sigma": 1.5,
            "use_sample_covariance": False,
            "data_range": 2 * scale,
        }
        expected = structural_similarity(reference, prediction, **options)
        assert ssim(reference, prediction, 2 * scale) == pytest.approx(expected, abs=1e-6)
        expected = peak_signal_noise_ratio(reference, prediction, data_range=2 * scale)
        assert psnr(reference, prediction, 2 * scale).db == pytest.approx(expected, abs=1e-6)


def test_cross_check_with_scikit_image() -> None:
    _cross_check(40)


@pytest.mark.slow
def test_cross_check_with_scikit_image_on_1000_cases() -> None:
    _cross_check(1000)
