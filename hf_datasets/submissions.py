"""Submit finished runs to a results dataset: a pull request with the runs, what they produced, and a manifest.

The manifest says which runs were planned and which are there, under which limits and by which judge, with a digest of
every record, so that whoever merges can check it (`hf_datasets.submission_check`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from evaluator.files import sha256_file
from hf_datasets.hub import Hub
from hf_datasets.publish import Publication, PublishedFile
from hf_datasets.records import Name, RecordError, RunId, RunLimits, RunRecord, Sha256
from hf_datasets.results.push import Outcome, push
from hf_datasets.run_folders import RECORD, run_folders
from tasks.names import Release, Tier
from tasks.schema import Strict, first_problem

FOLDER = "submissions"
MAX_FORM_BYTES = 16 << 20


class SubmissionError(Exception):
    """Runs cannot be submitted, or a submission cannot be read; one line with what to do."""


class Cell(Strict):
    """One cell of a submission, and how many repeats of it were begun."""

    task: Name
    tier: Tier
    agent: Name
    repeats: Annotated[int, Field(ge=1, le=10_000)]


class SubmittedRun(Strict):
    """One run of a submission; ``outputs_sha256`` is of the packed outputs, None where the terms keep them back."""

    run_id: RunId
    task: Name
    tier: Tier
    agent: Name
    repeat: Annotated[int, Field(ge=0, le=9_999)]
    record_sha256: Sha256
    outputs_sha256: Sha256 | None
    limits: RunLimits


class JudgeForm(Strict):
    """Who judged every run of a submission."""

    judge: Literal["rules", "llm"] | None
    model: str | None
    sha256: str | None

    @classmethod
    def of(cls, record: RunRecord) -> JudgeForm:
        return cls(judge=record.judge, model=record.judge_model, sha256=record.judge_sha256)


class SubmissionForm(Strict):
    """``submissions/<id>.json``: what was planned, what is there."""

    schema_version: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", description="Over the records' digests")]
    release: Release
    judge: JudgeForm
    planned: Annotated[tuple[Cell, ...], Field(min_length=1, max_length=10_000)]
    present: Annotated[tuple[SubmittedRun, ...], Field(min_length=1, max_length=100_000)]
    harness_versions: tuple[str, ...]
    data_revisions: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.id}.json"


def submission_id(digests: Iterable[str]) -> str:
    """The same records are the same submission, however often they are sent."""
    return sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


def read_submission(content: bytes, name: str) -> SubmissionForm:
    """A manifest of a submission from anybody.

    Raises
    ------
    SubmissionError
        It breaks the form, or its id is not that of its records.
    """
    try:
        form = SubmissionForm.model_validate_json(content)
    except ValidationError as error:
        raise SubmissionError(f"{name}: {first_problem(error)}") from None
    if form.id != submission_id(run.record_sha256 for run in form.present):
        raise SubmissionError(f"{name}: its id is not that of the records it lists")
    return form


def missing_repeats(form: SubmissionForm) -> dict[tuple[str, str, str], str]:
    """Cell -> what of its plan is not there, or is there twice, in words; complete cells are left out."""
    there = Counter((run.task, str(run.tier), run.agent, run.repeat) for run in form.present)
    planned = {(cell.task, str(cell.tier), cell.agent): cell.repeats for cell in form.planned}
    faults: dict[tuple[str, str, str], str] = {}
    for cell, repeats in planned.items():
        lacking = [repeat for repeat in range(repeats) if not there[(*cell, repeat)]]
        if lacking:
            shown = ", ".join(f"r{repeat:02d}" for repeat in lacking[:5])
            faults[cell] = f"{len(lacking)} of {repeats} repeats are missing ({shown})"
    for (*names, repeat), count in there.items():
        cell = (names[0], names[1], names[2])
        if repeat >= planned.get(cell, 0):
            faults[cell] = f"r{repeat:02d} was not planned"
        elif count > 1:
            faults[cell] = f"r{repeat:02d} is there {count} times"
    return faults


@dataclass(frozen=True)
class Submitted:
    """What was sent: the manifest, the pull request's reference, and what became of the runs."""

    form: SubmissionForm
    reference: str
    outcome: Outcome


