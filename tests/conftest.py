"""What all rooms' tests share: phantoms, made once for the whole run however many processes share it, and a Hub."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from hf_datasets import ensure_phantom
from hf_datasets.folders import locked
from hf_datasets.releases import LITE_CASES
from tasks.manifest import MANIFEST_NAME, dump_manifest, load_manifest
from tasks.names import Redistribution, Release
from tasks.registry import load_task

sys.path.insert(0, str(Path(__file__).parent / "hub"))
os.environ |= {  # read by huggingface_hub when it is imported; no test speaks to the real Hub
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}

from hub_standin import HubStandIn

# A test run that was started in the background must not hand down its deafness to what it stops.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# Time says something about the machine, not about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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


@pytest.fixture(scope="session")
def lite_data(staged_phantom: Callable[[str], Path], shared_folder: Path) -> Path:
    """Data as if staged for the Lite release, of every task whose terms let them out: phantoms stand in for them."""
    root = shared_folder / "lite-data"
    with locked(shared_folder / ".lite-data.lock"):
        for task in map(load_task, LITE_CASES):
            target = root / "lite" / task.id
            if task.source.redistribution is Redistribution.ALLOWED and not target.exists():
                shutil.copytree(staged_phantom(task.id), target)
                manifest = load_manifest(target).model_copy(update={"release": Release.LITE})
                (target / MANIFEST_NAME).write_text(dump_manifest(manifest), encoding="utf-8")
    return root


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    """A running stand-in for the Hugging Face Hub; see its module for what it can do."""
    with HubStandIn() as running:
        yield running
