"""Where the pictures of a question lie: in a folder, in a ZIP archive or in a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import StagingError, listing, some
from hf_datasets.staging.images import read_picture

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")
MOST_BYTES = 200_000_000


class Picture(Protocol):
    """A picture that is opened when its case is written."""

    @property
    def name(self) -> str:
        """The name by which a phantom's note would list it."""

    @property
    def file(self) -> Path:
        """The file of the source that holds it."""

    def pixels(self) -> NDArray[np.uint8] | None:
        """Grey (rows, columns) or RGB pixels; None for a place that may be empty and is.

        Raises
        ------
        StagingError
            The picture is damaged, or missing where one must be.
        """


class Store(Protocol):
    """All pictures of a source, by the last parts of their paths."""

    def picture(self, name: str) -> Picture | None:
        """The picture of this name, if there is one."""


@dataclass(frozen=True)
class FilePicture:
    file: Path

    @property
    def name(self) -> str:
        return self.file.name

    def pixels(self) -> NDArray[np.uint8]:
        return read_picture(self.file)


@dataclass(frozen=True)
class PackedPicture:
    archive: Archive
    member: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.member).name

    @property
    def file(self) -> Path:
        return self.archive.path

    def pixels(self) -> NDArray[np.uint8]:
        return read_picture(self.file / self.member, self.archive.content(self.member))


@dataclass(frozen=True)
class Folder:
    """Pictures in a folder."""

    path: Path

    def picture(self, name: str) -> FilePicture | None:
        path = self.path / name
        inside = not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
        return FilePicture(path) if inside and path.is_file() else None


@dataclass
class Archive:
    """A ZIP archive that is opened once; ``depth`` parts of a member's path name it."""

    path: Path
    depth: int = 1

    @cached_property
    def opened(self) -> ZipFile:
        try:
            return ZipFile(self.path)
        except (BadZipFile, OSError) as error:
            raise StagingError(
                f"{self.path}: not a complete ZIP archive ({error}); download it again"
            ) from None

    @cached_property
    def members(self) -> dict[str, str]:
        found = {}
        for name in self.opened.namelist():
            if name.lower().endswith(SUFFIXES):
                found["/".join(PurePosixPath(name).parts[-self.depth :])] = name
        return found

    def picture(self, name: str) -> PackedPicture | None:
        member = self.members.get(name)
        return None if member is None else PackedPicture(self, member)

    def content(self, member: str) -> bytes:
        if self.opened.getinfo(member).file_size > MOST_BYTES:
            raise StagingError(f"{self.path}: expected pictures, {member} is larger than {MOST_BYTES} bytes")
        try:
            return self.opened.read(member)
        except (BadZipFile, OSError, EOFError, ValueError) as error:
            raise StagingError(
                f"{self.path}: {member} cannot be unpacked ({error}); download it again"
            ) from None


def store_at(source: Path, folder: str, archive: str, depth: int = 1) -> Store:
    """The unpacked folder where there is one, else the archive.

    Raises
    ------
    StagingError
        Neither is there, or the archive is damaged.
    """
    if (source / folder).is_dir():
        return Folder(source / folder)
    if (source / archive).is_file():
        packed = Archive(source / archive, depth)
        if not packed.members:
            raise StagingError(f"{packed.path}: expected pictures in it, found none")
        return packed
    raise StagingError(f"{source}: expected the pictures in {folder}/ or {archive}, found {listing(source)}")


def pictures_named(store: Store, table: Path, names: Iterable[str]) -> dict[str, Picture]:
    """Every named picture.

    Raises
    ------
    StagingError
        Some are not there; a set with gaps would be another set.
    """
    found = {name: store.picture(name) for name in set(names)}
    if missing := [name for name, picture in found.items() if picture is None]:
        raise StagingError(
            f"{table}: expected the pictures that questions name, found none of {some(missing)}"
        )
    return {name: picture for name, picture in found.items() if picture is not None}
