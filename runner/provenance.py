"""What made a number: versions, digests of the code, and the machine."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOMS = ("tasks", "evaluator", "hf_datasets", "runner")
SOURCES = {".py", ".yaml", ".md", ".j2", ".txt"}


def harness_version() -> str:
    try:
        return version("automedbench")
    except PackageNotFoundError:
        return "0+source"


@functools.cache
def code_digest() -> str:
    """SHA-256 over the names and bytes of the rooms' source files, in sorted order."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                digest.update(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Hardware:
    cpu_count: int
    memory_mb: int
    gpus: tuple[str, ...]

    @property
    def hardware_class(self) -> str:
        """Runs on different classes stand on different boards: ``cpu``, or the model of the first GPU."""
        return self.gpus[0].lower().replace(" ", "-") if self.gpus else "cpu"


@functools.cache
def hardware() -> Hardware:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1024 * 1024)
    return Hardware(cpu_count=os.cpu_count() or 1, memory_mb=memory, gpus=tuple(gpu.name for gpu in gpus()))


@dataclass(frozen=True)
class Gpu:
    """One device, by the id that names it on every machine and the model's name."""

    uuid: str
    name: str


@functools.cache
def gpus() -> tuple[Gpu, ...]:
    """The devices of this machine, as ``nvidia-smi`` lists them."""
    try:
        listing = subprocess.run(
            ["nvidia-smi", "--query-gpu=uuid,name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if listing.returncode != 0:
        return ()
    pairs = (line.partition(",") for line in listing.stdout.splitlines() if line.strip())
    return tuple(Gpu(uuid.strip(), name.strip()) for uuid, _, name in pairs)
