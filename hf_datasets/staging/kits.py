"""KiTS19: ``case_NNNNN/{imaging,segmentation}.nii.gz``, at the source's top or under ``data/``.

The upstream's axes stay as they are (slices first, the affine says so); image and masks share one affine,
and a submission is compared in physical space. ``kits.json``, where present, must know every case and its
pixel width.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing, refuse_strangers
from hf_datasets.staging.nifti import Volume, as_stored, read_labels, read_volume, same_grid, write_volume

NOTES = {
    "labels": "organ = upstream labels 1 and 2 (kidney or tumour), lesion = upstream label 2 (tumour)",
    "grid": "upstream's array axes and affine unchanged; fresh NIfTI headers",
}
IMAGE, LABEL, INDEX = "imaging.nii.gz", "segmentation.nii.gz", "kits.json"
FIRST_UNLABELLED = 210
"""From this number on upstream's cases are the challenge's test part and have no segmentation."""

_CASE = re.compile(r"case_(\d{5})")


@dataclass(frozen=True)
class KitsCase:
    """One case folder. ``pixel`` is the in-plane width in mm that ``kits.json`` states, if it does."""

    folder: Path
    pixel: float | None
    image: str = ""

    @property
    def origin(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Sequence[Path]:
        index = self.folder.parent / INDEX
        return (self._image, self._label, *([index] if index.is_file() else []))

    @property
    def _image(self) -> Path:
        return self.folder / IMAGE

    @property
    def _label(self) -> Path:
        return self.folder / LABEL

    def write(self, to: CaseFolders) -> None:
        scan, labels = read_volume(self._image), _classes(self._label)
        same_grid(self._image, scan, self._label, labels)
        self._check_pixel(scan)
        write_volume(to.public / "ct.nii.gz", as_stored(scan), scan.affine)
        write_volume(to.private / "organ.nii.gz", (labels.data > 0).astype(np.uint8), scan.affine)
        write_volume(to.private / "lesion.nii.gz", (labels.data == 2).astype(np.uint8), scan.affine)

    def _check_pixel(self, scan: Volume) -> None:
        if self.pixel is not None and not np.isclose(scan.spacing[2], self.pixel, rtol=0.01):
            raise StagingError(
                f"{self._image}: expected a pixel width of {self.pixel:.4g} mm as {INDEX} says, "
                f"found {scan.spacing[2]:.4g} mm; is this the imaging of {self.origin}?"
            )


def find(source: Path) -> Sequence[KitsCase]:
    """Every labelled case of the source, in order of number."""
    root = source / "data" if (source / "data").is_dir() else source
    folders = sorted(path for path in root.glob("case_*") if path.is_dir())
    labelled = [folder for folder in folders if _number(folder) < FIRST_UNLABELLED]
    if not labelled:
        raise StagingError(f"{source}: expected folders case_00000, case_00001, ..., found {listing(root)}")
    widths = _pixel_widths(root / INDEX)
    for folder in labelled:
        _check_folder(folder)
        if widths is not None and folder.name not in widths:
            raise StagingError(
                f"{root / INDEX}: expected an entry for {folder.name}, found none; is the folder misnamed?"
            )
    return [KitsCase(folder, (widths or {}).get(folder.name)) for folder in labelled]


def _number(folder: Path) -> int:
    match = _CASE.fullmatch(folder.name)
    if match is None:
        raise StagingError(f"{folder}: expected a name such as case_00000")
    return int(match.group(1))


def _check_folder(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    for wanted in (IMAGE, LABEL):
        if wanted not in names:
            raise StagingError(
                f"{folder}: expected {wanted}, found {listing(folder)}; run upstream's get_imaging for images"
            )
    refuse_strangers(folder, names, (IMAGE, LABEL))


def _pixel_widths(path: Path) -> dict[str, float | None] | None:
    if not path.is_file():
        return None
    try:
        records: Any = json.loads(path.read_bytes())
        return {str(record["case_id"]): _float(record.get("captured_pixel_width")) for record in records}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StagingError(
            f"{path}: expected a JSON list of records with case_id, found something else"
        ) from None


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _classes(path: Path) -> Volume:
    labels = read_labels(path, (0, 1, 2))
    if not labels.data.any():
        raise StagingError(f"{path}: expected a labelled kidney, found background only")
    return labels
