"""MIMIC-CXR and MIMIC-CXR-JPG: reports ``files/p10/p10000032/s50414267.txt``, its JPEG files in a folder beside.

The two PhysioNet projects may lie in one tree or side by side as ``mimic-cxr/`` and ``mimic-cxr-jpg/``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.metrics.chest import extract
from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing, refuse_strangers
from hf_datasets.staging.csv_rows import rows_of
from hf_datasets.staging.images import grey, read_picture
from hf_datasets.staging.studies import (
    IMAGES_NOTE,
    SHORT_NOTE,
    Section,
    is_deliverable,
    text_of,
    without_marks,
    write_study,
)

SPLIT_TABLE, METADATA_TABLE = "mimic-cxr-2.0.0-split.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"
TASK, SPLIT = "mimic-cxr-report-task", "test"
NOTES = {
    "split": f"{SPLIT} of {SPLIT_TABLE}; studies of which neither report nor images are there are passed over",
    "report": "the FINDINGS section on one line; upstream's ___ marks of de-identification removed",
    "left out": f"studies without a FINDINGS section; {SHORT_NOTE}",
    "images": f"{IMAGES_NOTE}; frontal views first, then lateral ones, then by upstream's name",
}

_HEADING = re.compile(r"^[ \t]*([A-Z][A-Z0-9 /()&,.-]*):", re.MULTILINE)
_VIEW_ORDER = {"PA": 0, "AP": 0, "LATERAL": 1, "LL": 1}


@dataclass(frozen=True)
class View:
    """One image of a study and what the metadata say of it."""

    path: Path
    position: str
    rows: int
    columns: int

    def pixels(self) -> NDArray[np.uint8]:
        pixels = grey(read_picture(self.path))
        if pixels.shape != (self.rows, self.columns):
            raise StagingError(
                f"{self.path}: expected {self.columns}x{self.rows} pixels by {METADATA_TABLE}, "
                f"found {pixels.shape[1]}x{pixels.shape[0]}"
            )
        return pixels


@dataclass(frozen=True)
class MimicStudy:
    """One study with its findings."""

    report: Path
    views: tuple[View, ...]
    sections: tuple[Section, ...]
    image: str = ""

    @property
    def origin(self) -> str:
        return self.report.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.report, *(view.path for view in self.views))

    def write(self, to: CaseFolders) -> None:
        labels = {
            "observations": extract(text_of(self.sections)),
            "views": [view.position for view in self.views],
        }
        write_study(to, [view.pixels() for view in self.views], self.sections, labels)


def find(source: Path) -> Sequence[MimicStudy]:
    """The studies of the test split that have findings."""
    reports = folder_at(source, "mimic-cxr/files", "files")
    pictures = folder_at(source, "mimic-cxr-jpg/files", "files")
    listed = _listed(pictures.parent / SPLIT_TABLE)
    known = _metadata(pictures.parent / METADATA_TABLE, {name for names in listed.values() for name in names})
    studies = [
        study
        for (subject, number), names in sorted(listed.items())
        if (study := _study(reports, pictures, subject, number, {name: known.get(name) for name in names}))
    ]
    if not studies:
        raise StagingError(
            f"{source}: expected studies of the {SPLIT} split with findings, found none of {len(listed)}"
        )
    return studies


def _listed(table: Path) -> dict[tuple[str, str], list[str]]:
    """(subject, study) -> names of its images in the split."""
    studies: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows_of(table, ("dicom_id", "study_id", "subject_id", "split")):
        if row["split"] == SPLIT:
            studies[row["subject_id"], row["study_id"]].append(row["dicom_id"])
    if not studies:
        raise StagingError(f"{table}: expected rows with split {SPLIT}, found none")
    return studies


def _metadata(table: Path, wanted: set[str]) -> dict[str, dict[str, str]]:
    columns = ("dicom_id", "study_id", "subject_id", "ViewPosition", "Rows", "Columns")
    return {row["dicom_id"]: row for row in rows_of(table, columns) if row["dicom_id"] in wanted}


def _study(
    reports: Path, pictures: Path, subject: str, number: str, images: Mapping[str, dict[str, str] | None]
) -> MimicStudy | None:
    place = Path(f"p{subject[:2]}", f"p{subject}", f"s{number}")
    report, folder = (reports / place).with_suffix(".txt"), pictures / place
    if not report.is_file() and not folder.is_dir():
        return None
    if not report.is_file():
        raise StagingError(f"{report}: expected the report of {folder.name}, found {listing(report.parent)}")
    if not folder.is_dir():
        raise StagingError(f"{folder}: expected the images of {folder.name}, found {listing(folder.parent)}")
    refuse_strangers(
        folder, (path.name for path in folder.iterdir()), [*(f"{name}.jpg" for name in images), "index.html"]
    )
    views = [_view(folder / f"{name}.jpg", row, subject, number) for name, row in images.items()]
    sections = (Section("findings", findings_of(_text(report))),)
    if not is_deliverable(TASK, sections):
        return None
    views.sort(key=lambda view: (_VIEW_ORDER.get(view.position, 2), view.path.name))
    return MimicStudy(report, tuple(views), sections)


def _view(path: Path, row: dict[str, str] | None, subject: str, number: str) -> View:
    if not path.is_file():
        raise StagingError(f"{path}: listed in {SPLIT_TABLE} but not there")
    if row is None or (row["subject_id"], row["study_id"]) != (subject, number):
        found = "no such row" if row is None else f"subject {row['subject_id']}, study {row['study_id']}"
        raise StagingError(
            f"{METADATA_TABLE}: expected {path.stem} of subject {subject}, study {number}, found {found}"
        )
    try:
        return View(path, row["ViewPosition"], int(row["Rows"]), int(row["Columns"]))
    except ValueError:
        raise StagingError(
            f"{METADATA_TABLE}: expected Rows and Columns of {path.stem} as whole numbers, found others"
        ) from None


def _text(report: Path) -> str:
    try:
        return report.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StagingError(
            f"{report}: expected a report in UTF-8, found other bytes; download it again"
        ) from None


def findings_of(report: str) -> str:
    """The text below the heading FINDINGS, up to the next heading; empty where there is none."""
    parts = _HEADING.split(report)[1:]
    texts = [text for heading, text in zip(parts[::2], parts[1::2], strict=True) if heading == "FINDINGS"]
    return without_marks(" ".join(texts))
