"""Run the evaluator in a sandbox of its own.

It has no network; references are mounted only here, and only after the agent's sandbox is gone.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from evaluator.files import sha256_file
from evaluator.metrics.weights import WEIGHTS_VARIABLE, weights_folder
from evaluator.report import TaskReport
from evaluator.score import budget_for
from runner.sandbox.base import AGENT_UID, Backend, ExecResult, Mount, SandboxDead, SandboxSpec
from tasks.manifest import MANIFEST_NAME, Manifest
from tasks.schema import Task

LEAST_SECONDS = 1800
MEMORY_MB = 4096
ATTEMPTS = 2
REPORT_LIMIT = 256 * 1024 * 1024
WEIGHTS = "/weights"


class EvaluationFailed(Exception):
    """The evaluator gave no usable report. Never the agent's failure: the run stays unscored, to be graded again."""


@dataclass(frozen=True)
class Evaluation:
    report: TaskReport
    report_bytes: bytes
    previews: dict[str, bytes]
    seconds: float


def evaluate(
    backend: Backend, run_id: str, task: Task, manifest: Manifest, data: Path, submission: Path, scratch: Path
) -> Evaluation:
    """Score ``submission`` against the references under ``data``.

    Parameters
    ----------
    data : Path
        The staged task folder with ``public``, ``private`` and ``manifest.json``.
    submission : Path
        The collected copy, never the agent's own workspace.
    scratch : Path
        Folder for the evaluator's output, made here and gone afterwards.

    Raises
    ------
    EvaluationFailed
        Twice in a row the evaluator crashed, hung, lacked a reference or wrote a report that breaks the schema.
    """
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            return _evaluate_once(backend, run_id, task, manifest, data, submission, scratch)
        except (EvaluationFailed, SandboxDead) as error:
            problem = str(error)
    raise EvaluationFailed(f"the evaluator gave no report for {task.id} in {ATTEMPTS} attempts: {problem}")


def _evaluate_once(
    backend: Backend, run_id: str, task: Task, manifest: Manifest, data: Path, submission: Path, scratch: Path
) -> Evaluation:
    started = time.monotonic()
    deadline = deadline_for(manifest)
    with _output_folder(scratch) as out:
        spec = sandbox_of(run_id, data, submission, out, deadline)
        with backend.create(spec) as sandbox:
            result = sandbox.exec(_command(task), deadline=deadline)
            if result.exit_code != 0:
                raise EvaluationFailed(_last_words(result, deadline))
            try:
                raw = sandbox.get("/out/report.json", limit=REPORT_LIMIT)
            except (FileNotFoundError, ValueError) as error:
                raise EvaluationFailed(f"no report: {error}") from None
        report = _checked(raw, task, manifest, data)
        return Evaluation(report, raw, _read_previews(out / "previews"), time.monotonic() - started)


def sandbox_of(run_id: str, data: Path, submission: Path, out: Path, deadline: int) -> SandboxSpec:
    """What the evaluator sees: data, references, the collected copy, and the lab's folder of metric models."""
    weights = weights_folder()
    models = (Mount(weights.resolve(), WEIGHTS),) if weights and weights.is_dir() else ()
    return SandboxSpec(
        role="evaluator",
        run_id=run_id,
        mounts=(
            Mount(data / "public", "/data/public"),
            Mount(data / "private", "/data/private"),
            Mount(data / MANIFEST_NAME, f"/data/{MANIFEST_NAME}"),
            Mount(submission, "/submission"),
            Mount(out, "/out", writable=True),
            *models,
        ),
        env={WEIGHTS_VARIABLE: WEIGHTS} if models else {},
        workdir="/out",
        memory_mb=MEMORY_MB,
        disk_mb=1024,
        lease_seconds=deadline + 120,
    )


def deadline_for(manifest: Manifest) -> int:
    """Seconds within which the evaluator ends even if every case uses all that it may, on one core."""
    return max(LEAST_SECONDS, len(manifest.cases) * budget_for(manifest).cpu_seconds)


def _command(task: Task) -> list[str]:
    places = ["--submission", "/submission", "--references", "/data/private", "--public", "/data/public"]
    return [
        "python3",
        "-m",
        "evaluator",
        "score",
        "--task",
        task.id,
        *places,
        "--out",
        "/out/report.json",
        "--previews",
        "/out/previews",
    ]


def _last_words(result: ExecResult, deadline: int) -> str:
    if result.timed_out:
        return f"no end after {deadline} s"
    if result.oom:
        return f"out of memory ({MEMORY_MB} MiB)"
    lines = result.output.decode(errors="replace").strip().splitlines()
    return f"exit {result.exit_code}: {lines[-1] if lines else 'no output'}"


def _checked(raw: bytes, task: Task, manifest: Manifest, data: Path) -> TaskReport:
    try:
        report = TaskReport.model_validate_json(raw)
    except ValidationError as error:
        raise EvaluationFailed(f"the report breaks its schema: {error.errors()[0]['msg']}") from None
    if report.task != task.id or report.manifest_sha256 != sha256_file(data / MANIFEST_NAME):
        raise EvaluationFailed(f"the report is about {report.task} on other data than {data}")
    if [case.case_id for case in report.cases] != manifest.case_ids():
        raise EvaluationFailed("the report's cases are not the manifest's")
    return report


@contextmanager
def _output_folder(scratch: Path) -> Iterator[Path]:
    """An empty folder that the evaluator's uid may write to; one left by a killed runner is cleared first."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        if os.geteuid() == 0:
            os.chown(scratch, AGENT_UID, AGENT_UID)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _read_previews(folder: Path, limit: int = 64, max_bytes: int = 512 * 1024) -> dict[str, bytes]:
    """Small pictures by name; written by our evaluator, still read without following links."""
    pictures: dict[str, bytes] = {}
    if folder.is_symlink() or not folder.is_dir():
        return pictures
    for path in sorted(folder.iterdir())[:limit]:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= max_bytes:
            pictures[path.name] = path.read_bytes()
    return pictures
