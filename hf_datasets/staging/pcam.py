"""PatchCamelyon: ``camelyonpatch_level_2_split_test_x.h5`` and ``..._y.h5``, bare or gzipped as upstream has them.

A gzipped file is unpacked into a temporary file of the system, which is gone when staging ends (0.8 GB for upstream's).
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders, StagingError, listing
from hf_datasets.staging.labelled import IMAGE_NOTE, write_labelled

PREFIX = "camelyonpatch_level_2_split_test"
CLASSES = ("negative", "positive")
SIZE = 96
NOTES = {
    "split": "test",
    "labels": "y = 1, a pixel of tumour in the central 32 x 32 pixels, is positive; 0 is negative",
    "images": IMAGE_NOTE,
}


@dataclass
class Table:
    """One HDF5 file with one array in it, opened when it is first needed."""

    path: Path
    name: str

    @cached_property
    def array(self) -> Any:
        try:
            file = h5py.File(self._unpacked(), "r")
        except (OSError, EOFError, zlib.error) as error:
            raise self._damaged(error) from None
        if self.name not in file:
            raise StagingError(
                f"{self.path}: expected the array {self.name}, found {', '.join(sorted(file)) or 'nothing'}"
            )
        return file[self.name]

    def rows(self, chosen: int | slice) -> NDArray[Any]:
        try:
            return np.asarray(self.array[chosen])
        except (OSError, RuntimeError) as error:
            raise self._damaged(error) from None

    def _unpacked(self) -> Any:
        if self.path.suffix != ".gz":
            return self.path
        handle = tempfile.TemporaryFile()  # noqa: SIM115 - stays open as long as the array is read
        with gzip.open(self.path) as packed:
            shutil.copyfileobj(packed, handle)
        return handle

    def _damaged(self, error: Exception) -> StagingError:
        reason = " ".join(str(error).split())[:120]
        return StagingError(f"{self.path}: not a complete HDF5 file ({reason}); download it again")


@dataclass(frozen=True)
class Patch:
    """One patch of the test split."""

    index: int
    pictures: Table
    labels: Table
    label: str
    image: str = ""

    @property
    def origin(self) -> str:
        return f"test-{self.index:05d}"

    @property
    def files(self) -> Sequence[Path]:
        return (self.pictures.path, self.labels.path)

    def write(self, to: CaseFolders) -> None:
        write_labelled(to, self.pictures.rows(self.index).astype(np.uint8), self.label)


def find(source: Path) -> Sequence[Patch]:
    """All patches of the test split."""
    pictures, labels = Table(_file(source, "x"), "x"), Table(_file(source, "y"), "y")
    shape, kind = pictures.array.shape, pictures.array.dtype
    if len(shape) != 4 or shape[1:] != (SIZE, SIZE, 3) or kind != np.uint8:
        raise StagingError(
            f"{pictures.path}: expected uint8 patches of shape (n, {SIZE}, {SIZE}, 3), found {kind} {shape}"
        )
    values = labels.rows(slice(None)).reshape(-1)
    if values.size != shape[0] or labels.array.size != shape[0]:
        raise StagingError(f"{labels.path}: expected {shape[0]} labels, one a patch, found {values.size}")
    if not np.isin(values, (0, 1)).all():
        found = sorted(set(values.tolist()))[:5]
        raise StagingError(f"{labels.path}: expected labels 0 and 1, found {found}")
    return [Patch(index, pictures, labels, CLASSES[int(value)]) for index, value in enumerate(values)]


def _file(source: Path, part: str) -> Path:
    for name in (f"{PREFIX}_{part}.h5", f"{PREFIX}_{part}.h5.gz"):
        if (source / name).is_file():
            return source / name
    raise StagingError(f"{source}: expected {PREFIX}_{part}.h5 or the same with .gz, found {listing(source)}")
