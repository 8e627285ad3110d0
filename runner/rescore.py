"""Score a submission's outputs once more in the evaluator's sandbox, as if its run had ended here."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from evaluator.files import sha256_file
from evaluator.report import TaskReport
from evaluator.submission import make_readable
from hf_datasets.records import RunRecord
from hf_datasets.submission_check import CannotScore
from runner.cell import require_readable
from runner.ended import staged_folder
from runner.errors import EnvironmentProblem
from runner.evaluate import EvaluationFailed, evaluate
from runner.sandbox import BackendName, choose_backend
from runner.sandbox.base import Backend
from tasks.manifest import MANIFEST_NAME, ManifestError, load_manifest
from tasks.registry import TaskError, load_task, task_digest


@dataclass(frozen=True)
class SandboxScorer:
    """Scores outputs against the references below ``data``, isolated, without a network."""

    data: Path
    backend: Backend

    @classmethod
    def of(cls, data: Path, sandbox: BackendName) -> SandboxScorer:
        """Raises EnvironmentProblem where nothing isolates."""
        return cls(data, choose_backend(sandbox))

    def score(self, record: RunRecord, outputs: Path) -> TaskReport:
        """The report of a run's outputs.

        Raises
        ------
        CannotScore
            The data are not at hand, or are others than those of the run; or the evaluator fails.
        """
        try:
            task = load_task(record.task)
            if task_digest(task.id) != record.task_sha256:
                raise CannotScore("the run was made on another version of the task")
            staged = staged_folder(self.data, record.release, task)
            manifest = load_manifest(staged)
            if sha256_file(staged / MANIFEST_NAME) != record.manifest_sha256:
                raise CannotScore(f"{staged} holds other data than the run was made on")
            require_readable(staged)
        except (TaskError, ManifestError, EnvironmentProblem) as error:
            raise CannotScore(str(error)) from None
        make_readable(outputs)
        outputs.parent.chmod(0o755)  # the evaluator runs as another user
        with tempfile.TemporaryDirectory(prefix="automedbench-rescore-") as scratch:
            Path(scratch).chmod(0o755)
            try:
                done = evaluate(
                    self.backend, record.run_id, task, manifest, staged, outputs, Path(scratch) / "evaluation"
                )
            except EvaluationFailed as error:
                raise CannotScore(str(error)) from None
        return done.report
