"""From a submission and its references to a report: the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaluator.contamination import signs_of_run
from evaluator.isolation import Budget, Death, map_isolated
from evaluator.report import CaseError, CaseResult, CaseStatus, TaskReport
from evaluator.submission import load_submission_manifest
from evaluator.tracks import track_of
from evaluator.tracks.base import (
    MISSING,
    CaseFault,
    CaseFiles,
    Finished,
    Outcome,
    ReferenceMissing,
    Summary,
    Track,
)
from tasks.manifest import Manifest, dump_manifest
from tasks.schema import Strict, Task
from tasks.schema import Track as TrackName

SCORING_VERSION = "1"
"""Goes up whenever the same submission may get another score."""

LIBRARIES = ("nibabel", "numpy", "pillow", "scipy")
EVALUATION_LIMIT = "evaluation_limit"
CPU_SECONDS_FOR_ALL = 1200
CPU_SECONDS_PER_CASE = (2, 60)
VOXELS_PER_SECOND = 5_000_000
"""A quarter of the speed at which 117 labels, or the slices of a synthesised volume, are measured."""


class _Answer(Strict):
    """What a child process says about its case. ``missing_reference`` alone ends the whole evaluation."""

    status: CaseStatus = "scored"
    error: CaseError | None = None
    outcome: Outcome | None = None
    missing_reference: str | None = None


@dataclass(frozen=True)
class CheckResult:
    """One case of a format check; ``error`` None: its outputs are valid."""

    case_id: str
    error: CaseError | None


def score(
    task: Task,
    submission: Path,
    references: Path,
    public: Path | None,
    manifest: Manifest,
    jobs: int | None = None,
    manifest_sha256: str | None = None,
) -> TaskReport:
    """Score a submission against the manifest's whole case list.

    Parameters
    ----------
    task : Task
    submission : Path
        ``<case>/<file>``; a folder that ``collect`` wrote, or any other.
    references, public : Path
        The two sides of the staged data. Without ``public`` the references give the grids.
    manifest : Manifest
        Its cases are the denominator.
    jobs : int, optional
        Cases at a time; as many as there are processors by default. The report is the same at any number.
    manifest_sha256 : str, optional
        Digest of the manifest's file, where it is not the canonical text of ``manifest``.

    Returns
    -------
    TaskReport

    Raises
    ------
    ReferenceMissing
        A staged file is absent or cannot be used. Nothing is said about the submission then.
    """
    track = track_of(task)
    cases = case_files(track, manifest, submission, references, public)
    for case in cases:
        for name in task.references[:1]:
            case.reference(name)
    track.prepare()
    answers = _evaluate_all(track, cases, budget_for(manifest), jobs or len(os.sched_getaffinity(0)))
    finished = [_finished(case, answer) for case, answer in zip(cases, answers, strict=True)]
    # By id: equal scores of boxes are ranked by case, and no total may depend on the order of the manifest.
    summary = track.aggregate(sorted(finished, key=lambda one: one.result.case_id))
    digest = manifest_sha256 or hashlib.sha256(dump_manifest(manifest).encode()).hexdigest()
    present = any(case.has_any(task.output.filenames) for case in cases)
    return _report(task, manifest, [one.result for one in finished], summary, present, digest)


def check(
    task: Task, submission: Path, public: Path, case_ids: Sequence[str], jobs: int | None = None
) -> list[CheckResult]:
    """Whether each case's outputs are present and keep the contract; looks at no reference.

    Raises
    ------
    ReferenceMissing
        A public input is absent or cannot be used.
    """
    track = track_of(task)
    cases = _case_files(case_ids, submission, None, public)
    answers = _ask(
        lambda case: _check_case(track, case), cases, Budget(), jobs or len(os.sched_getaffinity(0))
    )
    return [CheckResult(case.id, answer.error) for case, answer in zip(cases, answers, strict=True)]


def case_files(
    track: Track[Any], manifest: Manifest, submission: Path, references: Path | None, public: Path | None
) -> list[CaseFiles]:
    """The manifest's cases, in its order."""
    return _case_files(list(track.expected(track.task, manifest)), submission, references, public)


def _case_files(
    case_ids: Sequence[str], submission: Path, references: Path | None, public: Path | None
) -> list[CaseFiles]:
    refused = _refused(submission)
    return [
        CaseFiles(case_id, submission, public, references, refused.get(case_id, {})) for case_id in case_ids
    ]


def _refused(submission: Path) -> dict[str, dict[str, CaseFault]]:
    """Case -> file -> why the collector left it behind."""
    faults: dict[str, dict[str, CaseFault]] = {}
    collected = load_submission_manifest(submission)
    for problem in collected.problems if collected else ():
        case_id, _, name = problem.path.partition("/")
        faults.setdefault(case_id, {})[name] = CaseFault(problem.code, f"{name}: {problem.message}")
    return faults


def budget_for(manifest: Manifest) -> Budget:
    """What one case of this manifest may use."""
    shapes = (entry.shape for case in manifest.cases for entry in (*case.public, *case.private))
    voxels = max((prod(shape) for shape in shapes if shape), default=0)
    return Budget(cpu_seconds=_cpu_seconds(len(manifest.cases), voxels), memory_mb=_memory_mb(voxels))


