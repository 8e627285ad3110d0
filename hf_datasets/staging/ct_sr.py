"""CT through-plane super-resolution: scans of three upstreams, each with slices made thick and interpolated back.

CT-ORG is read here (``volume-<n>.nii.gz`` with ``labels-<n>.nii.gz``); the scans of the Medical Segmentation
Decathlon and of TotalSegmentator come from their own modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from nibabel.orientations import io_orientation

from hf_datasets.staging import totalsegmentator
from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing, refuse_strangers
from hf_datasets.staging.decathlon import LabelledScan, labelled_scans
from hf_datasets.staging.degrade import THICK, THICK_NOTE, thick_slices
from hf_datasets.staging.nifti import Volume, as_stored, read_volume, write_volume

MOST = 128
"""Slices of a case; a longer scan would not fit the memory of those who score it."""
NOTES = {
    **THICK_NOTE,
    "slices": f"consecutive ones from a random place: as many as there are, at most {MOST}, a multiple of {THICK}",
    "values": "both volumes in HU, the input rounded to whole numbers as a scanner stores them; upstream's array axes, "
    "affine moved to the first slice kept",
}
FEWEST = 3 * THICK
FAT, HIGHEST = -50.0, 4100.0
"""A body has fat, so the lowest half per cent of a scan in HU lies below the first; metal aside, nothing is denser than
the second."""

_VOLUME = re.compile(r"volume-(\d+)\.nii(\.gz)?")


@dataclass(frozen=True)
class ScanCase:
    """One scan: where it lies for messages, and how it is read."""

    origin: str
    place: Path
    files: Sequence[Path]
    read: Callable[[], Volume]
    image: str = ""

    def write(self, to: CaseFolders) -> None:
        scan = self.read()
        self._check(scan)
        count = min(scan.data.shape[2] // THICK * THICK, MOST)
        start = int(np.random.default_rng(to.seed).integers(scan.data.shape[2] - count + 1))
        part = scan.data[:, :, start : start + count]
        affine = scan.affine.copy()
        affine[:3, 3] += start * affine[:3, 2]
        write_volume(to.private / "ct.nii.gz", as_stored(Volume(part, affine, scan.spacing)), affine)
        thick = np.rint(thick_slices(part)).astype(np.int16)
        write_volume(to.public / "ct.nii.gz", thick, affine)

    def _check(self, scan: Volume) -> None:
        if io_orientation(scan.affine)[2, 0] != 2 or scan.data.shape[2] < FEWEST:
            raise StagingError(
                f"{self.place}: expected axial slices along the third axis, at least {FEWEST}, found {scan.data.shape}"
            )
        low, high = (float(value) for value in np.percentile(scan.data[::2, ::2, ::2], (0.5, 99.9)))
        if low > FAT or not 0 < high <= HIGHEST:
            raise StagingError(
                f"{self.place}: expected Hounsfield units, found {low:.0f} to {high:.0f}; is it rescaled?"
            )


@dataclass(frozen=True)
class Upstream:
    """The scans of one task."""

    find: Callable[[Path], Sequence[ScanCase]]

    @property
    def NOTES(self) -> dict[str, str]:
        return NOTES


def _ct_org(source: Path) -> Sequence[ScanCase]:
    folder = folder_at(source, "OrganSegmentations", ".")
    names = {path.name for path in folder.iterdir() if path.is_file()}
    scans = sorted((int(match[1]), name) for name in names if (match := _VOLUME.fullmatch(name)))
    if not scans:
        raise StagingError(f"{folder}: expected scans such as volume-0.nii.gz, found {listing(folder)}")
    labels = {name.replace("volume", "labels") for _, name in scans}
    if missing := labels - names:
        raise StagingError(
            f"{folder}: expected {min(missing)} beside its scan, found none; download CT-ORG again"
        )
    refuse_strangers(folder, names, labels | {name for _, name in scans} | {"README.txt"})
    return [_from_file(f"volume-{number}", folder / name) for number, name in scans]


def _from_file(origin: str, path: Path) -> ScanCase:
    return ScanCase(origin, path, (path,), partial(read_volume, path))


def _pancreas(source: Path) -> Sequence[ScanCase]:
    scans = labelled_scans(source, "Task07_Pancreas", "pancreas", (0, 1, 2))
    return [
        ScanCase(
            scan.name, scan.store.where(f"imagesTr/{scan.name}.nii.gz"), scan.files, partial(_image, scan)
        )
        for scan in scans
    ]


def _image(scan: LabelledScan) -> Volume:
    return scan.read()[0]


def _whole_body(source: Path) -> Sequence[ScanCase]:
    return [
        _from_file(case.origin, case.folder / totalsegmentator.IMAGE)
        for case in totalsegmentator.find(source)
    ]


TASKS = {
    "ctorg-ctsr-task": Upstream(_ct_org),
    "msd-pancreas-ctsr-task": Upstream(_pancreas),
    "totalsegmentator-ctsr-task": Upstream(_whole_body),
}


def for_task(task_id: str) -> Upstream:
    """The upstream of one of the tasks."""
    return TASKS[task_id]
