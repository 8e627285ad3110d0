"""CheXpert Plus: ``df_chexpert_plus_240401.csv`` with one row an image, and the images below ``PNG/`` or as JPEG.

A case is a study of the validation part: its first frontal image and the findings and impression of its report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.metrics.chest import extract
from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing
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

TABLE = "df_chexpert_plus_240401.csv"
TASK, SPLIT = "chexpert-plus-cxr-task", "valid"
FOLDERS = ("PNG", "JPG", "CheXpert-v1.0", "images")
NOTES = {
    "split": f"{SPLIT}, by the first part of path_to_image; images of its train part are never read",
    "report": "section_findings and section_impression, one line each",
    "left out": f"studies without a frontal image, or with neither section; {SHORT_NOTE}",
    "images": f"{IMAGES_NOTE}; one, the first frontal view of the study",
}

_PATH = re.compile(r"([a-z]+)/(patient\d+)/(study\d+)/view(\d+)_(frontal|lateral)\.(?:jpg|png)")
_COLUMNS = ("path_to_image", "frontal_lateral", "section_findings", "section_impression")


@dataclass(frozen=True)
class ChexpertStudy:
    """One study: its report and its frontal picture."""

    origin: str
    table: Path
    picture: Path
    sections: tuple[Section, ...]
    image: str = ""

    @property
    def files(self) -> Sequence[Path]:
        return (self.table, self.picture)

    def write(self, to: CaseFolders) -> None:
        labels = {"observations": extract(text_of(self.sections))}
        write_study(to, [grey(read_picture(self.picture))], self.sections, labels)


@dataclass(frozen=True)
class _Row:
    path: str
    view: int
    sections: tuple[Section, ...]


def find(source: Path) -> Sequence[ChexpertStudy]:
    """The studies of the validation part with a frontal image and a report."""
    pictures = folder_at(source, *FOLDERS)
    table = source / TABLE
    frontal: dict[str, _Row] = {}
    reports: dict[str, tuple[Section, ...]] = {}
    for number, fields in enumerate(rows_of(table, _COLUMNS), start=1):
        split, study, view, side = _placed(table, number, fields)
        if split != SPLIT:
            continue
        row = _Row(fields["path_to_image"], view, _sections(fields))
        if reports.setdefault(study, row.sections) != row.sections:
            raise StagingError(f"{table}: expected one report for all images of {study}, found two")
        if side == "frontal" and (study not in frontal or view < frontal[study].view):
            frontal[study] = row
    studies = [
        ChexpertStudy(study, table, _picture(pictures, row.path), row.sections)
        for study, row in sorted(frontal.items())
        if is_deliverable(TASK, row.sections)
    ]
    if not studies:
        raise StagingError(
            f"{table}: expected frontal images below {SPLIT}/ that have a report, found none in {len(frontal)} studies"
        )
    return studies


def _placed(table: Path, number: int, fields: dict[str, str]) -> tuple[str, str, int, str]:
    """Split, study, number of the view and its direction, by the path of the image."""
    found = _PATH.fullmatch(fields["path_to_image"])
    if found is None:
        raise StagingError(
            f"{table}: expected a path such as {SPLIT}/patient64541/study1/view1_frontal.jpg in row {number}, "
            f"found {fields['path_to_image'][:80]!r}"
        )
    split, patient, study, view, side = found.groups()
    if fields["frontal_lateral"].lower() != side:
        raise StagingError(
            f"{table}: expected {side} as frontal_lateral of {found[0]}, found {fields['frontal_lateral'][:20]!r}"
        )
    return split, f"{patient}/{study}", int(view), side


def _sections(fields: dict[str, str]) -> tuple[Section, ...]:
    named = {name: without_marks(fields[f"section_{name}"]) for name in ("findings", "impression")}
    return tuple(Section(name, text) for name, text in named.items() if text)


def _picture(pictures: Path, path: str) -> Path:
    """The image as PNG or JPEG, whichever was downloaded."""
    for suffix in (".png", ".jpg"):
        found = (pictures / path).with_suffix(suffix)
        if found.is_file():
            return found
    place = (pictures / path).with_suffix("")
    raise StagingError(f"{place}: expected this image as .png or .jpg, found {listing(place.parent)}")
