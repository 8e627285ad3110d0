"""GRAZPEDWRI-DX: ``dataset.csv``, 16-bit PNG films in ``images_part*/``, YOLO boxes in ``yolov5/labels/``."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing, some
from hf_datasets.staging.boxes import (
    CUT_NOTE,
    Box,
    box_inside,
    numbers,
    refuse_far_box,
    unique_stems,
    write_detection_case,
)
from hf_datasets.staging.images import grey, read_picture

CLASSES = (
    "boneanomaly", "bonelesion", "foreignbody", "fracture", "metal", "periostealreaction", "pronatorsign",
    "softtissue", "text",
)  # fmt: skip
NOTES = {
    "film": "16-bit grey values divided by 257",
    "patient": "one film a patient: the first of those at hand, by file name",
    "boxes": f"YOLO centre and size times the film's width and height; {CUT_NOTE}",
}
INDEX = "dataset.csv"
STEM, PATIENT = "filestem", "patient_id"


@dataclass(frozen=True)
class WristCase:
    """A film and its label file."""

    film: Path
    label: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.film.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.film, self.label)

    def write(self, to: CaseFolders) -> None:
        pixels = grey(read_picture(self.film))
        if pixels.min() == pixels.max():
            raise StagingError(f"{self.film}: expected a film, found one grey value")
        height, width = pixels.shape
        write_detection_case(to, pixels, [box for box in self._boxes(width, height) if box])

    def _boxes(self, width: int, height: int) -> Iterator[Box | None]:
        for line, text in enumerate(self.label.read_text(encoding="utf-8").splitlines(), start=1):
            where = f"{self.label}, line {line}"
            kind, *values = text.split() or [""]
            if not kind.isdigit() or int(kind) >= len(CLASSES):
                raise StagingError(
                    f"{where}: expected a class from 0 to {len(CLASSES) - 1}, found {kind!r:.40}"
                )
            x, y, wide, high = numbers(where, values)
            corners = (
                (x - wide / 2) * width,
                (y - high / 2) * height,
                (x + wide / 2) * width,
                (y + high / 2) * height,
            )
            refuse_far_box(where, corners, width, height)
            yield box_inside(CLASSES[int(kind)], corners, width, height)


def find(source: Path) -> Sequence[WristCase]:
    """The first film of every patient of whom films are there."""
    labels = folder_at(source, "folder_structure/yolov5/labels", "yolov5/labels")
    parts = sorted(path for path in source.glob("images_part*") if path.is_dir())
    if not parts:
        raise StagingError(
            f"{source}: expected folders images_part1/ to images_part4/, found {listing(source)}"
        )
    films: dict[str, Path] = {}
    for part in parts:
        for stem, path in unique_stems(part, "*.png").items():
            if stem in films:
                raise StagingError(
                    f"{path}: {stem} is there twice, also as {films[stem]}; remove one of them"
                )
            films[stem] = path
    if not films:
        raise StagingError(
            f"{parts[0]}: expected films such as 0001_..._WRI-L1_M014.png, found {listing(parts[0])}"
        )
    patients = _patients(source / INDEX)
    if unknown := films.keys() - patients.keys():
        raise StagingError(
            f"{source}: {INDEX} does not list {some(unknown)}; remove it or stage from a clean copy"
        )
    first: dict[str, str] = {}
    for stem in sorted(films):
        first.setdefault(patients[stem], stem)
        if not (labels / f"{stem}.txt").is_file():
            raise StagingError(f"{labels}: expected {stem}.txt for the film of this name, found none")
    return [WristCase(films[stem], labels / f"{stem}.txt") for stem in first.values()]


def _patients(path: Path) -> dict[str, str]:
    """Patient of every listed film."""
    if not path.is_file():
        raise StagingError(f"{path}: expected this table beside the films, found {listing(path.parent)}")
    patients = {}
    with path.open(newline="", encoding="utf-8") as handle:
        rows = csv.DictReader(handle)
        if missing := {STEM, PATIENT} - set(rows.fieldnames or ()):
            raise StagingError(
                f"{path}: expected the columns {some(missing)}, found {some(rows.fieldnames or ())}"
            )
        for line, row in enumerate(rows, start=2):
            stem, patient = row[STEM] or "", row[PATIENT] or ""
            if not patient.isdigit() or not stem.startswith(f"{int(patient):04d}_"):
                raise StagingError(
                    f"{path}, line {line}: expected a film named after its patient, found {stem!r:.60} of patient "
                    f"{patient!r:.20}; is the table cut short or edited?"
                )
            patients[stem] = patient
    return patients
