"""A cell (agent x task x tier on a release) and the folder of each of its runs.

``cell.json`` says what was asked before anything ran: ids, limits, digests of task, data, environment, code and brief.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from hf_datasets.records import Name, RunId
from runner.errors import Busy, EnvironmentProblem, NoRoom, UsageProblem
from tasks.names import Network, Release, Tier
from tasks.schema import Limits, Strict, first_problem

CELL = "cell.json"
BRIEF = "brief.md"
TRACE = "trace.jsonl"
WORKSPACE = "workspace"
SUBMISSION = "submission"
EVALUATION = ".evaluation"
"""Where the evaluator writes while it runs; gone afterwards."""
REPORT = "report.json"
JUDGEMENT = "judgement.json"
DOWNLOADS = "downloads.jsonl"
"""Requests through the proxy of ``--network allowlist``; absent when there were none."""
PREVIEWS = "previews"
MANIFEST = "manifest.json"
"""Of the submission: what was collected, and what was refused."""
RECORD = "record.json"
UNSCORED = "unscored.json"
"""Written instead of ``record.json`` when the run ended through no fault of the agent, or could not be evaluated."""


@dataclass(frozen=True)
class Cell:
    """One planned run."""

    task: str
    tier: Tier
    release: Release
    agent: str
    repeat: int = 0

    @property
    def key(self) -> str:
        """``task/tier/agent/rNN``: its run folder below ``runs``, and its name in a sweep."""
        return f"{self.task}/{self.tier.value}/{self.agent}/r{self.repeat:02d}"

    def folder(self, runs: Path) -> Path:
        return runs / self.key

    def __str__(self) -> str:
        return f"{self.task} {self.tier.value} {self.agent} r{self.repeat:02d}"


class CellFile(Strict):
    """``cell.json``."""

    schema_version: Literal[1] = 1
    run_id: RunId
    task: Name
    tier: Tier
    release: Release
    agent: Name
    model: str | None
    repeat: int
    attempt: int
    created_at: datetime
    limits: Limits
    network: Network
    watch_training: bool = False
    sandbox: str
    agent_environment: str
    harness_version: str
    code_sha256: str
    task_sha256: str
    manifest_sha256: str
    brief_sha256: str
    n_cases: int
    price_source: str | None
    data_revision: str | None = None
    cpu_count: int
    memory_mb: int
    gpus: tuple[str, ...] = ()
    gpu_devices: tuple[str, ...] = ()


Form = TypeVar("Form", bound=Strict)


def read_form(path: Path, form: type[Form]) -> Form:
    """A JSON file of a run folder in its form.

    Raises
    ------
    UsageProblem
        It is damaged, or of another schema version; names the field.
    OSError
        It cannot be read.
    """
    try:
        return form.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageProblem(f"{path} is damaged: {first_problem(error)}") from None


def is_done(folder: Path) -> bool:
    """A run is done when its sealed record exists."""
    return (folder / RECORD).is_file()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run folder for this process; the lock goes with the process, however that ends.

    Raises
    ------
    Busy
        Another living process holds it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(f".{folder.name}.lock")
    with held(path) as holder:
        if holder is not None:
            raise Busy(
                f"{folder} is being run by process {holder}; wait for it or choose another --repeat"
            ) from None
        yield


@contextlib.contextmanager
def held(path: Path, note: str = "") -> Iterator[str | None]:
    """Hold a lock file, which is removed afterwards; where another process holds it, yield its note instead of None.

    The note, the pid if none is given, is for people. Whoever removes the file still holds its lock, and whoever got
    the lock of a file that was removed meanwhile tries again with the new one.
    """
    while True:
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                yield file.read().strip() or "unknown"
                return
            if not _is_file(file.fileno(), path):
                continue
            file.truncate(0)
            file.write(note or str(os.getpid()))
            file.flush()
            try:
                yield None
            finally:
                path.unlink(missing_ok=True)
            return


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def set_aside(folder: Path) -> int:
    """Keep an unfinished or unscored attempt as ``<folder>.attemptN`` and return the number of the next attempt."""
    remove_halves(folder)
    attempts = [_attempt_number(path) for path in folder.parent.glob(f"{folder.name}.attempt*")]
    last = max(attempts, default=0)
    if folder.exists():
        last += 1
        folder.rename(folder.with_name(f"{folder.name}.attempt{last}"))
    return last + 1


def remove_halves(folder: Path) -> None:
    """Remove the temporary files that a killed writer left in a run folder; they were never part of it."""
    for path in folder.glob(".*.*.*"):
        if path.is_file() and not path.is_symlink():
            path.unlink()


def _attempt_number(path: Path) -> int:
    digits = path.name.rpartition(".attempt")[2]
    return int(digits) if digits.isdigit() else 0


def require_room(folder: Path, megabytes: int = 200) -> None:
    """Refuse to start where the disk is nearly full, instead of failing half-way."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize // (1024 * 1024)
    if free < megabytes:
        raise NoRoom(f"{folder}: {free} MiB free, at least {megabytes} needed; free some space and run again")


def require_readable(data: Path) -> None:
    """Refuse staged data that the sandboxes' user cannot read, instead of letting an agent fail on them.

    A runner that is not root shares its own uid with the sandbox; there, only what it cannot read itself is missing.
    """
    if os.geteuid() != 0:
        return
    for path in (data / "public", data / "private", *data.glob("public/**/*"), *data.glob("private/**/*")):
        wanted = 0o5 if path.is_dir() else 0o4
        if path.stat().st_mode & wanted != wanted:
            raise EnvironmentProblem(
                f"{path} cannot be read by the sandbox's user; run 'chmod -R a+rX {data}' and then this again"
            )
