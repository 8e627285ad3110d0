"""Private folders outside of the run folder: gone with their run, or with the next one where a runner was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from runner.sandbox.owner import Owner

PREFIX = "automedbench-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder that only this user can enter."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{Owner.current()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def reap_scratch() -> list[str]:
    """Remove the folders that killed runners of this user left behind, and name them."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*:*:*:*-*"):
        owner = Owner.parse(folder.name.removeprefix(PREFIX).rpartition("-")[0])
        with contextlib.suppress(OSError):
            if owner and owner.is_dead() and folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
                shutil.rmtree(folder)
                removed.append(f"folder {folder.name}")
    return removed
