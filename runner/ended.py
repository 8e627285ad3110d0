"""A run whose agent has ended, and the steps that follow from the files in its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.errors import detect_errors
from evaluator.files import sha256_file, write_atomic
from evaluator.judge.inputs import public_shapes
from evaluator.judge.judgement import Judgement
from evaluator.judge.material import Assignment, Material, material_of
from evaluator.judge.spans import StageSpan, stage_spans
from evaluator.report import TaskReport
from evaluator.rubric import load_rubric
from evaluator.submission import changed_since_collection, collect, make_readable
from evaluator.trace import End, read_trace
from hf_datasets import signing
from hf_datasets.records import RunRecord, dump_record, load_record
from runner import cell as files
from runner.cell import CellFile, is_done, read_form, require_readable
from runner.errors import EnvironmentProblem, UsageProblem
from runner.evaluate import evaluate
from runner.judges import Judge, is_same_family
from runner.sandbox.base import Backend
from runner.seal import Sealed, assemble_record
from runner.trace import verify_chain
from tasks.manifest import MANIFEST_NAME, Manifest, ManifestError, load_manifest
from tasks.registry import load_task, task_digest
from tasks.schema import Release, Task


@dataclass(frozen=True)
class Outcome:
    """``scored`` and ``already`` have a record; ``unscored`` says why there is none."""

    state: Literal["scored", "already", "unscored"]
    folder: Path
    record: RunRecord


def staged_folder(data_root: Path, release: Release, task: Task) -> Path:
    """Where the task's staged data lie; phantoms are made on the spot, a release is downloaded where one is named."""
    if release is Release.PHANTOM:
        from hf_datasets import ensure_phantom

        return ensure_phantom(task.id, data_root)
    from hf_datasets.release_download import ensure_released, source_variable
    from hf_datasets.release_form import ReleaseError

    try:
        return ensure_released(release, task.id, data_root, os.environ.get(source_variable(release)))
    except ReleaseError as error:
        raise EnvironmentProblem(str(error)) from None


def staged_manifest(data: Path) -> Manifest:
    try:
        return load_manifest(data)
    except ManifestError as error:
        raise EnvironmentProblem(str(error)) from None


def end_of(folder: Path) -> End | None:
    """The last event of the run's trace, if the agent's run has ended.

    Raises
    ------
    TraceError
        The trace is damaged before its last line.
    """
    path = folder / files.TRACE
    if not path.is_file() or not (folder / files.CELL).is_file():
        return None
    events = read_trace(path)
    return events[-1] if events and isinstance(events[-1], End) else None


