"""The Medical Segmentation Decathlon's segmentation tasks: scans and labels of `hf_datasets.staging.decathlon`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError
from hf_datasets.staging.decathlon import LabelledScan, labelled_scans
from hf_datasets.staging.nifti import as_stored, write_volume

GRID = "upstream's array axes and affine unchanged; fresh NIfTI headers"
LABEL_MAP = {"dseg.nii.gz": ()}
"""The label map as it is."""


@dataclass(frozen=True)
class MsdCase:
    """One labelled scan of the task."""

    scan: LabelledScan
    task: MsdTask
    image: str = ""

    @property
    def origin(self) -> str:
        return self.scan.name

    @property
    def files(self) -> Sequence[Path]:
        return self.scan.files

    def write(self, to: CaseFolders) -> None:
        scan, labels = self.scan.read()
        missing = [number for number in self.task.always if not (labels.data == number).any()]
        if missing:
            raise StagingError(
                f"{self.origin}: expected label {missing[0]} in every case, found none; wrong file?"
            )
        write_volume(to.public / self.task.public, as_stored(scan), scan.affine)
        for name, ids in self.task.outputs.items():
            data = np.isin(labels.data, ids).astype(np.uint8) if ids else labels.data
            write_volume(to.private / name, data, scan.affine)


@dataclass(frozen=True)
class MsdTask:
    """Where one task's data lie and what becomes of them.

    ``always``: labels that no case lacks. ``outputs``: private file -> the ids that are 1 in it, or none for the
    label map as it is.
    """

    folder: str
    prefix: str
    labels: tuple[int, ...]
    public: str
    outputs: Mapping[str, tuple[int, ...]]
    always: tuple[int, ...] = ()
    channels: int = 1

    @property
    def NOTES(self) -> dict[str, str]:
        rules = "; ".join(
            f"{name} = upstream label {' or '.join(map(str, ids))}"
            if ids
            else f"{name} = upstream's label map"
            for name, ids in self.outputs.items()
        )
        return {"labels": rules, "grid": GRID, "split": "imagesTr with labelsTr; imagesTs has no labels"}

    def find(self, source: Path) -> Sequence[MsdCase]:
        """Every labelled case, in upstream's order."""
        scans = labelled_scans(source, self.folder, self.prefix, self.labels, self.channels)
        return [MsdCase(scan, self) for scan in scans]


TASKS = {
    "liver-seg-task": MsdTask(
        "Task03_Liver",
        "liver",
        (0, 1, 2),
        "ct.nii.gz",
        {"organ.nii.gz": (1, 2), "lesion.nii.gz": (2,)},
        always=(1,),
    ),
    "colon-seg-task": MsdTask("Task10_Colon", "colon", (0, 1), "ct.nii.gz", LABEL_MAP),
    "hepaticvessel-seg-task": MsdTask(
        "Task08_HepaticVessel", "hepaticvessel", (0, 1, 2), "ct.nii.gz", LABEL_MAP, always=(1,)
    ),
    "spleen-seg-task": MsdTask("Task09_Spleen", "spleen", (0, 1), "ct.nii.gz", LABEL_MAP, always=(1,)),
    "heart-seg-task": MsdTask("Task02_Heart", "la", (0, 1), "mri.nii.gz", LABEL_MAP, always=(1,)),
    "prostate-seg-task": MsdTask(
        "Task05_Prostate", "prostate", (0, 1, 2), "mri.nii.gz", LABEL_MAP, channels=2
    ),
}


def for_task(task_id: str) -> MsdTask:
    """The view of one of the tasks that the Decathlon serves."""
    return TASKS[task_id]
