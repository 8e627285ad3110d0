"""BraTS 2023 adult glioma: ``BraTS-GLI-ppppp-ttt/BraTS-GLI-ppppp-ttt-{t1c,t1n,t2f,t2w,seg}.nii.gz``.

One axial plane of the contrast-enhanced T1 scan a patient: the one with most tumour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing, refuse_strangers
from hf_datasets.staging.degrade import BICUBIC_NOTE
from hf_datasets.staging.nifti import read_labels, read_volume, same_grid
from hf_datasets.staging.planes import (
    PADDING_NOTE,
    SCALE_NOTE,
    axial,
    canonical,
    padded,
    unit_scale,
    write_halved,
)

NOTES = {
    **BICUBIC_NOTE,
    "slice": "the axial plane with most tumour voxels (seg above 0), the lowest of equals; front up, patient's right "
    "on the left; the first scan of a patient",
    "reference": f"t1c plane {SCALE_NOTE}; {PADDING_NOTE}",
}
PARTS = ("t1c", "t1n", "t2f", "t2w", "seg")
LABELS = (0, 1, 2, 3)

_FOLDER = re.compile(r"BraTS-GLI-(\d{5})-\d{3}")


@dataclass(frozen=True)
class BratsCase:
    """One scan folder."""

    folder: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Sequence[Path]:
        return (self._part("t1c"), self._part("seg"))

    def _part(self, name: str) -> Path:
        return self.folder / f"{self.folder.name}-{name}.nii.gz"

    def write(self, to: CaseFolders) -> None:
        scan = read_volume(self._part("t1c"))
        labels = read_labels(self._part("seg"), LABELS)
        same_grid(self._part("t1c"), scan, self._part("seg"), labels)
        tumour = (canonical(labels) > 0).sum(axis=(0, 1))
        if not tumour.any():
            raise StagingError(f"{self._part('seg')}: expected a labelled tumour, found background only")
        plane = unit_scale(np.maximum(axial(canonical(scan), int(tumour.argmax())), 0))
        if plane is None:
            raise StagingError(f"{self._part('t1c')}: expected signal where the tumour is, found none")
        write_halved(to, padded(plane))


def find(source: Path) -> Sequence[BratsCase]:
    """The first scan of every patient."""
    folders = sorted(path for path in source.rglob("BraTS-GLI-*") if path.is_dir())
    if not folders:
        raise StagingError(f"{source}: expected folders such as BraTS-GLI-00000-000, found {listing(source)}")
    first: dict[str, Path] = {}
    for folder in folders:
        first.setdefault(_patient(folder), folder)
    return [BratsCase(folder) for folder in first.values()]


def _patient(folder: Path) -> str:
    match = _FOLDER.fullmatch(folder.name)
    if match is None:
        raise StagingError(f"{folder}: expected a name such as BraTS-GLI-00000-000")
    wanted = [f"{folder.name}-{part}.nii.gz" for part in PARTS]
    names = {path.name for path in folder.iterdir()}
    for name in (wanted[0], wanted[-1]):
        if name not in names:
            raise StagingError(f"{folder}: expected {name}, found {listing(folder)}; unpack it again")
    refuse_strangers(folder, names, wanted)
    return match.group(1)
