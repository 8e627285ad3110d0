"""Raw and staged phantoms of all tasks, made once a session and never written to by a test."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hf_datasets.families import FAMILIES
from hf_datasets.folders import locked
from hf_datasets.phantoms import make_phantom
from hf_datasets.staging import StagingError, stage
from tasks.manifest import Manifest


@pytest.fixture(scope="session")
def raw_phantoms(shared_folder: Path) -> Path:
    root = shared_folder / "raw"
    root.mkdir(exist_ok=True)
    for task_id in FAMILIES:
        with locked(root / f".{task_id}.once"):
            if not (root / task_id).is_dir():
                make_phantom(task_id, root / task_id, seed=0)
    return root


@pytest.fixture(scope="session")
def staged_root(raw_phantoms: Path, shared_folder: Path) -> Path:
    root = shared_folder / "staged"
    for task_id in FAMILIES:
        stage(task_id, raw_phantoms / task_id, root, release="phantom")
    return root / "phantom"


@pytest.fixture
def raw_copy(raw_phantoms: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a task's raw phantom that a test may damage."""

    def copy(task_id: str) -> Path:
        return Path(shutil.copytree(raw_phantoms / task_id, tmp_path / "raw" / task_id))

    return copy


@pytest.fixture(scope="session")
def tree_digest() -> Callable[[Path], dict[str, str]]:
    """Relative path -> SHA-256 of every file below a folder."""

    def digest(root: Path) -> dict[str, str]:
        return {
            path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }

    return digest


@pytest.fixture
def manifest_of(staged_root: Path) -> Callable[[str], Manifest]:
    from tasks.manifest import load_manifest

    return lambda task_id: load_manifest(staged_root / task_id)


@pytest.fixture
def staging_refusal() -> Callable[[str, Path, Path], str]:
    """Stage a damaged source; its one-line error, after a look that no staged file was left behind."""

    def refusal(task_id: str, source: Path, out: Path) -> str:
        with pytest.raises(StagingError) as caught:
            stage(task_id, source, out, release="phantom")
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) < 500
        left = [path for path in out.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
        assert left == []
        return message

    return refusal


@pytest.fixture(scope="session")
def ssh_keys(tmp_path_factory):
    """A folder with two key pairs of OpenSSH, ``mine`` and ``theirs``."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen")
    folder = tmp_path_factory.mktemp("ssh-keys")
    for name in ("mine", "theirs"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return folder
