"""Recompute a finished run from the files of its folder, and name whatever is not what it was sealed as.

Nothing is written. The trace is checked line by line, every digest is taken again, stages and totals are computed from
the judgement's items and the evaluator's report, and the record is assembled anew and compared byte for byte. Only
``again``, scoring the submission once more, takes more than the folder: the references.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any, Literal

from evaluator import stages
from evaluator.files import sha256_file
from evaluator.judge.judgement import Judgement
from evaluator.judge.rules import judge_by_rules
from evaluator.judge.spans import StageSpan, stage_spans
from evaluator.report import TaskReport
from evaluator.rubric import load_rubric
from evaluator.submission import changed_since_collection
from evaluator.trace import End, TraceError, iter_trace
from hf_datasets import signing
from hf_datasets.records import RecordError, RunRecord, dump_record, load_record
from runner import cell as files
from runner.cell import read_form
from runner.ended import Run, codes_of, superseded
from runner.errors import EnvironmentProblem, UsageProblem, exit_code_of, words_of
from runner.evaluate import EvaluationFailed, evaluate
from runner.provenance import code_digest
from runner.sandbox import all_backends
from runner.seal import assemble_record
from runner.trace import verify_chain
from tasks.schema import Track

State = Literal["verified", "differs", "incomplete"]

SEALED = {
    "cell_sha256": files.CELL,
    "trace_sha256": files.TRACE,
    "downloads_sha256": files.DOWNLOADS,
    "submission_sha256": f"{files.SUBMISSION}/{files.MANIFEST}",
    "report_sha256": files.REPORT,
    "judgement_sha256": files.JUDGEMENT,
}
"""Field of the record, and the file whose digest it is."""


@dataclass
class Verified:
    """What became of one run. ``differences``: each names a file or a field, and what is wrong with it."""

    folder: Path
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    exit_code: int = 0

    @property
    def state(self) -> State:
        if self.exit_code:
            return "incomplete"
        return "differs" if self.differences else "verified"

    def row(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "state": self.state,
            "differences": self.differences,
            "notes": self.notes,
        }

    def require(self, holds: bool, words: str) -> None:
        if not holds:
            self.differences.append(words)


def verify(folder: Path, data_root: Path, again: bool = False) -> Verified:
    """Check one run folder against its record.

    Parameters
    ----------
    folder : Path
        A sealed run, or one that ended without a score (its ``unscored.json`` is checked).
    data_root : Path
        Where staged data lie. Error codes, stage spans and a rules judgement rest on the shapes of the public inputs.
    again : bool
        Also score the submission, in the same kind of sandbox as then, and compare the report.
    """
    found = Verified(folder)
    try:
        _verify(folder, data_root, again, found)
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        found.differences.append(words_of(error))
        if isinstance(error, EnvironmentProblem):
            found.exit_code = code
    return found


def _verify(folder: Path, data_root: Path, again: bool, found: Verified) -> None:
    name = files.RECORD if (folder / files.RECORD).is_file() else files.UNSCORED
    if not (folder / name).is_file():
        raise EnvironmentProblem(f"{folder} holds no finished run to verify; run the cell again first")
    found.differences += _trace_differences(folder)
    record = _readable(found, lambda: load_record(folder / name))
    if record is None:
        return
    found.differences += _digest_differences(folder, record, name)
    if record.submission_sha256 and (change := changed_since_collection(folder / files.SUBMISSION)):
        found.differences.append(f"{files.SUBMISSION}: {change}")
    report = _readable(found, lambda: _form(folder / files.REPORT, TaskReport, record.report_sha256))
    judgement = _readable(found, lambda: _form(folder / files.JUDGEMENT, Judgement, record.judgement_sha256))
    if report is not None:
        found.differences += _report_differences(report, record)
    found.differences += _total_differences(record, report, judgement)
    found.differences += _superseded_differences(folder, record)
    if found.differences:
        return  # what follows rests on these files; their names are the better message
    run = Run.load(folder, data_root)
    _compare_record(run, record, report, judgement, folder / name, found)
    if again and report is not None:
        _compare_report(run, record, report, found)


def _readable(found: Verified, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (UsageProblem, RecordError, OSError) as error:
        found.differences.append(words_of(error))
        return None


def _form(path: Path, form: type[Any], sealed: str | None) -> Any:
    return None if sealed is None else read_form(path, form)


def _trace_differences(folder: Path) -> Iterator[str]:
    path = folder / files.TRACE
    if (line := verify_chain(path)) is not None:
        yield f"{files.TRACE}:{line} does not follow from the line before it"
    try:
        ends = [number for number, event in enumerate(iter_trace(path), 1) if isinstance(event, End)]
        lines = path.read_bytes().count(b"\n")
    except (TraceError, OSError) as error:
        yield words_of(error)
        return
    if not ends:
        yield f"{files.TRACE} does not end with an end: its last lines are missing"
    elif ends != [lines]:
        yield f"{files.TRACE} goes on after the run's end in line {ends[0]}"


def _digest_differences(folder: Path, record: RunRecord, record_name: str) -> Iterator[str]:
    for field_name, file_name in SEALED.items():
        sealed, path = getattr(record, field_name), folder / file_name
        if sealed is None or (path.is_file() and sha256_file(path) == sealed):
            continue
        if not path.is_file():
            yield f"{file_name} is missing; {record_name} was sealed over it"
        elif (kept := superseded(folder, file_name, sealed)).is_file():
            verb = "rejudge" if file_name == files.JUDGEMENT else "regrade"
            yield (
                f"{file_name} is newer than {record_name}: a {verb} was interrupted; run '{verb}' again "
                f"(the sealed one is {kept.relative_to(folder)})"
            )
        else:
            yield f"{file_name} is not the file that {record_name} was sealed over ({field_name})"


def _report_differences(report: TaskReport, record: RunRecord) -> Iterator[str]:
    """What follows from the cases of a report must be what it says."""
    scored = sum(case.status == "scored" for case in report.cases)
    cases = len(report.cases)
    expected: dict[str, Any] = {
        "n_cases": cases,
        "n_scored": scored,
        "completion": scored / cases if cases else 0.0,
        "all_valid": scored == cases,
    }
    gated = report.track is Track.SEGMENTATION and scored < cases
    expected["task_score"] = 0.0 if gated else report.task_score_ungated
    if report.track is Track.SEGMENTATION and cases:
        expected["task_score_ungated"] = min(1.0, fsum(case.score for case in report.cases) / cases)
    for name, value in expected.items():
        found = getattr(report, name)
        if abs(found - value) > 1e-9:
            yield f"{files.REPORT}: {name} is {found}, its cases give {value}"
    if report.task != record.task:
        yield f"{files.REPORT} is about {report.task}, {files.RECORD} about {record.task}"


def _total_differences(
    record: RunRecord, report: TaskReport | None, judgement: Judgement | None
) -> Iterator[str]:
    """Stages from items and report, totals from stages; a policy end is zero throughout."""
    if report is None or judgement is None or record.end_reason.value == "policy":
        return
    expected: dict[str, float | None] = {}
    for name in ("s1", "s2", "s3"):
        expected[name] = stage_mean(judgement, name.upper(), report.track)
        if not _same(getattr(judgement, name), expected[name]):
            yield f"{files.JUDGEMENT}: {name} is {getattr(judgement, name)}, its items give {expected[name]}"
    expected |= {"s4": stages.s4(report), "s5": stages.s5(report), "task_score": report.task_score}
    expected["agentic"] = stages.agentic(
        expected["s1"], expected["s2"], expected["s3"], stages.s4(report), stages.s5(report)
    )
    expected["overall"] = stages.overall(expected["agentic"], report.task_score)
    for name, value in expected.items():
        if not _same(getattr(record, name), value):
            yield f"{files.RECORD}: {name} is {getattr(record, name)}, report and judgement give {value}"


def stage_mean(judgement: Judgement, stage: str, track: Track) -> float | None:
    """A stage in [0, 1] from the items of a judgement, weighted as the track's rubric says; None while one is open."""
    weights = {item.id: item.weight for item in load_rubric(track).items}
    applies = [item for item in judgement.items if item.stage == stage and item.applies]
    values = [weights.get(item.id, 1.0) * item.value for item in applies if item.value is not None]
    if not applies or len(values) < len(applies):
        return None
    return min(1.0, fsum(values) / fsum(weights.get(item.id, 1.0) for item in applies))


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1e-12


