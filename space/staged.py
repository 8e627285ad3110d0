"""Which staged data a page may draw from: those a run was made on, where their terms let them be shown."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from evaluator.files import sha256_file
from evaluator.preview import may_show_references
from hf_datasets.records import RunRecord
from space.viewer.case import Staged
from tasks.manifest import MANIFEST_NAME, ManifestError, load_manifest
from tasks.schema import Task


def staged_for(root: Path | None, task: Task, record: RunRecord) -> tuple[Staged | None, str]:
    """The staged data of a run or, in one sentence, why a case is not drawn from them."""
    if root is None:
        return (
            None,
            "The Space was started without staged data (app.py --data DIR), so what was given is not at hand.",
        )
    folder = root / record.release.value / task.id
    try:
        changed = (folder / MANIFEST_NAME).stat().st_mtime_ns
    except OSError:
        return None, f"No staged data of {task.id} ({record.release.value}) are at hand."
    try:
        staged, digest = _read(folder, changed)
    except ManifestError as error:
        return None, f"The staged data cannot be used: {error}"
    if not may_show_references(task, staged.manifest):
        terms = task.source.redistribution.value
        return (
            None,
            f"The terms of the data set (redistribution: {terms}) do not let its images be shown here.",
        )
    if digest != record.manifest_sha256:
        return None, "The staged data at hand are others than those the run was made on."
    return staged, ""


@lru_cache(maxsize=64)
def _read(folder: Path, changed: int) -> tuple[Staged, str]:  # noqa: ARG001 - part of the key
    return Staged(folder, load_manifest(folder)), sha256_file(folder / MANIFEST_NAME)
