"""What all rooms' tests share: phantoms, made once for the whole test run however many processes share it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hf_datasets import ensure_phantom


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all worker processes of this test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def staged_phantom(shared_folder: Path) -> Callable[[str], Path]:
    """Staged phantom of a task, made when first asked for. Tests only read it."""
    return lambda task_id: ensure_phantom(task_id, shared_folder / "data")
