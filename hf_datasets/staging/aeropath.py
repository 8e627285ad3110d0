"""AeroPath: ``N/{N_CT_HR,N_CT_HR_label_airways,N_CT_HR_label_lungs}.nii.gz``.

The numbered folders lie at the source's top, as in the Zenodo archive's ``AeroPath/``, or in ``data/``, as on
the Hub.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing, refuse_strangers
from hf_datasets.staging.nifti import as_stored, read_labels, read_volume, same_grid, write_volume

NOTES = {
    "labels": "1 = lung without airways, 2 = airways; where upstream's masks overlap, the airway stays",
    "grid": "upstream's array axes and affine unchanged; fresh NIfTI headers",
}
LUNG, AIRWAY = 1, 2
KINDS = ("", "_label_airways", "_label_lungs")


@dataclass(frozen=True)
class AirwayCase:
    """One numbered folder."""

    folder: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Sequence[Path]:
        return [self.folder / name for name in _names(self.folder)]

    def write(self, to: CaseFolders) -> None:
        ct, airways, lungs = self.files
        scan = read_volume(ct)
        labels = np.zeros(scan.data.shape, dtype=np.uint8)
        for path, value in ((lungs, LUNG), (airways, AIRWAY)):
            mask = read_labels(path, (0, 1))
            same_grid(ct, scan, path, mask)
            if not mask.data.any():
                raise StagingError(f"{path}: expected a labelled structure, found background only")
            labels[mask.data == 1] = value
        write_volume(to.public / "ct.nii.gz", as_stored(scan), scan.affine)
        write_volume(to.private / "dseg.nii.gz", labels, scan.affine)


def find(source: Path) -> Sequence[AirwayCase]:
    """Every case of the source, in order of number."""
    root = next((source / name for name in ("AeroPath", "data") if (source / name).is_dir()), source)
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        raise StagingError(f"{source}: expected folders 1, 2, ..., found {listing(root)}")
    for folder in folders:
        if not folder.name.isdecimal():
            raise StagingError(f"{folder}: expected a number as name, such as 1")
        found = {path.name for path in folder.iterdir()}
        for wanted in _names(folder):
            if wanted not in found:
                raise StagingError(f"{folder}: expected {wanted}, found {listing(folder)}")
        refuse_strangers(folder, found, _names(folder))
    return [AirwayCase(folder) for folder in sorted(folders, key=lambda folder: int(folder.name))]


def _names(folder: Path) -> list[str]:
    return [f"{folder.name}_CT_HR{kind}.nii.gz" for kind in KINDS]
