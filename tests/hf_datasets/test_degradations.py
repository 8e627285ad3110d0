"""What a degradation says of itself holds: brightness, place, spectrum, slab means, noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import center_of_mass, gaussian_filter

from hf_datasets.staging.degrade import (
    NOISE_SIGMA,
    THICK,
    bicubic_half,
    kspace_half,
    noisy,
    thick_slices,
)

SIDES = st.integers(3, 8).map(lambda n: 4 * n)
few = settings(max_examples=25, deadline=None)


@few
@given(SIDES, SIDES, st.floats(0, 1))
def test_a_flat_image_stays_flat_and_as_bright(rows, columns, value):
    flat = np.full((rows, columns), value, np.float32)
    assert bicubic_half(flat) == pytest.approx(value, abs=1e-6)
    assert np.abs(kspace_half(flat[None].astype(np.complex64))) == pytest.approx(value, abs=1e-5)


@few
@given(st.floats(20, 44), st.floats(20, 44))
def test_a_blob_stays_where_it_is(row, column):
    """A coarse pixel covers two by two fine ones, so a fine place p is the coarse place (p - 1/2) / 2."""
    y, x = np.mgrid[:64, :64]
    blob = np.exp(-((y - row) ** 2 + (x - column) ** 2) / 18).astype(np.float32)
    wanted = ((row - 0.5) / 2, (column - 0.5) / 2)
    assert center_of_mass(bicubic_half(blob)) == pytest.approx(wanted, abs=0.05)
    assert center_of_mass(np.abs(kspace_half(blob[None].astype(np.complex64)))[0]) == pytest.approx(
        wanted, abs=0.05
    )


@few
@given(st.integers(0, 15), st.integers(0, 15))
def test_kspace_keeps_low_waves_and_drops_high_ones(down, right):
    y, x = np.mgrid[:32, :32]
    wave = np.exp(2j * np.pi * (down * y + right * x) / 32).astype(np.complex64)[None]
    kept = down < 8 and right < 8
    assert np.abs(kspace_half(wave)) == pytest.approx(1.0 if kept else 0.0, abs=1e-4)


def test_kspace_refuses_sides_that_cannot_be_halved_evenly():
    with pytest.raises(ValueError, match="multiples of 4"):
        kspace_half(np.zeros((1, 30, 32), np.complex64))


@few
@given(arrays(np.float32, (3, 4, 16), elements=st.floats(-1000, 2000, width=32)))
def test_slab_means_can_be_read_off_the_thick_slices(volume):
    thick = thick_slices(volume)
    slabs = volume.reshape(3, 4, -1, THICK).mean(axis=3)
    assert thick.shape == volume.shape
    assert 1.5 * thick[..., 2::THICK] - 0.5 * thick[..., 3::THICK] == pytest.approx(slabs, abs=0.01)
    assert thick[..., :2] == pytest.approx(np.repeat(slabs[..., :1], 2, axis=2), abs=0.01)
    assert thick[..., -2:] == pytest.approx(np.repeat(slabs[..., -1:], 2, axis=2), abs=0.01)


def test_a_ramp_along_the_axis_survives_between_the_outermost_slabs():
    ramp = np.broadcast_to(np.arange(16, dtype=np.float32), (2, 2, 16))
    assert thick_slices(ramp)[..., 2:14] == pytest.approx(ramp[..., 2:14])
    with pytest.raises(ValueError, match="multiple of 4"):
        thick_slices(ramp[..., :15])


def test_noise_is_white_of_the_stated_strength_and_seeded():
    image = np.zeros((256, 256), np.float32)
    first = noisy(image, 7)
    assert np.array_equal(first, noisy(image, 7))
    assert not np.array_equal(first, noisy(image, 8))
    assert first.std() == pytest.approx(NOISE_SIGMA, rel=0.02)
    assert first.min() < -3 * NOISE_SIGMA
    assert np.std(gaussian_filter(first, 2)) == pytest.approx(NOISE_SIGMA / (2 * 2 * np.sqrt(np.pi)), rel=0.1)