def _superseded_differences(folder: Path, record: RunRecord) -> Iterator[str]:
    """The records before this one are kept, each under its own digest."""
    seen: set[str] = set()
    digest = record.supersedes
    while digest is not None and digest not in seen:
        seen.add(digest)
        path = superseded(folder, files.RECORD, digest)
        if not path.is_file() or sha256_file(path) != digest:
            yield f"{path.relative_to(folder)}, which a later record supersedes, is missing or was changed"
            return
        digest = load_record(path).supersedes


def _compare_record(
    run: Run,
    record: RunRecord,
    report: TaskReport | None,
    judgement: Judgement | None,
    path: Path,
    found: Verified,
) -> None:
    """Assemble the record anew: what cannot follow from the folder (which image scored it) is taken as it says."""
    scored = path.name == files.RECORD
    material = run.material()
    if judgement is not None and judgement.judge == "rules":
        rules = judge_by_rules(material.evidence, load_rubric(run.task.track), run.cell.tier)
        found.require(rules == judgement, f"{files.JUDGEMENT} is not what the rules say about this trace")
    codes: tuple[str, ...] = ()
    spans: tuple[StageSpan, ...] = ()
    if report is not None and judgement is not None:
        codes = codes_of(material, report, judgement)
        spans = stage_spans(material.events, material.evidence)
    sealed = run.sealed(report, judgement, codes, record.evaluator_environment, spans)
    fresh = assemble_record(sealed, None if scored else record.end_detail)
    fresh = fresh.model_copy(update={"supersedes": record.supersedes})
    if fresh == record:
        text = dump_record(fresh)
        if record.code_sha256 == code_digest():
            found.require(path.read_text() == text, f"{path.name} is not written as a record is")
        return
    ours, theirs = fresh.model_dump(), record.model_dump()
    changed = [name for name in ours if ours[name] != theirs[name]]
    found.differences += [
        f"{path.name}: {name} is {theirs[name]!r:.200}, the folder gives {ours[name]!r:.200}"
        for name in changed
    ]
    if record.code_sha256 != code_digest():
        found.notes.append("the run was made by another version of the code, whose rules may have differed")


