"""IXI: T1 scans ``IXI<id>-<site>-<number>-T1.nii.gz``, in ``IXI-T1.tar`` or unpacked; one sagittal plane a subject.

The tar is never unpacked: members are read by name into memory.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from hf_datasets.staging.base import CaseFolders, StagingError, listing, some
from hf_datasets.staging.degrade import BICUBIC_NOTE
from hf_datasets.staging.nifti import read_volume
from hf_datasets.staging.planes import (
    PADDING_NOTE,
    SCALE_NOTE,
    canonical,
    middle_third,
    padded,
    sagittal,
    unit_scale,
    write_halved,
)

NOTES = {
    **BICUBIC_NOTE,
    "slice": "one sagittal plane a subject, the plane the scans were acquired in, drawn from the middle third; head "
    "up, front at the left",
    "reference": f"T1 plane {SCALE_NOTE}; {PADDING_NOTE}",
}
ARCHIVE = "IXI-T1.tar"

_NAME = re.compile(r"(IXI\d{3})-[A-Za-z]+-\d{4}-T1\.nii(\.gz)?")


@dataclass(frozen=True)
class IxiCase:
    """One scan; ``place`` is its file, or the tar with the member's name."""

    place: Path
    member: str | None
    image: str = ""

    @property
    def origin(self) -> str:
        return _subject(self.member or self.place.name)

    @property
    def files(self) -> Sequence[Path]:
        return (self.place,)

    def write(self, to: CaseFolders) -> None:
        where = self.place / self.member if self.member else self.place
        scan = read_volume(where, _member(self.place, self.member) if self.member else None)
        data = canonical(scan)
        plane = unit_scale(
            np.maximum(sagittal(data, middle_third(data.shape[0], np.random.default_rng(to.seed))), 0)
        )
        if plane is None:
            raise StagingError(f"{where}: expected signal in the middle of the head, found none")
        if min(plane.shape) < 64:
            raise StagingError(
                f"{where}: expected sagittal planes of at least 64 pixels a side, found "
                f"{plane.shape[0]}x{plane.shape[1]}"
            )
        write_halved(to, padded(plane))


def find(source: Path) -> Sequence[IxiCase]:
    """Every T1 scan, one a subject."""
    archive = source / ARCHIVE
    if archive.is_file():
        cases = [IxiCase(archive, name) for name in _listed(archive)]
    else:
        cases = [IxiCase(path, None) for path in sorted(source.rglob("*-T1.nii*"))]
    if not cases:
        raise StagingError(
            f"{source}: expected {ARCHIVE} or files such as IXI002-Guys-0828-T1.nii.gz, found {listing(source)}"
        )
    return cases


def _subject(name: str) -> str:
    match = _NAME.fullmatch(PurePosixPath(name).name)
    if match is None:
        raise StagingError(f"{name}: expected a name such as IXI002-Guys-0828-T1.nii.gz")
    return match.group(1)


def _listed(archive: Path) -> list[str]:
    try:
        with tarfile.open(archive) as tar:
            members = [member for member in tar if not PurePosixPath(member.name).name.startswith(".")]
    except (tarfile.TarError, EOFError, OSError) as error:
        raise StagingError(f"{archive}: not a complete tar ({error}); download it again") from None
    strange = [
        m.name for m in members if not m.isdir() and not (m.isreg() and _NAME.fullmatch(_base(m.name)))
    ]
    if strange:
        raise StagingError(f"{archive}: expected T1 scans only, found {some(strange)}; is this {ARCHIVE}?")
    return sorted(member.name for member in members if member.isreg())


def _base(name: str) -> str:
    return PurePosixPath(name).name


def _member(archive: Path, name: str) -> bytes:
    try:
        with tarfile.open(archive) as tar:
            stream = tar.extractfile(name)
            return stream.read() if stream is not None else b""
    except (tarfile.TarError, KeyError, OSError) as error:
        raise StagingError(f"{archive}: {name} cannot be read ({error}); download it again") from None
