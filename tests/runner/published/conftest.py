"""Finished runs, made once by the real runner, and copies of them in which a test may plant things."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
import zstandard

from hf_datasets.folders import locked
from runner.cell import Cell
from runner.execute import Options, run_cell
from tasks.names import Release, Tier

QUICK = "bccd-det-task"


@pytest.fixture(scope="session")
def finished(shared_folder: Path) -> Path:
    """Two repeats of a quick task by the scripted agent; tests only copy them."""
    runs = shared_folder / "finished"
    with locked(shared_folder / ".finished.lock"):
        for repeat in (0, 1):
            cell = Cell(QUICK, Tier.LITE, Release.PHANTOM, "baseline", repeat)
            run_cell(cell, Options(runs, shared_folder / "data", sandbox="bubblewrap", network="none"))
    return runs


@dataclass
class RunCopy:
    """A run folder that may be changed; `seal` makes the record fit again."""

    folder: Path

    def record(self) -> dict:
        return json.loads((self.folder / "record.json").read_text())

    def seal(self, **changes: object) -> None:
        record = self.record() | changes
        names = {"trace_sha256": "trace.jsonl", "report_sha256": "report.json", "judgement_sha256": "judgement.json",
                 "cell_sha256": "cell.json", "submission_sha256": "submission/manifest.json"}  # fmt: skip
        record |= {key: sha256((self.folder / name).read_bytes()).hexdigest() for key, name in names.items()}
        (self.folder / "record.json").write_text(json.dumps(record, sort_keys=True, indent=1) + "\n")

    def add_events(self, *events: dict) -> None:
        """Put events before the last one of the trace."""
        lines = (self.folder / "trace.jsonl").read_text().splitlines()
        lines[-1:-1] = [json.dumps(event) for event in events]
        (self.folder / "trace.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def runs_copy(finished: Path, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(finished, tmp_path / "runs", ignore=shutil.ignore_patterns("workspace", ".*.lock"))
    )


@pytest.fixture
def run_copy(runs_copy: Path) -> RunCopy:
    """The first of the copied runs; the second one is removed."""
    shutil.rmtree(runs_copy / QUICK / "lite" / "baseline" / "r01")
    return RunCopy(runs_copy / QUICK / "lite" / "baseline" / "r00")


@pytest.fixture
def command(hub, tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``python -m MODULE ...`` against the stand-in Hub, with only the environment that is given."""

    def run(module: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        home = {"HOME": os.environ.get("HOME", str(tmp_path))}  # the sandbox's packages lie there
        return subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=hub.environment(tmp_path) | home | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.fixture
def everything_received(hub) -> Callable[[], bytes]:
    """Every byte that reached the Hub, packed files unpacked as well."""

    def read() -> bytes:
        unpacked = [
            zstandard.ZstdDecompressor().decompressobj().decompress(blob)
            for blob in hub.blobs.values()
            if blob[:4] == b"\x28\xb5\x2f\xfd"
        ]
        return b"\n".join([hub.received(), *unpacked])

    return read
