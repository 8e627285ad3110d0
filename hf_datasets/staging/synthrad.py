"""SynthRAD2025, task 1, head and neck: ``Task1/HN/1HN<centre><nnn>/{mr,ct,mask}.mha``, already on one grid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing
from hf_datasets.staging.metaimage import read_mha
from hf_datasets.staging.nifti import Volume, as_stored, same_grid, write_volume

NOTES = {
    "grid": "upstream's voxels and geometry unchanged, written as NIfTI under a fresh header",
    "registration": "upstream's: the CT was brought to the MR grid; nothing is registered here",
    "mask": "upstream's body outline, a public input; the metric takes the whole grid",
}
PARTS = ("mr", "ct", "mask")
AIR, HIGHEST = -500.0, 4100.0

_FOLDER = re.compile(r"1HN[A-Z]\d{3}")


@dataclass(frozen=True)
class SynthradCase:
    """One case folder."""

    folder: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Sequence[Path]:
        return tuple(self._part(name) for name in PARTS)

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.mha"

    def write(self, to: CaseFolders) -> None:
        mr, ct, mask = (read_mha(self._part(name)) for name in PARTS)
        for name, volume in (("ct", ct), ("mask", mask)):
            same_grid(self._part("mr"), mr, self._part(name), volume)
        if set(np.unique(mask.data).tolist()) != {0, 1}:
            raise StagingError(
                f"{self._part('mask')}: expected a mask of 0 and 1, found {np.unique(mask.data)[:6]}"
            )
        self._check_units(mr, ct)
        write_volume(to.public / "mr.nii.gz", as_stored(mr), mr.affine)
        write_volume(to.public / "mask.nii.gz", mask.data.astype(np.uint8), mr.affine)
        write_volume(to.private / "ct.nii.gz", as_stored(ct), mr.affine)

    def _check_units(self, mr: Volume, ct: Volume) -> None:
        low, high = (float(value) for value in np.percentile(ct.data, (1, 99.9)))
        if low > AIR or not 0 < high <= HIGHEST:
            raise StagingError(
                f"{self._part('ct')}: expected Hounsfield units, air near -1000, found {low:.0f} to {high:.0f}; "
                "are mr and ct swapped?"
            )
        if mr.data.min() < AIR or mr.data.min() == mr.data.max():
            raise StagingError(
                f"{self._part('mr')}: expected MR signal, found {mr.data.min():.0f} to {mr.data.max():.0f}; "
                "are mr and ct swapped?"
            )


def find(source: Path) -> Sequence[SynthradCase]:
    """Every head-and-neck case of task 1."""
    folders = sorted(path for path in source.rglob("1HN*") if path.is_dir())
    if not folders:
        raise StagingError(
            f"{source}: expected case folders such as Task1/HN/1HNA001, found {listing(source)}"
        )
    for folder in folders:
        if not _FOLDER.fullmatch(folder.name):
            raise StagingError(f"{folder}: expected a name such as 1HNA001")
        missing = [f"{name}.mha" for name in PARTS if not (folder / f"{name}.mha").is_file()]
        if missing:
            raise StagingError(f"{folder}: expected {missing[0]}, found {listing(folder)}")
    return [SynthradCase(folder) for folder in folders]