@dataclass(frozen=True)
class Run:
    """A run folder whose agent has ended, and the steps that follow from its files."""

    folder: Path
    cell: CellFile
    task: Task
    data: Path
    manifest: Manifest
    end: End

    @classmethod
    def load(cls, folder: Path, data_root: Path) -> Run:
        """Read the folder, and refuse one that was changed since its runner wrote it.

        Raises
        ------
        UsageProblem
            A file is damaged, or not the one that was written or sealed.
        EnvironmentProblem
            The agent's run has not ended, or ``data_root`` holds other data than it was run on.
        """
        end = end_of(folder)
        if end is None:
            raise EnvironmentProblem(f"{folder}: the agent's run has not ended; run the cell again first")
        _require_unchanged(folder)
        cell = read_form(folder / files.CELL, CellFile)
        task = load_task(cell.task)
        data = staged_folder(data_root, cell.release, task)
        manifest = staged_manifest(data)
        if sha256_file(data / MANIFEST_NAME) != cell.manifest_sha256:
            raise EnvironmentProblem(
                f"{data} is not the data that {folder} was run on; give the right --data"
            )
        return cls(folder, cell, task, data, manifest, end)

    def require_same_task(self) -> None:
        """Refuse to finish what was asked under another version of the task."""
        if task_digest(self.cell.task) != self.cell.task_sha256:
            raise EnvironmentProblem(
                f"task {self.cell.task} has changed since {self.folder} was run on it; finish the run with "
                "the version of then, or move the folder away to run it afresh"
            )

    def require_as_collected(self, *, outputs: bool = True) -> None:
        """Refuse a submission that was changed since it was collected; the plan alone without ``outputs``."""
        if change := changed_since_collection(self.folder / files.SUBMISSION, outputs=outputs):
            raise UsageProblem(f"{self.folder / files.SUBMISSION}: {change}; it was changed after the run")

    def require_as_sealed(self, *names: str) -> None:
        """Refuse files of the run's steps that are not those which its record was sealed over.

        What a ``regrade`` or ``rejudge`` that was killed before sealing put in their place is taken back first, so
        that a later step never seals the half of one that was not finished.
        """
        if not is_done(self.folder):
            return
        record = load_record(self.folder / files.RECORD)
        sealed = {files.REPORT: record.report_sha256, files.JUDGEMENT: record.judgement_sha256}
        for name in names:
            path, digest = self.folder / name, sealed[name]
            if digest is None or not path.is_file() or sha256_file(path) == digest:
                continue
            kept = superseded(self.folder, name, digest)
            if not kept.is_file() or sha256_file(kept) != digest:
                raise UsageProblem(
                    f"{path} is not the file that {files.RECORD} was sealed over; remove it to have it made anew"
                )
            self._replace(name, kept.read_bytes())

    def collect(self) -> None:
        """Copy what the agent left into ``submission``; the folder appears whole or not at all."""
        if (self.folder / files.SUBMISSION / files.MANIFEST).is_file():
            self.require_as_collected()
            return
        collect(
            self.folder / files.WORKSPACE, self.folder / files.SUBMISSION, self.task, self.manifest.case_ids()
        )

    def evaluate(self, backend: Backend) -> None:
        submission, scratch = self.folder / files.SUBMISSION, self.folder / files.EVALUATION
        require_readable(self.data)
        make_readable(submission)
        evaluation = evaluate(
            backend, self.cell.run_id, self.task, self.manifest, self.data, submission, scratch
        )
        previews = self.folder / files.PREVIEWS
        previews.mkdir(exist_ok=True)
        for name, picture in evaluation.previews.items():
            write_atomic(previews / name, picture)
        self._replace(files.REPORT, evaluation.report_bytes)

    def judge(self, judge: Judge) -> bool:
        """Write ``judgement.json``; False when the judge has nothing to add to the one that is there."""
        path = self.folder / files.JUDGEMENT
        earlier = read_form(path, Judgement) if path.is_file() else None
        judgement = judge.judge(self.material(), load_rubric(self.task.track), self.cell.tier, earlier)
        if judgement is earlier:
            return False
        if judge.model is not None:
            judgement = judgement.model_copy(
                update={"same_family": is_same_family(judge.model, self.cell.model)}
            )
        self._replace(files.JUDGEMENT, judgement.model_dump_json(indent=1) + "\n")
        return True

    def material(self) -> Material:
        return material_of(
            Assignment.of(self.task, self.cell.tier, len(self.manifest.cases)),
            read_trace(self.folder / files.TRACE),
            self.folder / files.SUBMISSION,
            public_shapes(self.manifest),
            gpus=self.cell.gpus,
        )

    def seal(self, evaluator_environment: str | None) -> Outcome:
        """Write ``record.json``, last of all: its presence means that the run is done."""
        report = read_form(self.folder / files.REPORT, TaskReport)
        judgement = read_form(self.folder / files.JUDGEMENT, Judgement)
        material = self.material()
        names = codes_of(material, report, judgement)
        spans = stage_spans(material.events, material.evidence)
        record = assemble_record(self.sealed(report, judgement, names, evaluator_environment, spans))
        self._replace(files.RECORD, dump_record(record))
        (self.folder / files.UNSCORED).unlink(missing_ok=True)
        return Outcome("scored", self.folder, record)

    def sealed(
        self,
        report: TaskReport | None,
        judgement: Judgement | None,
        codes: tuple[str, ...],
        evaluator_environment: str | None = None,
        spans: tuple[StageSpan, ...] = (),
    ) -> Sealed:
        return Sealed(
            self.folder,
            self.cell,
            self.task,
            self.end,
            report,
            judgement,
            codes,
            evaluator_environment,
            spans,
        )

    def _replace(self, name: str, data: str | bytes) -> None:
        """Put a new version of a step's file in place; the version before it is kept in ``superseded``."""
        path = self.folder / name
        raw = data.encode() if isinstance(data, str) else data
        if path.is_file():
            if path.read_bytes() == raw:
                return
            kept = superseded(self.folder, name, sha256_file(path))
            kept.parent.mkdir(exist_ok=True)
            write_atomic(kept, path.read_bytes())
            signature = path.with_name(path.name + signing.SUFFIX)
            if signature.is_file():  # it was made over that version, and goes with it
                signature.replace(kept.with_name(kept.name + signing.SUFFIX))
        write_atomic(path, raw)


def superseded(folder: Path, name: str, digest: str) -> Path:
    """Where a version of a step's file is kept after a later one took its place."""
    path = Path(name)
    return folder / "superseded" / f"{path.stem}-{digest[:12]}{path.suffix}"


def codes_of(material: Material, report: TaskReport, judgement: Judgement) -> tuple[str, ...]:
    """Names of the error codes of a run, the judge's included."""
    codes = (*detect_errors(material.events, material.evidence, report), *judgement.tags)
    return tuple(sorted({code.name for code in codes}))


def _require_unchanged(folder: Path) -> None:
    """A trace is checked by its chain, and by the record once there is one."""
    if (line := verify_chain(folder / files.TRACE)) is not None:
        raise UsageProblem(
            f"{folder / files.TRACE}:{line} does not follow from the line before it; it was changed after the run"
        )
    if not is_done(folder):
        return
    record = load_record(folder / files.RECORD)
    submission = f"{files.SUBMISSION}/{files.MANIFEST}"
    sealed = {
        files.CELL: record.cell_sha256,
        files.TRACE: record.trace_sha256,
        files.DOWNLOADS: record.downloads_sha256,
        submission: record.submission_sha256,
    }
    for name, digest in sealed.items():
        if digest is not None and sha256_file(folder / name) != digest:
            raise UsageProblem(f"{folder / name} is not the file that {files.RECORD} was sealed over")
