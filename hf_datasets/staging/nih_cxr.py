"""NIH ChestX-ray14: ``Data_Entry_2017.csv`` and PNG films, wherever they lie below the source; one a patient."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders, StagingError, listing, some
from hf_datasets.staging.degrade import BICUBIC_NOTE
from hf_datasets.staging.images import grey, read_picture
from hf_datasets.staging.planes import write_halved

BLOCK = 4
NOTES = {
    **BICUBIC_NOTE,
    "reference": f"film / 255, mean of {BLOCK} x {BLOCK} pixels (1024 x 1024 gives 256 x 256)",
    "film": "one a patient: of those at hand the first follow-up, frontal views of either direction",
}
INDEX = "Data_Entry_2017.csv"
NAME, PATIENT, FOLLOW_UP = "Image Index", "Patient ID", "Follow-up #"


@dataclass(frozen=True)
class CxrCase:
    """One film."""

    path: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.path.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.path,)

    def write(self, to: CaseFolders) -> None:
        film = grey(read_picture(self.path))
        rows, columns = film.shape
        if rows != columns or rows % (4 * BLOCK) or rows < 256:
            raise StagingError(
                f"{self.path}: expected a square film such as 1024 x 1024, found {rows} x {columns}; "
                "is it a resized copy?"
            )
        if film.min() == film.max():
            raise StagingError(f"{self.path}: expected a film, found one grey value")
        write_halved(to, _block_mean(film))


def _block_mean(film: NDArray[np.uint8]) -> NDArray[np.float32]:
    rows, columns = (size // BLOCK for size in film.shape)
    blocks = film.reshape(rows, BLOCK, columns, BLOCK).mean(axis=(1, 3), dtype=np.float32)
    return np.asarray(blocks / np.float32(255), dtype=np.float32)


def find(source: Path) -> Sequence[CxrCase]:
    """The first film of every patient of whom films are there."""
    films = {path.name: path for path in sorted(source.rglob("*.png"))}
    if not films:
        raise StagingError(
            f"{source}: expected films such as images/00000001_000.png, found {listing(source)}"
        )
    first: dict[str, tuple[int, str]] = {}
    listed = set()
    for name, patient, follow_up in _entries(source / INDEX):
        listed.add(name)
        if name in films:
            first[patient] = min(first.get(patient, (follow_up, name)), (follow_up, name))
    if unknown := films.keys() - listed:
        raise StagingError(
            f"{source}: {INDEX} does not list {some(unknown)}; remove it or stage from a clean copy"
        )
    return [CxrCase(films[name]) for _, name in sorted(first.values(), key=lambda entry: entry[1])]


def _entries(path: Path) -> Iterator[tuple[str, str, int]]:
    """Film, patient and follow-up number of every line."""
    if not path.is_file():
        raise StagingError(f"{path}: expected this table beside the films, found {listing(path.parent)}")
    with path.open(newline="", encoding="utf-8") as handle:
        table = csv.DictReader(handle)
        if missing := {NAME, PATIENT, FOLLOW_UP} - set(table.fieldnames or ()):
            raise StagingError(
                f"{path}: expected the columns {some(missing)}, found {some(table.fieldnames or ())}"
            )
        for line, row in enumerate(table, start=2):
            name, patient, number = row[NAME] or "", row[PATIENT] or "", row[FOLLOW_UP] or ""
            if not name.startswith(patient.zfill(8)) or not patient.isdigit() or not number.isdigit():
                raise StagingError(
                    f"{path}, line {line}: expected a film named after its patient, found {name!r} of patient "
                    f"{patient!r}; is the table cut short or edited?"
                )
            yield name, patient, int(number)
