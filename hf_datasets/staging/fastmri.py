"""fastMRI: ``<coils>_<part>/<name>.h5`` with raw k-space and the reconstruction; one slice a patient.

The input is a scan of half the resolution, made from the k-space itself. Folders of the challenge's test parts
hold undersampled k-space without reconstruction and are left aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders, StagingError, listing
from hf_datasets.staging.degrade import KSPACE_NOTE, kspace_half

NOTES = {
    **KSPACE_NOTE,
    "reference": "root sum of squares of the coil images of the fully sampled k-space, in upstream's field of view, "
    "sides cut to multiples of 4",
    "slice": "one slice a volume, drawn from its middle third; one volume a patient, the first by name",
    "scale": "both images divided by the reference slice's 99.9th percentile, clipped to [0, 1]",
}
TEST_PARTS = ("test", "challenge")
AGREEMENT = 0.98
"""Correlation of the reference with the stored reconstruction, below which they are not of one scan."""

Coils = NDArray[np.complex64]


@dataclass(frozen=True)
class FastmriCase:
    """One volume of a patient."""

    path: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.path.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.path,)

    def write(self, to: CaseFolders) -> None:
        coils, stored = self._slice(np.random.default_rng(to.seed))
        full = _root_sum_of_squares(coils)
        self._check_agreement(full, stored)
        scale = float(np.percentile(full, 99.9))
        if not scale > 0:
            raise StagingError(f"{self.path}: expected an image, found a slice of zeros")
        half = _root_sum_of_squares(kspace_half(coils))
        np.save(to.private / "reference.npy", np.clip(full / scale, 0, 1).astype(np.float32))
        np.save(to.public / "input.npy", np.clip(half / scale, 0, 1).astype(np.float32))

    def _slice(self, rng: np.random.Generator) -> tuple[Coils, NDArray[np.float32]]:
        """Coil images (coils, rows, columns) of one slice in upstream's field of view, and its reconstruction."""
        with _opened(self.path) as file:
            kspace, stored = self._datasets(file)
            third = kspace.shape[0] // 3
            index = int(rng.integers(third, kspace.shape[0] - third))
            raw, image = np.asarray(kspace[index]), np.asarray(stored[index], dtype=np.float32)
        if not (np.isfinite(raw).all() and np.isfinite(image).all()):
            raise StagingError(f"{self.path}: expected finite values, found NaN or infinity")
        coils = _coil_images(raw if raw.ndim == 3 else raw[None])
        rows, columns = (min(a, b) for a, b in zip(image.shape, coils.shape[-2:], strict=True))
        size = (rows - rows % 4, columns - columns % 4)
        return _middle(coils, size), _middle(image, size)

    def _datasets(self, file: Any) -> tuple[Any, Any]:
        stored = [name for name in ("reconstruction_esc", "reconstruction_rss") if name in file]
        if "kspace" not in file or not stored or "mask" in file:
            raise StagingError(
                f"{self.path}: expected fully sampled kspace with its reconstruction, found "
                f"{', '.join(sorted(file)) or 'nothing'}; is this a file of a test part?"
            )
        kspace, image = file["kspace"], file[stored[0]]
        if kspace.ndim not in (3, 4) or kspace.dtype.kind != "c" or image.ndim != 3:
            raise StagingError(
                f"{self.path}: expected complex kspace (slices[, coils], rows, columns) and images (slices, rows, "
                f"columns), found {kspace.dtype} {kspace.shape} and {image.shape}"
            )
        if kspace.shape[0] != image.shape[0]:
            raise StagingError(
                f"{self.path}: expected as many reconstructed slices as kspace has ({kspace.shape[0]}), "
                f"found {image.shape[0]}"
            )
        return kspace, image

    def _check_agreement(self, full: NDArray[np.float32], stored: NDArray[np.float32]) -> None:
        found = float(np.corrcoef(full.ravel(), stored.ravel())[0, 1]) if stored.std() > 0 else 0.0
        if not found > AGREEMENT:
            raise StagingError(
                f"{self.path}: expected a reconstruction of this kspace, found one that correlates by {found:.2f}; "
                "download the file again"
            )


def find(source: Path) -> Sequence[FastmriCase]:
    """One fully sampled volume a patient."""
    paths = [path for path in sorted(source.rglob("*.h5")) if not _is_test_part(path.relative_to(source))]
    if not paths:
        raise StagingError(
            f"{source}: expected fully sampled files such as multicoil_val/file1000000.h5, found {listing(source)}"
        )
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(_patient(path), path)
    return [FastmriCase(path) for path in sorted(first.values(), key=lambda path: path.stem)]


def _is_test_part(path: Path) -> bool:
    return any(part in folder for folder in path.parts[:-1] for part in TEST_PARTS)


def _patient(path: Path) -> str:
    with _opened(path) as file:
        patient = file.attrs.get("patient_id")
    if not isinstance(patient, str) or not patient:
        raise StagingError(f"{path}: expected the attribute patient_id, found {patient!r}")
    return patient


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())[:120]
        raise StagingError(f"{path}: not a complete HDF5 file ({reason}); download it again") from None


def _coil_images(kspace: NDArray[np.complexfloating]) -> Coils:
    """Centred inverse Fourier transform of (coils, rows, columns), orthonormal."""
    axes = (-2, -1)
    spectrum = np.fft.ifftshift(kspace, axes=axes)
    return np.asarray(np.fft.fftshift(np.fft.ifft2(spectrum, norm="ortho"), axes=axes), dtype=np.complex64)


def _middle(image: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    top, left = ((have - want) // 2 for have, want in zip(image.shape[-2:], size, strict=True))
    return image[..., top : top + size[0], left : left + size[1]]


def _root_sum_of_squares(coils: Coils) -> NDArray[np.float32]:
    return np.asarray(np.sqrt((np.abs(coils) ** 2).sum(axis=0)), dtype=np.float32)
