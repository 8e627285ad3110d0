"""SimNICT: normal-dose CT volumes, ``.../org/<n>.nii.gz``; one slice a volume, degraded here.

Upstream also ships degraded volumes beside ``org``. They are not used: their noise is unseeded, so a
low-dose input could not be made again from its reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray

from evaluator.files import sha256_file
from hf_datasets.staging.base import CaseFolders, StagingError, listing, some
from hf_datasets.staging.low_dose import RECIPE, low_dose
from hf_datasets.staging.nifti import Volume, read_volume

NOTES = {
    **RECIPE,
    "slice": "one axial slice a volume, drawn from its middle third; front up, patient's right on the left",
}
FOLDER = "org"
SMALLEST = 64
BONE, HIGHEST = 100.0, 4100.0
"""Between these lies the 99.9th percentile of a volume in Hounsfield units; single voxels of metal may exceed it."""
AIR = -500.0
PADDING = -1024.0
"""What upstreams write outside the scanner's circle goes below this; it is raised to it."""


@dataclass(frozen=True)
class SimnictCase:
    """One normal-dose volume."""

    volume: Path
    origin: str
    image: str = ""

    @property
    def files(self) -> Sequence[Path]:
        return (self.volume,)

    def write(self, to: CaseFolders) -> None:
        scan = read_volume(self.volume)
        rng = np.random.default_rng(to.seed)
        reference = self._slice(scan, rng)
        noise_seed = int(rng.integers(2**32))
        np.save(to.private / "reference.npy", reference)
        np.save(to.public / "input.npy", low_dose(reference, noise_seed))

    def _slice(self, scan: Volume, rng: np.random.Generator) -> NDArray[np.float32]:
        canonical = nibabel.as_closest_canonical(
            nibabel.Nifti1Image(scan.data.astype(np.float32), scan.affine)
        )
        hu = np.asarray(canonical.dataobj, dtype=np.float32)
        if hu.shape[0] != hu.shape[1] or hu.shape[0] < SMALLEST:
            raise StagingError(
                f"{self.volume}: expected square axial slices of at least {SMALLEST} pixels, "
                f"found {hu.shape[0]}x{hu.shape[1]}"
            )
        self._check_units(hu)
        third = hu.shape[2] // 3
        index = int(rng.integers(third, hu.shape[2] - third))
        plane = hu[::-1, ::-1, index].T
        return np.ascontiguousarray(np.maximum(plane, PADDING), dtype=np.float32)

    def _check_units(self, hu: NDArray[np.float32]) -> None:
        low, high = (float(value) for value in np.percentile(hu, (0.5, 99.9)))
        if low > AIR or not BONE <= high <= HIGHEST:
            raise StagingError(
                f"{self.volume}: expected Hounsfield units, air near -1000 and bone of {BONE:.0f} to {HIGHEST:.0f}, "
                f"found {low:.0f} to {high:.0f}; is the volume rescaled or shifted?"
            )


def find(source: Path) -> Sequence[SimnictCase]:
    """Every normal-dose volume of the source."""
    folders = sorted(path for path in source.rglob(FOLDER) if path.is_dir())
    if not folders:
        raise StagingError(
            f"{source}: expected a folder {FOLDER}/ with normal-dose volumes, "
            f"as in SimNICT-AMOS-Sample/test/{FOLDER}/, found {listing(source)}"
        )
    volumes = [path for folder in folders for path in _volumes(folder)]
    _refuse_copies(volumes)
    return [SimnictCase(path, path.relative_to(source).as_posix().split(".")[0]) for path in volumes]


def _volumes(folder: Path) -> list[Path]:
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    strange = [path.name for path in entries if not path.name.endswith((".nii", ".nii.gz"))]
    if strange:
        raise StagingError(f"{folder}: unexpected {some(strange)} among the volumes; remove it or unpack it")
    if not entries:
        raise StagingError(f"{folder}: expected volumes such as 1.nii.gz, found an empty folder")
    return entries


def _refuse_copies(volumes: list[Path]) -> None:
    """Refuse one volume under two ids: each would count as a patient of its own."""
    by_size: dict[int, list[Path]] = {}
    for path in volumes:
        by_size.setdefault(path.stat().st_size, []).append(path)
    for same in (group for group in by_size.values() if len(group) > 1):
        seen: dict[str, Path] = {}
        for path in same:
            first = seen.setdefault(sha256_file(path), path)
            if first != path:
                raise StagingError(f"{path}: the same volume as {first}; remove one of them")
