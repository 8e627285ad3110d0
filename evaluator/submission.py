"""Collect what an agent left behind: an untrusted folder becomes a plain copy and a list of its problems."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evaluator.files import sha256_file, write_atomic
from evaluator.untrusted import (
    ProblemCode,
    Refused,
    folder,
    regular_file,
    require_file,
    require_folder,
    trusted_folder,
)
from tasks.schema import OUTPUT_ROOT, Strict, Task

MANIFEST_NAME = "manifest.json"
PROCESS_FOLDER = ".process"
"""Where the plan's files lie in the collected copy: evidence for the judge, not part of the submission."""

PLAN_FILES = ("plan.md", "plan.png")

_CHUNK = 1 << 20


@dataclass(frozen=True)
class CollectLimits:
    """Caps, in bytes of apparent size; the last two bound the listing of unexpected entries."""

    file_bytes: int = 1 << 30
    total_bytes: int = 8 << 30
    plan_bytes: int = 8 << 20
    listed: int = 200
    scanned: int = 20_000


class CollectedFile(Strict):
    """A copied file; ``path`` is relative to the collected folder."""

    path: str
    size: int
    sha256: str


class Problem(Strict):
    """An expected file that was not copied, and why."""

    path: str
    code: ProblemCode
    message: str


class SubmissionManifest(Strict):
    """``submission/manifest.json``: what was collected, what was refused, and what else lay there."""

    schema_version: Literal[1] = 1
    task: str
    files: tuple[CollectedFile, ...]
    process: tuple[CollectedFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    others: tuple[str, ...] = ()
    others_total: int = 0
    others_complete: bool = True


def collect(
    workspace: Path,
    destination: Path,
    task: Task,
    case_ids: Sequence[str],
    limits: CollectLimits = CollectLimits(),
) -> SubmissionManifest:
    """Copy the expected outputs of an untrusted workspace to ``destination``, whole or not at all.

    Parameters
    ----------
    workspace : Path
        The agent's workspace. Its path is ours; ``outputs`` in it, like everything below, may be anything.
    destination : Path
        Folder to create; it appears by one rename once every byte is on disk. An empty one is replaced.
    task : Task
        Says which files a case has.
    case_ids : sequence of str
        The manifest's cases, in its order.
    limits : CollectLimits
        Caps on sizes and on the listing of unexpected entries.

    Returns
    -------
    SubmissionManifest
        Also written as ``destination/manifest.json``.

    Raises
    ------
    FileExistsError
        ``destination`` already holds something.
    OSError
        Our own disk failed (full, read-only); never because of what the workspace holds.
    """
    if destination.exists() and any(destination.iterdir()):
        raise FileExistsError(f"{destination} already holds something; remove it or choose another folder")
    partial = destination.with_name(destination.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    partial.chmod(0o755)

    if not os.access(workspace, os.R_OK | os.X_OK):
        workspace.chmod(
            0o755
        )  # the agent has our uid where we are not root, and may have locked itself and us out
    outputs = _Copier(partial, limits.file_bytes, limits.total_bytes)
    plans = _Copier(partial / PROCESS_FOLDER, limits.plan_bytes, limits.plan_bytes * len(PLAN_FILES))
    others = _Listing(limits.listed, limits.scanned)
    with trusted_folder(workspace) as root:
        for name in PLAN_FILES:
            plans.copy(name, root, name)
        _collect_cases(root, task.output.filenames, case_ids, outputs, others)

    manifest = SubmissionManifest(
        task=task.id,
        files=tuple(outputs.files),
        process=tuple(plans.files),
        problems=(*outputs.problems, *(problem for problem in plans.problems if problem.code != "missing")),
        others=others.names(),
        others_total=others.total,
        others_complete=others.complete,
    )
    write_atomic(partial / MANIFEST_NAME, dump_submission_manifest(manifest))
    partial.replace(destination)
    return manifest


def missing_outputs(task: Task, case_ids: Iterable[str], outputs_root: Path) -> list[str]:
    """Outputs that would not be collected, as ``case/file`` with the reason when it is more than absence.

    Looks with ``lstat`` only, so it is safe while the agent still runs.
    """
    missing = []
    for case_id in case_ids:
        for name in task.output.filenames:
            try:
                expected_file(outputs_root, case_id, name)
            except Refused as refused:
                reason = "" if refused.code == "missing" else f" ({refused.message})"
                missing.append(f"{case_id}/{name}{reason}")
    return missing


def expected_file(
    outputs_root: Path, case_id: str, name: str, max_bytes: int = CollectLimits.file_bytes
) -> Path:
    """Path of an output that is a plain, non-empty file within ``max_bytes``, seen with ``lstat``.

    Raises
    ------
    Refused
        It is absent, a link, a device, empty, too large, or lies under something that is not a folder.
    """
    case_folder = outputs_root / case_id
    path = case_folder / name
    try:
        require_folder(outputs_root.lstat(), "the outputs folder")
        require_folder(case_folder.lstat(), "the case folder")
        require_file(path.lstat(), max_bytes)
    except FileNotFoundError:
        raise Refused("missing", "no such file") from None
    except OSError as error:
        raise Refused("unreadable", f"cannot be looked at: {error.strerror}") from None
    return path


def changed_since_collection(submission: Path, *, outputs: bool = True) -> str | None:
    """What in a collected folder is no longer as ``collect`` left it, in words; None when nothing is.

    Parameters
    ----------
    submission : Path
        The collected folder.
    outputs : bool
        Also hash the outputs, which may be large; the plan's files are always looked at.
    """
    manifest = load_submission_manifest(submission)
    if manifest is None:
        return f"{MANIFEST_NAME} cannot be read"
    listed = {f"{PROCESS_FOLDER}/{file.path}": file for file in manifest.process}
    if outputs:
        listed |= {file.path: file for file in manifest.files}
    for path, file in listed.items():
        copy = submission / path
        if not copy.is_file() or copy.is_symlink() or sha256_file(copy) != file.sha256:
            return f"{path} is not the file that was collected"
    present = submission.rglob("*") if outputs else process_folder(submission).rglob("*")
    for copy in present:
        path = copy.relative_to(submission).as_posix()
        if (copy.is_symlink() or not copy.is_dir()) and path not in listed and path != MANIFEST_NAME:
            return f"{path} was not collected"
    return None


def make_readable(submission: Path) -> None:
    """Let every user read a collected folder, whatever the umask was under which it was made or copied."""
    for path in (submission, *submission.rglob("*")):
        if not path.is_symlink():
            wanted = 0o755 if path.is_dir() else 0o644
            if stat.S_IMODE(path.stat().st_mode) & wanted != wanted:
                path.chmod(wanted)


def process_folder(submission: Path) -> Path:
    """Where ``plan.md`` and ``plan.png`` of a collected submission lie (either may be absent)."""
    return submission / PROCESS_FOLDER


def load_submission_manifest(submission: Path) -> SubmissionManifest | None:
    """The manifest that :func:`collect` wrote, or None when the folder was not collected."""
    path = submission / MANIFEST_NAME
    try:
        require_file(path.lstat(), 64 << 20)
        return SubmissionManifest.model_validate_json(path.read_bytes())
    except (OSError, Refused, ValueError):
        return None


def dump_submission_manifest(manifest: SubmissionManifest) -> str:
    """Canonical JSON text, ASCII only: odd file names stay readable and cannot break a line."""
    return json.dumps(manifest.model_dump(mode="json"), sort_keys=True, indent=1) + "\n"


def _collect_cases(
    workspace: int, names: Sequence[str], case_ids: Sequence[str], copier: _Copier, others: _Listing
) -> None:
    try:
        with folder(OUTPUT_ROOT, workspace, "the outputs folder") as root:
            others.add_unexpected(root, "", set(case_ids))
            for case_id in case_ids:
                _collect_case(root, case_id, names, copier, others)
    except Refused as refused:
        for case_id in case_ids:
            copier.refuse_all(case_id, names, refused)


def _collect_case(root: int, case_id: str, names: Sequence[str], copier: _Copier, others: _Listing) -> None:
    try:
        with folder(case_id, root, "the case folder") as case:
            others.add_unexpected(case, f"{case_id}/", set(names))
            for name in names:
                copier.copy(name, case, f"{case_id}/{name}")
    except Refused as refused:
        copier.refuse_all(case_id, names, refused)


@dataclass
class _Copier:
    """Copies files into ``target`` until ``total_bytes`` are used up, and remembers what it refused."""

    target: Path
    file_bytes: int
    total_bytes: int
    files: list[CollectedFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def copy(self, name: str, parent: int, path: str) -> None:
        try:
            with regular_file(name, parent, self.file_bytes) as (source, size):
                if size > self.total_bytes:
                    raise Refused("total_too_large", f"{size} bytes more would pass the cap on a submission")
                copied, digest = _copy_bytes(source, size, self.target / path)
        except Refused as refused:
            self._refuse(path, refused)
        else:
            self.total_bytes -= copied
            self.files.append(CollectedFile(path=path, size=copied, sha256=digest))

    def refuse_all(self, case_id: str, names: Sequence[str], refused: Refused) -> None:
        for name in names:
            self._refuse(f"{case_id}/{name}", refused)

    def _refuse(self, path: str, refused: Refused) -> None:
        self.problems.append(Problem(path=path, code=refused.code, message=refused.message))


def _copy_bytes(source: int, size: int, target: Path) -> tuple[int, str]:
    """Copy at most ``size`` bytes, synced and readable by everyone (the evaluator runs as another user)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.parent.chmod(0o755)
    digest = hashlib.sha256()
    copied = 0
    try:
        with target.open("xb") as out:
            while copied < size and (chunk := _read(source, min(_CHUNK, size - copied))):
                digest.update(chunk)
                out.write(chunk)
                copied += len(chunk)
            out.flush()
            os.fchmod(out.fileno(), 0o644)
            os.fsync(out.fileno())
    except Refused:
        target.unlink()
        raise
    return copied, digest.hexdigest()


def _read(source: int, size: int) -> bytes:
    try:
        return os.read(source, size)
    except OSError as error:
        raise Refused("unreadable", f"cannot be read: {error.strerror}") from None


@dataclass
class _Listing:
    """Names of unexpected entries, at most ``listed`` of them out of at most ``scanned`` looked at."""

    listed: int
    scanned: int
    total: int = 0
    complete: bool = True
    _names: list[str] = field(default_factory=list)

    def add_unexpected(self, place: int, prefix: str, expected: set[str]) -> None:
        with os.scandir(place) as entries:
            for entry in entries:
                if self.scanned == 0:
                    self.complete = False
                    return
                self.scanned -= 1
                if entry.name not in expected:
                    self.total += 1
                    self._names.append(prefix + _printable(entry.name))

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._names)[: self.listed])


def _printable(name: str) -> str:
    """A file name as valid text: bytes that are not UTF-8 become ``\\xNN``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
