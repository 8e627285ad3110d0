"""Writing and hashing files so that nothing half-written is ever left behind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write ``data`` to ``path`` all or not at all.

    The bytes go to a temporary name in the same folder, are synced, and take the place of ``path`` in one rename; a
    reader sees the old file or the new one. A full disk or a kill leaves the old file as it was.
    """
    raw = data.encode() if isinstance(data, str) else data
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
