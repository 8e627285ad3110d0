"""What all rooms' tests share: phantoms, made once for the whole run however many processes share it, and a Hub."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hf_datasets import ensure_phantom

sys.path.insert(0, str(Path(__file__).parent / "hub"))
os.environ |= {  # read by huggingface_hub when it is imported; no test speaks to the real Hub
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}

from hub_standin import HubStandIn


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


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    """A running stand-in for the Hugging Face Hub; see its module for what it can do."""
    with HubStandIn() as running:
        yield running
