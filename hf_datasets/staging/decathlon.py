"""Medical Segmentation Decathlon: labelled scans of a ``TaskNN_Name`` folder or of its tar, which is never unpacked.

Both hold ``dataset.json``, ``imagesTr/``, ``labelsTr/`` and ``imagesTs/``; the last has no labels and is left aside.
Members of a tar are read by exact name into memory, so nothing in it can name a place on this machine.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from hf_datasets.staging.base import StagingError, listing, some
from hf_datasets.staging.nifti import Volume, read_labels, read_volume, same_grid

INDEX, IMAGES, LABELS = "dataset.json", "imagesTr", "labelsTr"


class Store(Protocol):
    """Where the files of one task lie; names are relative to the task's folder, as ``imagesTr/liver_0.nii.gz``."""

    names: Collection[str]

    def where(self, name: str) -> Path:
        """A path for messages."""

    def files(self, name: str, /) -> Sequence[Path]:
        """The files of the source that hold it."""

    def read(self, name: str) -> bytes:
        """Its bytes."""


@dataclass(frozen=True)
class LabelledScan:
    """One training case. ``channels`` is the length of the fourth axis, 1 for a 3-D scan."""

    store: Store
    name: str
    labels: tuple[int, ...]
    channels: int

    @property
    def files(self) -> Sequence[Path]:
        """Every file of the source that the case is made from."""
        used = (*self.store.files(self._image), *self.store.files(self._label), *self.store.files(INDEX))
        return tuple(dict.fromkeys(used))

    @property
    def _image(self) -> str:
        return f"{IMAGES}/{self.name}.nii.gz"

    @property
    def _label(self) -> str:
        return f"{LABELS}/{self.name}.nii.gz"

    def read(self) -> tuple[Volume, Volume]:
        """The scan and, on the same grid, its label map as uint8.

        Raises
        ------
        StagingError
            Damaged, of other dimensions, on two grids, or with a label that the task does not have.
        """
        image, label = self.store.where(self._image), self.store.where(self._label)
        scan = read_volume(image, self.store.read(self._image), self.channels)
        labels = read_labels(label, self.labels, self.store.read(self._label))
        same_grid(image, scan, label, labels)
        return scan, labels


def labelled_scans(
    source: Path, folder: str, prefix: str, labels: Collection[int], channels: int = 1
) -> list[LabelledScan]:
    """The training cases of one task, in upstream's order.

    Parameters
    ----------
    source
        Holds ``<folder>/`` or ``<folder>.tar``, or is the task's folder itself.
    folder
        Upstream's name, for example ``Task07_Pancreas``.
    prefix
        What every scan's name starts with, for example ``pancreas``.
    labels
        The ids that ``dataset.json`` must list, background included.
    channels
        Number of modalities.

    Raises
    ------
    StagingError
        Not the layout, or files and ``dataset.json`` contradict each other.
    """
    store = _open(source, folder)
    names = _listed(store, labels, channels)
    if strange := [name for name in names if not name.startswith(f"{prefix}_")]:
        raise StagingError(
            f"{store.where(INDEX)}: expected scans named {prefix}_..., found {some(strange)}; is this {folder}?"
        )
    for part in (IMAGES, LABELS):
        there = {PurePosixPath(name).name for name in store.names if name.startswith(f"{part}/")}
        wanted = {f"{name}.nii.gz" for name in names}
        if missing := wanted - there:
            raise StagingError(
                f"{store.where(part)}: expected {some(missing)}, found none; download {folder} again"
            )
        if extra := there - wanted:
            raise StagingError(
                f"{store.where(part)}: unexpected {some(extra)}, which {INDEX} does not list; remove it"
            )
    return [LabelledScan(store, name, tuple(sorted(labels)), channels) for name in names]


def _open(source: Path, folder: str) -> Store:
    for place in (source / folder, source):
        if (place / INDEX).is_file():
            return _Folder(place)
    archive = source / f"{folder}.tar"
    if archive.is_file():
        return _Archive(archive, folder)
    raise StagingError(f"{source}: expected {folder}.tar or {folder}/ with {INDEX}, found {listing(source)}")


def _listed(store: Store, labels: Collection[int], channels: int) -> list[str]:
    """Names of the training scans in ``dataset.json``."""
    where = store.where(INDEX)
    try:
        index: Any = json.loads(store.read(INDEX))
        ids, modalities = {int(key) for key in index["labels"]}, len(index["modality"])
        pairs = [(_stem(pair["image"]), _stem(pair["label"])) for pair in index["training"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StagingError(
            f"{where}: expected labels, modality and training in upstream's form ({error!r})"
        ) from None
    if ids != set(labels):
        raise StagingError(
            f"{where}: expected the labels {sorted(labels)}, found {sorted(ids)}; is this the right task?"
        )
    if modalities != channels:
        raise StagingError(f"{where}: expected {channels} modalities, found {modalities}")
    if crossed := [image for image, label in pairs if image != label]:
        raise StagingError(
            f"{where}: expected image and label of one name, found {some(crossed)} with another's label"
        )
    names = [image for image, _ in pairs]
    if not names or len(set(names)) != len(names):
        raise StagingError(
            f"{where}: expected each training scan once, found {len(names)} entries, {len(set(names))} names"
        )
    return names


def _stem(path: str) -> str:
    return PurePosixPath(path).name.removesuffix(".gz").removesuffix(".nii")


class _Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        parts = [root / IMAGES, root / LABELS]
        inside = [path for part in parts if part.is_dir() for path in part.iterdir()]
        self.names: Collection[str] = {
            path.relative_to(root).as_posix() for path in inside if not path.name.startswith(".")
        }

    def where(self, name: str) -> Path:
        return self.root / name

    def files(self, name: str) -> Sequence[Path]:
        return (self.root / name,)

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


class _Archive:
    def __init__(self, path: Path, folder: str) -> None:
        self.path, self.folder = path, folder
        try:
            with tarfile.open(path) as tar:
                members = _members(path, folder, tar)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise StagingError(f"{path}: not a complete tar ({error}); download it again") from None
        self._stored = members
        self.names: Collection[str] = members.keys()
        if INDEX not in members:
            raise StagingError(f"{path}: expected {folder}/{INDEX}, found {some(members)}; download it again")

    def where(self, name: str) -> Path:
        return self.path / self.folder / name

    def files(self, _name: str, /) -> Sequence[Path]:
        return (self.path,)

    def read(self, name: str) -> bytes:
        try:
            with tarfile.open(self.path) as tar:
                stream = tar.extractfile(self._stored[name])
                return stream.read() if stream is not None else b""
        except (tarfile.TarError, OSError) as error:
            raise StagingError(
                f"{self.where(name)}: cannot be read from the tar ({error}); download it again"
            ) from None


def _members(path: Path, folder: str, tar: Iterable[tarfile.TarInfo]) -> dict[str, tarfile.TarInfo]:
    """Regular files below the task's folder by relative name; hidden files, as in upstream's tars, do not count."""
    members: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        parts = PurePosixPath(member.name).parts
        if any(part.startswith(".") and part != ".." for part in parts) or member.isdir():
            continue
        if not member.isreg() or ".." in parts or parts[0] != folder or len(parts) not in (2, 3):
            kind = "file" if member.isreg() else "link or device"
            raise StagingError(
                f"{path}: unexpected {kind} {member.name!r}; expected files below {folder}/ only"
            )
        name = "/".join(parts[1:])
        if name in members:
            raise StagingError(f"{path}: expected each file once, found {member.name} again")
        members[name] = member
    return members
