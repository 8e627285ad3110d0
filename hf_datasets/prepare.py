"""Phantoms on demand: generated and staged when they are not there yet."""

from __future__ import annotations

from pathlib import Path

from hf_datasets.folders import locked, remove
from hf_datasets.phantoms import make_phantom
from hf_datasets.staging.stage import PHANTOM_STAGER, is_complete, stage
from tasks.manifest import ManifestError, load_manifest
from tasks.schema import Release


def ensure_phantom(task_id: str, data_root: Path, seed: int = 0) -> Path:
    """See `hf_datasets.ensure_phantom`."""
    target = Path(data_root) / Release.PHANTOM / task_id
    if _stands(target, seed):
        return target  # without the lock: the data may lie on a disk that cannot be written
    with locked(target.parent / f".{task_id}.phantom.lock"):
        if not _stands(target, seed):
            raw = target.parent / f".{task_id}.raw"
            remove(raw)
            stage(
                task_id, make_phantom(task_id, raw, seed), Path(data_root), release=Release.PHANTOM, seed=seed
            )
            remove(raw)
    return target


def _stands(target: Path, seed: int) -> bool:
    try:
        manifest = load_manifest(target)
    except ManifestError:
        return False
    as_asked = (manifest.generator, manifest.seed) == (PHANTOM_STAGER, seed)
    return as_asked and manifest.provenance.get("phantom_seed") == str(seed) and is_complete(target, manifest)