def _compare_report(run: Run, record: RunRecord, report: TaskReport, found: Verified) -> None:
    """Score the submission again, out of the way of the run's own files."""
    backend = next(backend for backend in all_backends() if backend.name == record.sandbox)
    if not (availability := backend.available()).ok:
        raise EnvironmentProblem(f"{run.folder} was scored in {backend.name}: {availability.detail}")
    with _scratch() as scratch:
        try:
            submission = run.folder / files.SUBMISSION
            fresh = evaluate(backend, run.cell.run_id, run.task, run.manifest, run.data, submission, scratch)
        except EvaluationFailed as error:
            raise EnvironmentProblem(f"{run.folder}: {error}") from None
    if backend.environment_digest("evaluator") == record.evaluator_environment:
        same = fresh.report_bytes == (run.folder / files.REPORT).read_bytes()
    else:
        same = fresh.report.model_copy(update={"versions": report.versions}) == report
        found.notes.append("scored again by another version of the evaluator or of what it imports")
    found.require(same, f"{files.REPORT} is not what the evaluator says about this submission")


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "evaluation"


def verify_all(folders: Iterable[Path], data_root: Path, again: bool = False) -> Iterator[Verified]:
    """``verify`` of each, in order."""
    return (verify(folder, data_root, again) for folder in folders)


def require_signature(found: Verified, allowed_signers: Path) -> None:
    """Hold a run's record against its signature; the signer's name becomes a note."""
    path = found.folder / files.RECORD
    try:
        signature = path.with_name(path.name + signing.SUFFIX).read_bytes()
        found.notes.append(f"signed by {signing.verify(path.read_bytes(), signature, allowed_signers)}")
    except FileNotFoundError as error:
        found.differences.append(f"{Path(error.filename).name} is missing: the record is not signed")
    except signing.SigningError as error:
        found.differences.append(f"{path.name}{signing.SUFFIX}: {error}")
