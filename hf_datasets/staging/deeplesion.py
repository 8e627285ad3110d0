"""DeepLesion: 16-bit PNG slices ``Images_png/<patient>_<study>_<series>/<slice>.png`` and ``DL_info.csv``.

The stored value is HU + 32768. One slice a patient: a key slice, on which a lesion was measured.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing, some
from hf_datasets.staging.degrade import NOISE_NOTE
from hf_datasets.staging.planes import window, write_noisy

OFFSET = 32768
LOW, HIGH = -1000.0, 1000.0
NOTES = {
    **NOISE_NOTE,
    "reference": f"HU = stored value - {OFFSET}; window {LOW:g} to {HIGH:g} HU mapped to [0, 1]",
    "slice": "the first key slice of every patient whose file is there, lines marked Possibly_noisy left out; the test "
    "split (Train_Val_Test = 3) where it has any",
}
INDEX = "DL_info.csv"
COLUMNS = ("File_name", "Patient_index", "Possibly_noisy", "Image_size", "Train_Val_Test")
FAT = -50.0
"""A body has fat, so some pixel of every slice in HU lies below."""
TEST_SPLIT = "3"

_NAME = re.compile(r"(\d{6})_\d{2}_\d{2}_\d{3}\.png")


@dataclass(frozen=True)
class LesionSlice:
    """One key slice; ``size`` is what the table says of its rows and columns."""

    path: Path
    origin: str
    size: tuple[int, int]
    image: str = ""

    @property
    def files(self) -> Sequence[Path]:
        return (self.path,)

    def write(self, to: CaseFolders) -> None:
        write_noisy(to, window(self._hounsfield(), LOW, HIGH))

    def _hounsfield(self) -> NDArray[np.int32]:
        try:
            with Image.open(self.path) as picture:
                mode, stored = picture.mode, np.asarray(picture)
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
            reason = " ".join(str(error).split())[:120]
            raise StagingError(f"{self.path}: not a complete PNG ({reason}); download it again") from None
        if not mode.startswith("I") or stored.ndim != 2:
            raise StagingError(f"{self.path}: expected 16-bit grey, found mode {mode}; was it converted?")
        if stored.shape != self.size:
            raise StagingError(
                f"{self.path}: expected {self.size[0]} x {self.size[1]} as {INDEX} says, found "
                f"{stored.shape[0]} x {stored.shape[1]}"
            )
        hu = stored.astype(np.int32) - OFFSET
        if hu.min() > FAT or hu.max() < 0:
            raise StagingError(
                f"{self.path}: expected Hounsfield units + {OFFSET}, found {hu.min()} to {hu.max()} HU; "
                "was the offset taken off?"
            )
        return hu


def find(source: Path) -> Sequence[LesionSlice]:
    """One key slice a patient, of the test split where it is there."""
    pictures = folder_at(source, "Images_png", "minideeplesion")
    rows = [row for row in _rows(source / INDEX) if (pictures / _relative(row)).is_file()]
    if not rows:
        raise StagingError(
            f"{pictures}: expected slices that {INDEX} names, such as 000001_01_01/109.png, found {listing(pictures)}"
        )
    clean = [row for row in rows if row["Possibly_noisy"] == "0"]
    tested = [row for row in clean if row["Train_Val_Test"] == TEST_SPLIT]
    first: dict[str, dict[str, str]] = {}
    for row in sorted(tested or clean, key=lambda row: row["File_name"]):
        first.setdefault(row["Patient_index"], row)
    return [_slice(source / INDEX, pictures, row) for row in first.values()]


def _slice(index: Path, pictures: Path, row: dict[str, str]) -> LesionSlice:
    sizes = row["Image_size"].split(",")
    if len(sizes) != 2 or not all(size.strip().isdigit() for size in sizes):
        raise StagingError(f"{index}: expected an Image_size such as '512, 512', found {row['Image_size']!r}")
    name = row["File_name"].removesuffix(".png")
    return LesionSlice(pictures / _relative(row), name, (int(sizes[0]), int(sizes[1])))


def _relative(row: dict[str, str]) -> str:
    """Upstream's table joins folder and file by an underscore: 000001_01_01_109.png."""
    folder, _, name = row["File_name"].rpartition("_")
    return f"{folder}/{name}"


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if not path.is_file():
        raise StagingError(f"{path}: expected this table beside Images_png/, found {listing(path.parent)}")
    with path.open(newline="", encoding="utf-8") as handle:
        table = csv.DictReader(handle)
        if missing := set(COLUMNS) - set(table.fieldnames or ()):
            raise StagingError(
                f"{path}: expected the columns {some(missing)}, found {some(table.fieldnames or ())}"
            )
        for line, row in enumerate(table, start=2):
            match = _NAME.fullmatch(row["File_name"] or "")
            if match is None or match[1] != (row["Patient_index"] or "").zfill(6):
                raise StagingError(
                    f"{path}, line {line}: expected a file of patient {row['Patient_index']!r}, found "
                    f"{row['File_name']!r}; is the table cut short or edited?"
                )
            yield row
