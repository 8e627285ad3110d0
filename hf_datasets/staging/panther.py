"""PANTHER: ``ImagesTr/*_0000.mha`` with ``LabelsTr/*.mha``, at the source's top or one folder below.

The two tasks come in two archives that differ in how scans are named: ``NNNNN_0001`` for the arterial-phase
scans of task 1, ``NNNNN`` for the scans of task 2. Scans without labels lie elsewhere and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing, refuse_strangers, some
from hf_datasets.staging.metaimage import read_mha
from hf_datasets.staging.nifti import as_stored, same_grid, write_volume

IMAGES, LABELS = "ImagesTr", "LabelsTr"
NOTES = {
    "labels": "organ = upstream labels 1 and 2 (pancreas or tumour), lesion = upstream label 1 (tumour)",
    "format": "MetaImage rewritten as NIfTI, same voxels, physical positions from LPS+ to RAS+",
}
NAMES = {
    "panther-t1-seg-task": (re.compile(r"\d{5}_0001"), "10000_0001"),
    "panther-t2-seg-task": (re.compile(r"\d{5}"), "10303"),
}
"""How each task's scans are called, and an example."""


@dataclass(frozen=True)
class MriCase:
    """One scan and its label map."""

    origin: str
    root: Path
    image: str = ""

    @property
    def files(self) -> Sequence[Path]:
        return (self._scan, self._label)

    @property
    def _scan(self) -> Path:
        return self.root / IMAGES / f"{self.origin}_0000.mha"

    @property
    def _label(self) -> Path:
        return self.root / LABELS / f"{self.origin}.mha"

    def write(self, to: CaseFolders) -> None:
        scan, labels = read_mha(self._scan), read_mha(self._label)
        same_grid(self._scan, scan, self._label, labels)
        found = np.unique(labels.data)
        if not set(found.tolist()) <= {0, 1, 2}:
            raise StagingError(f"{self._label}: expected the labels 0, 1, 2, found {found[:6].tolist()}")
        if not (labels.data > 0).any():
            raise StagingError(f"{self._label}: expected a labelled pancreas, found background only")
        write_volume(to.public / "mri.nii.gz", as_stored(scan), scan.affine)
        write_volume(to.private / "organ.nii.gz", (labels.data > 0).astype(np.uint8), scan.affine)
        write_volume(to.private / "lesion.nii.gz", (labels.data == 1).astype(np.uint8), scan.affine)


@dataclass(frozen=True)
class Panther:
    """One of the two tasks' view of the source."""

    pattern: re.Pattern[str]
    example: str
    NOTES = NOTES

    def find(self, source: Path) -> Sequence[MriCase]:
        """Every labelled scan, in order of number."""
        root = _root(source)
        images = {path.name for path in (root / IMAGES).iterdir()}
        labels = {path.name for path in (root / LABELS).iterdir()}
        cases = sorted(name.removesuffix(".mha") for name in labels if name.endswith(".mha"))
        strange = [name for name in cases if not self.pattern.fullmatch(name)]
        if strange or not cases:
            found = f"found {some(strange)}" if strange else f"found {listing(root / LABELS)}"
            raise StagingError(f"{root / LABELS}: expected label maps such as {self.example}.mha, {found}")
        refuse_strangers(root / LABELS, labels, (f"{name}.mha" for name in cases))
        scans = {f"{name}_0000.mha" for name in cases}
        if missing := scans - images:
            raise StagingError(
                f"{root / IMAGES}: expected a scan for every label map, missing are {some(missing)}"
            )
        refuse_strangers(root / IMAGES, images, scans)
        return [MriCase(name, root) for name in cases]


def for_task(task_id: str) -> Panther:
    """The view of the source that belongs to a task."""
    return Panther(*NAMES[task_id])


def _root(source: Path) -> Path:
    for root in (source, *sorted(path for path in source.iterdir() if path.is_dir())):
        if (root / IMAGES).is_dir() and (root / LABELS).is_dir():
            return root
    raise StagingError(f"{source}: expected {IMAGES}/ and {LABELS}/, found {listing(source)}")
