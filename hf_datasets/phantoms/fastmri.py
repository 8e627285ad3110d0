"""fastMRI: ``multicoil_val/file_brain_<sequence>_<n>.h5`` with k-space, root-sum-of-squares images and attributes.

As upstream, the readout is oversampled twofold and the reconstruction is the middle of the image.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms import head
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Array, Rng, rng_for

VOLUMES, SLICES, COILS = 6, 2, 2
SIZE = 120
FIELD_OF_VIEW = 220.0
FOLDER = "multicoil_val"
SEQUENCES = {"AXT1": head.T1, "AXT2": head.T2, "AXT1POST": head.T1C}
MANTISSA = 6
"""Bits of precision that are kept, so that the files compress; upstream's are not compressed."""


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six volumes of six patients in three contrasts, two patients with a tumour."""
    (out / FOLDER).mkdir()
    ill = set(rng_for(seed, "fastmri").permutation(VOLUMES)[:2].tolist())
    for index in range(VOLUMES):
        rng = rng_for(seed, "fastmri", index)
        sequence = sorted(SEQUENCES)[index % len(SEQUENCES)]
        kspace = np.stack([_kspace(image, rng) for image in _slices(rng, sequence, tumour=index in ill)])
        name = f"file_brain_{sequence}_{200 + index % 3}_{int(rng.integers(6_000_000, 7_000_000))}.h5"
        _write(out / FOLDER / name, kspace, sequence, patient=f"{rng.integers(1 << 62):064x}")
    return {}


def _slices(rng: Rng, sequence: str, *, tumour: bool) -> list[Array]:
    plan = head.random_head(rng, tumour=tumour)
    pixel = FIELD_OF_VIEW / SIZE
    fine = SIZE * 2
    at = ((np.arange(fine, dtype=np.float32) - (fine - 1) / 2) * pixel / 2).astype(np.float32)
    base = plan.tumour.centre[2] if plan.tumour else float(rng.uniform(0, 25))
    heights = [np.full((1, 1), base + 5 * number, dtype=np.float32) for number in range(SLICES)]
    contrast = SEQUENCES[sequence]
    return [head.paint(plan, at[None, :], at[:, None], height, contrast, pixel / 2) for height in heights]


def _kspace(image: Array, rng: Rng) -> NDArray[np.complex64]:
    """Coil by coil: sensitivity and phase, the spectrum of the finer image cut to the scan's matrix, noise."""
    fine = image.shape[0]
    y, x = np.mgrid[-1 : 1 : fine * 1j, -1 : 1 : fine * 1j]
    phase = np.exp(1j * (0.6 * x + 0.4 * y**2 + rng.uniform(0, 6)))
    coils = []
    for coil in range(COILS):
        angle = np.pi * (coil + 0.3) * 2 / COILS
        sensitivity = np.exp(-((x - np.cos(angle)) ** 2 + (y - np.sin(angle)) ** 2) / 3.2)
        wide = np.zeros((2 * fine, fine), dtype=np.complex128)
        wide[fine // 2 : -(fine // 2)] = image * sensitivity * phase
        spectrum = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(wide), norm="ortho"))
        kept = spectrum[SIZE : SIZE * 3, SIZE // 2 : SIZE // 2 * 3] / 2
        noise = rng.standard_normal(kept.shape) + 1j * rng.standard_normal(kept.shape)
        coils.append(kept + 0.012 * noise)
    return _rounded(np.stack(coils).astype(np.complex64) * np.float32(1e-4))


def _rounded(values: NDArray[np.complex64]) -> NDArray[np.complex64]:
    bits = values.view(np.uint32)
    drop = np.uint32(23 - MANTISSA)
    half = np.uint32(1) << (drop - np.uint32(1))
    return (((bits + half) >> drop) << drop).view(np.complex64)


def _write(path: Path, kspace: NDArray[np.complex64], sequence: str, patient: str) -> None:
    axes = (-2, -1)
    spectrum = np.fft.ifftshift(kspace, axes=axes)
    coils = np.fft.fftshift(np.fft.ifft2(spectrum, norm="ortho"), axes=axes)[..., SIZE // 2 : -(SIZE // 2), :]
    images = np.sqrt((np.abs(coils) ** 2).sum(axis=1)).astype(np.float32)
    with h5py.File(path, "w", track_order=False) as file:
        file.create_dataset("kspace", data=kspace, compression="gzip", shuffle=True, track_times=False)
        file.create_dataset("reconstruction_rss", data=images, track_times=False)
        file.create_dataset("ismrmrd_header", data=_header(kspace.shape), track_times=False)
        file.attrs["acquisition"] = sequence
        file.attrs["max"] = float(images.max())
        file.attrs["norm"] = float(np.linalg.norm(images))
        file.attrs["patient_id"] = patient


def _header(shape: tuple[int, ...]) -> str:
    slices, _, rows, columns = shape

    def space(name: str, x: int, y: int, width: float) -> str:
        return (
            f"<{name}><matrixSize><x>{x}</x><y>{y}</y><z>1</z></matrixSize><fieldOfView_mm><x>{width}</x>"
            f"<y>{FIELD_OF_VIEW}</y><z>5.0</z></fieldOfView_mm></{name}>"
        )

    return (
        '<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><encoding>'
        + space("encodedSpace", rows, columns, 2 * FIELD_OF_VIEW)
        + space("reconSpace", SIZE, SIZE, FIELD_OF_VIEW)
        + f"<encodingLimits><slice><minimum>0</minimum><maximum>{slices - 1}</maximum></slice></encodingLimits>"
        "<trajectory>cartesian</trajectory></encoding></ismrmrdHeader>"
    )
