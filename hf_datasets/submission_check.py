"""Check a submission run by run: schema, digests, completeness, limits, judge, totals, and the scores once more.

What was handed in is scored again by a `Scorer` that the caller brings: only the runner can do that in a sandbox.
Without one, or without the data, a run that passes stays ``self-reported``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from evaluator import stages
from evaluator.files import sha256_file
from evaluator.report import TaskReport
from evaluator.trace import EndReason
from hf_datasets.archives import ArchiveError
from hf_datasets.arrow import RUNS
from hf_datasets.hub import git_oid
from hf_datasets.outputs import unpack_outputs
from hf_datasets.records import RecordError, RunLimits, RunRecord, RunStatus, load_record
from hf_datasets.results.layout import RUNS_PARTS
from hf_datasets.results.signatures import record_files
from hf_datasets.results.tables import read_parts
from hf_datasets.results.verify import verify
from hf_datasets.submissions import (
    FOLDER,
    MAX_FORM_BYTES,
    JudgeForm,
    SubmissionError,
    SubmissionForm,
    SubmittedRun,
    missing_repeats,
    read_submission,
)
from tasks.registry import TaskError, load_task, task_digest

TOLERANCE = 1e-6
"""Between scores of other versions of the same libraries; ours alone are equal to the last bit."""


class CannotScore(Exception):
    """Why outputs cannot be scored here; nobody's fault."""


class Scorer(Protocol):
    """Scores outputs from strangers, isolated."""

    def score(self, record: RunRecord, outputs: Path) -> TaskReport:
        """The evaluator's report of unpacked outputs. Raises `CannotScore` where the data are not at hand."""


@dataclass(frozen=True)
class Checked:
    """One submission: its manifest, and what became of each of its runs."""

    form: SubmissionForm
    statuses: tuple[RunStatus, ...]

    @property
    def accepted(self) -> bool:
        return not any(status.status.startswith("rejected") for status in self.statuses)


def submissions_in(folder: Path) -> list[SubmissionForm]:
    """The manifests in a pulled folder.

    Raises
    ------
    SubmissionError
        There is none, or one cannot be read.
    """
    paths = sorted((folder / FOLDER).glob("*.json"))
    if not paths:
        raise SubmissionError(f"{folder}: expected {FOLDER}/*.json, found none; is it a submission?")
    forms = []
    for path in paths:
        if path.stat().st_size > MAX_FORM_BYTES:
            raise SubmissionError(f"{path}: larger than {MAX_FORM_BYTES} bytes")
        forms.append(read_submission(path.read_bytes(), f"{FOLDER}/{path.name}"))
    return forms


def check_submission(folder: Path, form: SubmissionForm, scorer: Scorer | None = None) -> Checked:
    """Check every run of a submission.

    Parameters
    ----------
    folder
        Results as `hf_datasets.results.pull` lays them out, the submission's own included.
    scorer
        Scores the outputs once more; None leaves that out.
    """
    differences = verify(folder).of_run
    rows = _rows(folder)
    incomplete = missing_repeats(form)
    statuses = []
    for run in form.present:
        checks = _Checks(folder, form, run, scorer)
        of_run = list(differences.get(run.run_id, ()))
        if rows.get(run.run_id) != {run.record_sha256}:
            of_run.append("the run's row is not of the record that the manifest lists")
        statuses.append(checks.status(of_run, incomplete.get((run.task, str(run.tier), run.agent))))
    return Checked(form, tuple(statuses))


def strays(folder: Path, forms: Iterable[SubmissionForm], merged: Mapping[str, str]) -> list[str]:
    """Records and rows that a submission adds and none of its manifests lists, a line each.

    Nobody would check them, and they would be merged with the others.

    Parameters
    ----------
    folder
        Results with the submission, as `hf_datasets.results.pull` lays them out.
    merged
        Path -> git's oid of the files that are there without it.
    """
    listed: set[str | None] = {run.record_sha256 for form in forms for run in form.present}
    found = []
    for path in record_files(folder):
        content, name = path.read_bytes(), path.relative_to(folder).as_posix()
        digest = sha256(content).hexdigest()
        if merged.get(name) == git_oid(content):
            listed.add(digest)
        elif digest not in listed:
            found.append(f"{name}: is listed by no manifest of the submission")
    return found + [
        f"{RUNS_PARTS}: the row of {run_id} is of no record that a manifest lists"
        for run_id, digests in sorted(_rows(folder).items())
        if not digests <= listed
    ]


def _rows(folder: Path) -> dict[str, set[str | None]]:
    """Run id -> digests of the records that its rows are of."""
    table = read_parts(folder / RUNS_PARTS, RUNS).table
    rows: dict[str, set[str | None]] = {}
    for run_id, digest in zip(table["run_id"].to_pylist(), table["record_sha256"].to_pylist(), strict=True):
        rows.setdefault(run_id, set()).add(digest)
    return rows


