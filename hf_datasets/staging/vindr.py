"""VinDr-CXR: ``train/<id>.dicom`` and ``annotations/annotations_train.csv``, the marks of three readers a film.

Nothing but pixels leaves a DICOM file.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing, some
from hf_datasets.staging.boxes import CUT_NOTE, box_inside, numbers, refuse_far_box, write_detection_case
from hf_datasets.staging.dicom_film import FILM_NOTE, read_film
from hf_datasets.staging.readers_boxes import NOTE, Mark, agreed

CLASSES = (
    "Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Consolidation", "ILD", "Infiltration",
    "Lung Opacity", "Nodule/Mass", "Other lesion", "Pleural effusion", "Pleural thickening", "Pneumothorax",
    "Pulmonary fibrosis",
)  # fmt: skip
RARE = (
    "Clavicle fracture", "Edema", "Emphysema", "Enlarged PA", "Lung cavity", "Lung cyst", "Mediastinal shift",
    "Rib fracture",
)  # fmt: skip
OTHER, NOTHING = "Other lesion", "No finding"
READERS = 3
NOTES = {
    "split": "train: each film was read by three radiologists",
    "readers": NOTE,
    "boxes": CUT_NOTE,
    "classes": f"the rare local labels {', '.join(RARE)} count as {OTHER}",
    "film": FILM_NOTE,
    "identity": "pixels only; no DICOM attribute is kept",
}
TABLE = "annotations/annotations_train.csv"
COLUMNS = ("image_id", "rad_id", "class_name", "x_min", "y_min", "x_max", "y_max")


@dataclass(frozen=True)
class VindrCase:
    """A film and what its readers marked."""

    film: Path
    table: Path
    marks: tuple[Mark, ...]
    image: str = ""

    @property
    def origin(self) -> str:
        return self.film.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.film, self.table)

    def write(self, to: CaseFolders) -> None:
        pixels = read_film(self.film)
        height, width = pixels.shape
        for mark in self.marks:
            refuse_far_box(f"{self.table}: {self.origin}", mark.corners, width, height)
        boxes = [box_inside(name, corners, width, height) for name, corners in agreed(self.marks)]
        write_detection_case(to, pixels, [box for box in boxes if box])


def find(source: Path) -> Sequence[VindrCase]:
    """The films of the training part that are at hand."""
    folder = folder_at(source, "train")
    table = source / TABLE
    films = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if strange := [path.name for path in films if path.suffix not in (".dicom", ".dcm")]:
        raise StagingError(f"{folder}: unexpected {some(strange)}; expected <image_id>.dicom only")
    marks, readers = _read(table)
    if unread := {path.stem for path in films} - readers.keys():
        raise StagingError(
            f"{table}: expected rows for every film, found none for {some(unread)}; is the table cut short?"
        )
    for path in films:
        if len(readers[path.stem]) != READERS:
            raise StagingError(
                f"{table}: expected {READERS} readers of {path.stem}, found {some(readers[path.stem])}; "
                "is the table cut short?"
            )
    if not films:
        raise StagingError(f"{folder}: expected films such as <image_id>.dicom, found {listing(folder)}")
    return [VindrCase(path, table, tuple(marks[path.stem])) for path in films]


def _read(table: Path) -> tuple[dict[str, list[Mark]], dict[str, set[str]]]:
    """Marks and readers of every film; a reader who saw nothing has no mark."""
    if not table.is_file():
        raise StagingError(f"{table}: expected the readers' marks, found {listing(table.parent)}")
    marks: dict[str, list[Mark]] = defaultdict(list)
    readers: dict[str, set[str]] = defaultdict(set)
    with table.open(newline="", encoding="utf-8") as handle:
        rows = csv.DictReader(handle)
        if missing := set(COLUMNS) - set(rows.fieldnames or ()):
            raise StagingError(
                f"{table}: expected the columns {some(missing)}, found {some(rows.fieldnames or ())}"
            )
        for line, row in enumerate(rows, start=2):
            where = f"{table}, line {line}"
            readers[row["image_id"]].add(row["rad_id"])
            if row["class_name"] != NOTHING:
                corners = numbers(where, (row[column] for column in COLUMNS[3:]))
                marks[row["image_id"]].append(Mark(row["rad_id"], _class(row["class_name"], where), corners))
    return marks, readers


def _class(name: str, where: str) -> str:
    if name in RARE:
        return OTHER
    if name not in CLASSES:
        raise StagingError(f"{where}: expected a local label such as {CLASSES[0]}, found {name!r:.60}")
    return name
