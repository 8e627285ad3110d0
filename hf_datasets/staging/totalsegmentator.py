"""TotalSegmentator v2: ``sNNNN/{ct.nii.gz, segmentations/<class>.nii.gz}``, at the source's top or one below.

The 117 masks of a case become one label map. ``meta.csv``, where present, must know every case.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing, refuse_strangers, some
from hf_datasets.staging.nifti import as_stored, read_labels, read_volume, same_grid, write_volume
from tasks.registry import load_task
from tasks.schema import MaskOutput

NOTES = {
    "labels": "dseg = the 117 classes in alphabetical order; where masks overlap, the higher id stays",
    "grid": "upstream's array axes and affine unchanged; fresh NIfTI headers",
}
TASK = "tsg-multiorgan-seg-task"
IMAGE, MASKS, INDEX = "ct.nii.gz", "segmentations", "meta.csv"

_CASE = re.compile(r"s\d{4}")


@dataclass(frozen=True)
class ScanCase:
    """One case folder; ``classes`` is id -> name."""

    folder: Path
    classes: dict[int, str]
    image: str = ""

    @property
    def origin(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Sequence[Path]:
        return (self.folder / IMAGE, *(self._mask(name) for name in self.classes.values()))

    def _mask(self, name: str) -> Path:
        return self.folder / MASKS / f"{name}.nii.gz"

    def write(self, to: CaseFolders) -> None:
        scan = read_volume(self.folder / IMAGE)
        labels = np.zeros(scan.data.shape, dtype=np.uint8)
        for value, name in sorted(self.classes.items()):
            mask = read_labels(self._mask(name), (0, 1))
            same_grid(self.folder / IMAGE, scan, self._mask(name), mask)
            labels[mask.data == 1] = value
        if not labels.any():
            raise StagingError(f"{self.folder / MASKS}: expected a labelled structure, found background only")
        write_volume(to.public / IMAGE, as_stored(scan), scan.affine)
        write_volume(to.private / "dseg.nii.gz", labels, scan.affine)


def find(source: Path) -> Sequence[ScanCase]:
    """Every case of the source, in order of number."""
    root = _root(source)
    folders = sorted(path for path in root.iterdir() if _CASE.fullmatch(path.name))
    strange = [path.name for path in root.iterdir() if path.is_dir() and not _CASE.fullmatch(path.name)]
    if strange:
        raise StagingError(f"{root}: expected case folders named s0000, s0001, ..., found {some(strange)}")
    output = load_task(TASK).output
    assert isinstance(output, MaskOutput)
    classes = {value: name for value, name in output.files[0].labels.items() if value}
    known = _listed(root / INDEX)
    for folder in folders:
        _check_folder(folder, classes)
        if known is not None and folder.name not in known:
            raise StagingError(
                f"{root / INDEX}: expected a row for {folder.name}, found none; is the folder misnamed?"
            )
    return [ScanCase(folder, classes) for folder in folders]


def _root(source: Path) -> Path:
    for root in (source, *sorted(path for path in source.iterdir() if path.is_dir())):
        if any(_CASE.fullmatch(path.name) for path in root.iterdir() if path.is_dir()):
            return root
    raise StagingError(f"{source}: expected case folders s0000, s0001, ..., found {listing(source)}")


def _check_folder(folder: Path, classes: dict[int, str]) -> None:
    names = {path.name for path in folder.iterdir()}
    missing = {IMAGE, MASKS} - names
    if missing:
        raise StagingError(f"{folder}: expected {IMAGE} and {MASKS}/, found {listing(folder)}")
    refuse_strangers(folder, names, (IMAGE, MASKS))
    wanted = {f"{name}.nii.gz" for name in classes.values()}
    found = {path.name for path in (folder / MASKS).iterdir()}
    if absent := wanted - found:
        raise StagingError(
            f"{folder / MASKS}: expected the {len(wanted)} classes of version 2, missing are {some(absent)}"
        )
    refuse_strangers(folder / MASKS, found, wanted)


def _listed(path: Path) -> set[str] | None:
    if not path.is_file():
        return None
    with path.open(newline="", encoding="utf-8-sig") as handle:
        rows = list(csv.DictReader(handle, delimiter=";"))
    if not rows or "image_id" not in rows[0]:
        raise StagingError(f"{path}: expected rows with image_id, separated by semicolons, found {len(rows)}")
    return {row["image_id"] for row in rows}
