"""Manifest entries of staged files."""

from __future__ import annotations

from pathlib import Path

from evaluator.files import sha256_file
from tasks.manifest import FileEntry


def describe(side: Path, case_id: str) -> tuple[FileEntry, ...]:
    """An entry for every file of a case, sorted by path (relative to ``side``)."""
    files = sorted(path for path in (side / case_id).rglob("*") if path.is_file())
    return tuple(
        FileEntry(
            path=path.relative_to(side).as_posix(),
            sha256=sha256_file(path),
            bytes=path.stat().st_size,
            shape=array_shape(path),
        )
        for path in files
    )


def array_shape(path: Path) -> tuple[int, ...] | None:
    """Shape of the array a file holds, read from its header: (rows, columns[, channels]) of pictures."""
    if path.name.endswith((".nii", ".nii.gz")):
        import nibabel

        return tuple(int(n) for n in nibabel.load(path).shape)
    if path.suffix == ".npy":
        import numpy as np

        return tuple(np.load(path, mmap_mode="r", allow_pickle=False).shape)
    if path.suffix in (".png", ".jpg"):
        from PIL import Image

        with Image.open(path) as image:
            channels = len(image.getbands())
            return (image.height, image.width) if channels == 1 else (image.height, image.width, channels)
    return None
