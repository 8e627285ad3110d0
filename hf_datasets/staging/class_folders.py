"""Upstreams whose folders are classes: Kaggle's brain MRI, CRC-VAL-HE-7K and Kermany's chest films; test parts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_datasets.staging.base import StagingError, folder_at, listing, refuse_strangers, some
from hf_datasets.staging.labelled import IMAGE_NOTE, LabelledFile


@dataclass(frozen=True)
class ClassFolders:
    """Where one task's pictures lie.

    ``places``: folders that may hold the class folders. ``classes``: upstream's folder -> the task's class.
    ``marks``: upstream's folder -> beginnings of the file names that belong in it, where upstream names files so.
    """

    places: tuple[str, ...]
    classes: Mapping[str, str]
    suffixes: tuple[str, ...]
    marks: Mapping[str, tuple[str, ...]]

    @property
    def NOTES(self) -> dict[str, str]:
        return {
            "split": f"{self.places[0]}; upstream's other folders are never read",
            "labels": ", ".join(f"{folder} is {name}" for folder, name in self.classes.items()),
            "images": IMAGE_NOTE,
        }

    def find(self, source: Path) -> Sequence[LabelledFile]:
        """All pictures of the classes, folder by folder."""
        root = folder_at(source, *self.places)
        refuse_strangers(root, (path.name for path in root.iterdir()), self.classes)
        return [case for folder in self.classes for case in self._cases(root / folder)]

    def _cases(self, folder: Path) -> list[LabelledFile]:
        if not folder.is_dir():
            raise StagingError(f"{folder}: expected this folder of a class, found {listing(folder.parent)}")
        pictures = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        if not pictures:
            raise StagingError(f"{folder}: expected pictures, found an empty folder")
        strange = [path.name for path in pictures if path.suffix.lower() not in self.suffixes]
        if strange:
            raise StagingError(
                f"{folder}: unexpected {some(strange)}; expected {' or '.join(self.suffixes)} files only"
            )
        misplaced = [path.name for path in pictures if self._belongs_elsewhere(path.name, folder.name)]
        if misplaced:
            raise StagingError(
                f"{folder}: found {some(misplaced)}, which by name belong in the folder of another class"
            )
        label = self.classes[folder.name]
        return [LabelledFile(f"{folder.name}/{path.stem}", path, label) for path in pictures]

    def _belongs_elsewhere(self, name: str, folder: str) -> bool:
        return any(name.startswith(marks) for other, marks in self.marks.items() if other != folder)


_TISSUES = ("ADI", "BACK", "DEB", "LYM", "MUC", "MUS", "NORM", "STR", "TUM")

TASKS = {
    "braintumor-cls-task": ClassFolders(
        places=("Testing",),
        classes={name: name for name in ("glioma", "meningioma", "notumor", "pituitary")},
        suffixes=(".jpg", ".jpeg", ".png"),
        marks={
            "glioma": ("Te-gl",),
            "meningioma": ("Te-me",),
            "notumor": ("Te-no",),
            "pituitary": ("Te-pi",),
        },
    ),
    "crc-histology-cls-task": ClassFolders(
        places=("CRC-VAL-HE-7K",),
        classes={name: name.lower() for name in _TISSUES},
        suffixes=(".tif", ".tiff"),
        marks={name: (f"{name}-",) for name in _TISSUES},
    ),
    "chest-xray-pneumonia-cls-task": ClassFolders(
        places=("chest_xray/test", "test"),
        classes={"NORMAL": "normal", "PNEUMONIA": "pneumonia"},
        suffixes=(".jpeg", ".jpg"),
        marks={"NORMAL": ("NORMAL", "IM-"), "PNEUMONIA": ("BACTERIA", "VIRUS", "person")},
    ),
}


def for_task(task_id: str) -> ClassFolders:
    """The view of one of the tasks whose upstream sorts pictures into folders."""
    return TASKS[task_id]