def _cpu_seconds(n_cases: int, voxels: int) -> int:
    """A case's share of the whole, so that a submission of nothing but traps ends before the deadline.

    Never less than several times what an honest volume of that size takes.
    """
    least, most = CPU_SECONDS_PER_CASE
    share = min(most, CPU_SECONDS_FOR_ALL // max(1, n_cases))
    return max(share, least + voxels // VOXELS_PER_SECOND)


def _memory_mb(voxels: int) -> int:
    """Room for the largest staged volume as an agent may honestly submit it, in float64, beside its reference."""
    return max(Budget.memory_mb, 512 + 12 * voxels // (1 << 20))


# --- one case, in a child process ---


def _evaluate_all(track: Track[Any], cases: Sequence[CaseFiles], budget: Budget, jobs: int) -> list[_Answer]:
    """Answers of all cases; those that died are asked once more for what a case without output counts."""
    answers = _ask(lambda case: _evaluate(track, case), cases, budget, jobs)
    died = [place for place, answer in enumerate(answers) if answer.outcome is None]
    empty = _ask(
        lambda case: _Answer(outcome=track.score(case, None)), [cases[place] for place in died], budget, jobs
    )
    for place, answer in zip(died, empty, strict=True):
        if answer.outcome is None:
            raise ReferenceMissing(f"case {cases[place].id}: its reference cannot be read: {answer.error}")
        answers[place] = answers[place].model_copy(update={"outcome": answer.outcome})
    return answers


def _ask(
    question: Callable[[CaseFiles], _Answer], cases: Sequence[CaseFiles], budget: Budget, jobs: int
) -> list[_Answer]:
    texts = map_isolated(lambda case: _guarded(question, case).model_dump_json(), cases, budget, jobs)
    answers = [_parsed(text) for text in texts]
    for answer in answers:
        if answer.missing_reference is not None:
            raise ReferenceMissing(answer.missing_reference)
    return answers


def _guarded(question: Callable[[CaseFiles], _Answer], case: CaseFiles) -> _Answer:
    try:
        return question(case)
    except ReferenceMissing as error:
        return _Answer(missing_reference=str(error))


def _evaluate(track: Track[Any], case: CaseFiles) -> _Answer:
    try:
        output = track.check(case)
    except CaseFault as fault:
        return _fault(fault).model_copy(update={"outcome": track.score(case, None)})
    return _Answer(outcome=track.score(case, output))


def _check_case(track: Track[Any], case: CaseFiles) -> _Answer:
    try:
        track.check(case)
    except CaseFault as fault:
        return _fault(fault)
    return _Answer()


def _fault(fault: CaseFault) -> _Answer:
    status: CaseStatus = "missing" if fault.code == MISSING else "invalid"
    return _Answer(status=status, error=CaseError(code=fault.code, message=fault.message))


def _parsed(text: str | Death) -> _Answer:
    if isinstance(text, Death):
        limit = text.kind == "limit"
        code = EVALUATION_LIMIT if limit else f"evaluation_{text.kind}"
        return _Answer(
            status="limit" if limit else "invalid", error=CaseError(code=code, message=text.message)
        )
    try:
        return _Answer.model_validate_json(text)
    except ValidationError as error:
        message = f"the case's result is not one: {error.errors()[0]['msg']}"
        return _Answer(status="invalid", error=CaseError(code="evaluation_error", message=message))


# --- the report ---


def _finished(case: CaseFiles, answer: _Answer) -> Finished:
    outcome = answer.outcome
    assert outcome is not None, "every case was asked until it had an outcome"
    result = CaseResult(
        case_id=case.id,
        status=answer.status,
        score=outcome.score if answer.status == "scored" else 0.0,
        error=answer.error,
        metrics=dict(outcome.metrics),
        flags=outcome.flags,
    )
    return Finished(result, outcome.evidence)


def _report(
    task: Task, manifest: Manifest, results: list[CaseResult], summary: Summary, present: bool, digest: str
) -> TaskReport:
    scored = sum(result.status == "scored" for result in results)
    broken = any(result.status in ("invalid", "limit") for result in results)
    complete = scored == len(results)
    ungated = min(1.0, max(0.0, summary.score))
    return TaskReport(
        task=task.id,
        track=task.track,
        release=manifest.release,
        metric=task.metric.headline,
        metric_set=summary.metric_set,
        unavailable=_unavailable(task, summary),
        task_score=0.0 if task.track is TrackName.SEGMENTATION and not complete else ungated,
        task_score_ungated=ungated,
        skill=_skill(task, manifest, ungated),
        n_cases=len(results),
        n_scored=scored,
        completion=scored / len(results),
        all_valid=complete,
        format_valid=present and not broken,
        aggregates=dict(summary.aggregates),
        flags=signs_of_run(result.flags for result in results),
        cases=tuple(results),
        manifest_sha256=digest,
        versions=_versions(summary.libraries),
    )


def _skill(task: Task, manifest: Manifest, ungated: float) -> float | None:
    baseline = task.baselines.get(manifest.release)
    if baseline is None or baseline.trivial is None or baseline.trivial >= 1.0:
        return None
    return (ungated - baseline.trivial) / (1.0 - baseline.trivial)


def _unavailable(task: Task, summary: Summary) -> dict[str, str]:
    missing = {
        name: f"not among the metrics of the set {summary.metric_set}"
        for name in task.metric.secondary
        if not any(known.startswith(name) for known in summary.aggregates)
    }
    return missing | dict(summary.unavailable)


def _versions(others: Sequence[str]) -> dict[str, str]:
    return {"scoring": SCORING_VERSION, "python": platform.python_version()} | {
        name: _version(name) for name in (*LIBRARIES, *others)
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
