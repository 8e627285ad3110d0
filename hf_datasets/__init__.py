"""Where data live: phantoms, staging, releases and the records that are published.

Importing this package is cheap; numpy, nibabel and the like are loaded when a function needs them.
"""

from __future__ import annotations

from pathlib import Path


def ensure_phantom(task_id: str, data_root: Path, seed: int = 0) -> Path:
    """The staged phantom of a task under ``data_root/phantom/<task>``, made when it is missing or incomplete.

    Safe when several processes ask for it at once: one makes it, the others wait.

    Raises
    ------
    hf_datasets.families.UnknownTask
        The task has no phantom.
    hf_datasets.staging.StagingError
        The target folder holds something that was not staged.
    """
    from hf_datasets.prepare import ensure_phantom as ensure

    return ensure(task_id, data_root, seed)
