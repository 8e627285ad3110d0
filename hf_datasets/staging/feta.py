"""FeTA: BIDS with ``sub-NNN/anat/*_T2w.nii.gz`` and a label map ``*_dseg.nii.gz`` of the same name.

The label map lies beside the scan, as in releases 2.x, or below ``derivatives/``. ``participants.tsv``, where
present, must know every subject.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_datasets.staging.base import CaseFolders, StagingError, listing, some
from hf_datasets.staging.nifti import as_stored, read_labels, read_volume, same_grid, write_volume

NOTES = {
    "labels": "upstream's seven tissues, ids unchanged",
    "grid": "upstream's array axes and affine unchanged; fresh NIfTI headers",
}
SCAN, LABEL = "_T2w.nii.gz", "_dseg.nii.gz"
TISSUES = range(8)

_SUBJECT = re.compile(r"sub-\d{3}")
_SIDECARS = (".json", ".tsv")


@dataclass(frozen=True)
class BrainCase:
    """One reconstructed scan and its label map."""

    origin: str
    scan: Path
    label: Path
    image: str = ""

    @property
    def files(self) -> Sequence[Path]:
        return (self.scan, self.label)

    def write(self, to: CaseFolders) -> None:
        scan, labels = read_volume(self.scan), read_labels(self.label, TISSUES)
        same_grid(self.scan, scan, self.label, labels)
        absent = set(TISSUES) - set(labels.data.ravel().tolist())
        if absent:
            raise StagingError(
                f"{self.label}: expected background and seven tissues, missing are {sorted(absent)}"
            )
        write_volume(to.public / "t2w.nii.gz", as_stored(scan), scan.affine)
        write_volume(to.private / "dseg.nii.gz", labels.data, scan.affine)


def find(source: Path) -> Sequence[BrainCase]:
    """Every subject of the source, in order of number."""
    folders = sorted(path for path in source.glob("sub-*") if path.is_dir())
    if not folders:
        raise StagingError(f"{source}: expected folders sub-001, sub-002, ..., found {listing(source)}")
    known = _participants(source / "participants.tsv")
    for folder in folders:
        if not _SUBJECT.fullmatch(folder.name):
            raise StagingError(f"{folder}: expected a name such as sub-001")
        if known is not None and folder.name not in known:
            raise StagingError(f"{source / 'participants.tsv'}: expected a row for {folder.name}, found none")
    return [_case(source, folder) for folder in folders]


def _case(source: Path, folder: Path) -> BrainCase:
    anat = folder / "anat"
    scans = sorted(anat.glob(f"*{SCAN}")) if anat.is_dir() else []
    if len(scans) != 1:
        raise StagingError(f"{folder}: expected one anat/*{SCAN}, found {listing(anat)}")
    stem = scans[0].name.removesuffix(SCAN)
    if not stem.startswith(folder.name):
        raise StagingError(
            f"{scans[0]}: expected a name that begins with {folder.name}; is the file misplaced?"
        )
    label = stem + LABEL
    labels = [
        path
        for path in (anat / label, *sorted(source.glob(f"derivatives/*/{folder.name}/anat/{label}")))
        if path.is_file()
    ]
    if len(labels) != 1:
        raise StagingError(
            f"{folder}: expected one {label} in anat/ or below derivatives/, found {len(labels)}"
        )
    others = {path.name for path in anat.iterdir() if not path.name.endswith(_SIDECARS)}
    if strange := others - {scans[0].name, label}:
        raise StagingError(
            f"{anat}: unexpected {some(strange)}; remove it or stage from a clean copy of the upstream"
        )
    return BrainCase(folder.name, scans[0], labels[0])


def _participants(path: Path) -> set[str] | None:
    if not path.is_file():
        return None
    with path.open(newline="", encoding="utf-8-sig") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    if not rows or "participant_id" not in rows[0]:
        raise StagingError(f"{path}: expected tab-separated rows with participant_id, found {len(rows)}")
    return {row["participant_id"] for row in rows}