Publish = Callable[[Path], Publication]


def submit(runs: Path, hub: Hub, publish: Publish) -> Submitted:
    """Open a pull request with every run below a folder; the same runs again go on with the same one.

    Parameters
    ----------
    publish
        Says what of a run folder may leave, packed outputs included.

    Raises
    ------
    SubmissionError
        A run is not finished, may not be published, or does not belong together with the others.
    HubError
        The Hub refuses or cannot be reached.
    """
    form = describe(runs, publish)
    agents = ", ".join(sorted({cell.agent for cell in form.planned}))
    title = f"Submission {form.id}: {len(form.present)} runs of {agents} on release {form.release}"
    number = hub.pull_request(
        title[:200], f"Sent by `python -m hf_datasets submit`. Manifest: `{form.path}`."
    )
    reference = f"refs/pr/{number}"
    manifest = PublishedFile(form.path, (form.model_dump_json(indent=1) + "\n").encode())
    return Submitted(form, reference, push(runs, hub, publish, revision=reference, extra=[manifest]))


def describe(runs: Path, publish: Publish) -> SubmissionForm:
    """The manifest of what lies below a folder; every run there counts as planned, finished or not.

    Raises
    ------
    SubmissionError
        As in `submit`.
    """
    planned: Counter[tuple[str, str, str]] = Counter()
    records: list[RunRecord] = []
    present: list[SubmittedRun] = []
    for folder in run_folders(runs):
        if not (folder / RECORD).is_file():
            raise SubmissionError(f"{folder}: the run is not finished; run the same cell again, then submit")
        try:
            made = publish(folder)
        except RecordError as error:
            raise SubmissionError(str(error)) from None
        if made.findings:
            raise SubmissionError(f"{folder}: may not be published: {made.findings[0]}")
        records.append(made.record)
        present.append(_submitted(made))
        cell = (made.record.task, str(made.record.tier), made.record.agent)
        planned[cell] = max(planned[cell], made.record.repeat + 1)
    if not records:
        raise SubmissionError(f"{runs}: expected finished runs, found none")
    form = SubmissionForm(
        id=submission_id(run.record_sha256 for run in present),
        release=_only("release", {record.release for record in records}),
        judge=JudgeForm.model_validate_json(
            _only("judge", {JudgeForm.of(one).model_dump_json() for one in records})
        ),
        planned=tuple(
            Cell(task=task, tier=Tier(tier), agent=agent, repeats=count)
            for (task, tier, agent), count in sorted(planned.items())
        ),
        present=tuple(sorted(present, key=lambda run: run.run_id)),
        harness_versions=tuple(sorted({record.harness_version for record in records})),
        data_revisions=tuple(sorted({record.data_revision for record in records if record.data_revision})),
    )
    for (task, tier, agent), fault in missing_repeats(form).items():
        raise SubmissionError(f"{task} {tier} {agent}: {fault}; all repeats of a cell are submitted together")
    return form


def _only(what: str, found: set[str]) -> Any:
    if len(found) > 1:
        shown = " and ".join(sorted(map(str, found)))
        raise SubmissionError(f"the runs have more than one {what} ({shown}); submit them apart")
    return found.pop()


def _submitted(made: Publication) -> SubmittedRun:
    record = made.record
    packed = [file.content for file in made.files if file.path_in_repo.startswith("outputs/")]
    return SubmittedRun(
        run_id=record.run_id,
        task=record.task,
        tier=record.tier,
        agent=record.agent,
        repeat=record.repeat,
        record_sha256=sha256(made.record_bytes).hexdigest(),
        outputs_sha256=_digest(packed[0]) if packed else None,
        limits=record.limits,
    )


def _digest(content: bytes | Path) -> str:
    return sha256(content).hexdigest() if isinstance(content, bytes) else sha256_file(content)