class _Rejected(Exception):
    """The run is not what it says it is."""


@dataclass
class _Checks:
    folder: Path
    form: SubmissionForm
    run: SubmittedRun
    scorer: Scorer | None

    def status(self, differences: list[str], incomplete: str | None) -> RunStatus:
        found: dict[str, str] = {}
        status = "self-reported"
        try:
            for name, words in self._all(differences, incomplete):
                found[name] = words
            if found["scores"] == "equal":
                status = "re-scored"
        except _Rejected as reason:
            status = f"rejected: {' '.join(str(reason).split())[:300]}"
        return RunStatus(
            run_id=self.run.run_id,
            record_sha256=self.run.record_sha256,
            status=status,
            checked_at=datetime.now(UTC),
            checks=found,
        )

    def _all(self, differences: list[str], incomplete: str | None) -> Iterator[tuple[str, str]]:
        record = self._record()
        yield "schema", "sound"
        if differences:
            raise _Rejected(f"digests or totals: {differences[0]}")
        yield "digests", "equal"
        if incomplete:
            raise _Rejected(f"incomplete: {incomplete}")
        yield "completeness", "all planned repeats of the cell are there"
        yield "limits", self._limits(record)
        if record.judge is None or JudgeForm.of(record) != self.form.judge:
            raise _Rejected("judge: not the judge of the submission")
        yield "judge", record.judge + (f" ({record.judge_model})" if record.judge_model else "")
        yield "scores", self._scores(record)

    def _record(self) -> RunRecord:
        """The published record that the manifest lists."""
        pattern = f"records/*/{self.run.run_id}*.json"
        for path in sorted(self.folder.glob(pattern)):
            if sha256_file(path) == self.run.record_sha256:
                try:
                    record = load_record(path)
                except RecordError as error:
                    raise _Rejected(f"schema: {str(error).removeprefix(f'{self.folder}/')}") from None
                for name in ("run_id", "task", "tier", "agent", "repeat", "limits"):
                    if getattr(record, name) != getattr(self.run, name):
                        raise _Rejected(f"manifest: {name} is not the record's")
                if record.release is not self.form.release:
                    raise _Rejected("manifest: release is not the record's")
                return record
        raise _Rejected("digests: no record with the digest that the manifest lists")

    def _limits(self, record: RunRecord) -> str:
        try:
            task = load_task(record.task)
        except TaskError:
            raise _Rejected(f"schema: unknown task {record.task}") from None
        if task_digest(task.id) != record.task_sha256:
            return "not compared: the run was made on another version of the task"
        asked = RunLimits.model_validate(task.limits.model_dump())
        for name, value in asked:
            if getattr(record.limits, name) != value:
                raise _Rejected(f"limits: {name} was {getattr(record.limits, name)}, the task's is {value}")
        return "the task's own"

    def _scores(self, record: RunRecord) -> str:
        packed = self.folder / "outputs" / f"{record.run_id}.tar.zst"
        if self.run.outputs_sha256 is None:
            return "not scored again: the terms of the data keep the outputs back"
        if not packed.is_file() or sha256_file(packed) != self.run.outputs_sha256:
            raise _Rejected("digests: the packed outputs are not those that the manifest lists")
        with tempfile.TemporaryDirectory(prefix="automedbench-submission-") as scratch:
            outputs = Path(scratch) / "submission"
            try:
                unpack_outputs(packed, outputs)
            except ArchiveError as error:
                raise _Rejected(f"outputs: the archive {error}") from None
            if sha256_file(outputs / "manifest.json") != record.submission_sha256:
                raise _Rejected("digests: the outputs are not those that the record was sealed over")
            if self.scorer is None:
                return "not scored again: no evaluator was given"
            try:
                report = self.scorer.score(record, outputs)
            except CannotScore as reason:
                return f"not scored again: {reason}"
        if report.metric_set != record.metric_set:
            return f"not scored again: metric set {record.metric_set} is not available here"
        if problem := _difference(record, report):
            raise _Rejected(f"scores: {problem}")
        return "equal"


def _difference(record: RunRecord, report: TaskReport) -> str | None:
    """The first number of the record that the report does not give, in words."""
    policy = record.end_reason is EndReason.POLICY
    scores = {
        "task_score": report.task_score,
        "task_score_ungated": report.task_score_ungated,
        "s4": stages.s4(report),
        "s5": stages.s5(report),
    }
    expected: dict[str, float | None] = {name: 0.0 if policy else value for name, value in scores.items()}
    expected |= {"completion": report.completion, "n_cases": report.n_cases, "n_scored": report.n_scored}
    expected |= {"skill": report.skill}
    for name, value in expected.items():
        if not _same(getattr(record, name), value):
            return f"{name} is {getattr(record, name)}, scored again it is {value}"
    for name, value in report.aggregates.items():
        if not _same(record.metrics.get(name), value):
            return f"{name} is {record.metrics.get(name)}, scored again it is {value}"
    return None


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE
