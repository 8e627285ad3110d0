"""The published record of one run, and of each of its cases.

A ``RunRecord`` is flat: one row of a table, no NaN, times in UTC. Everything in it follows from the files of
the run folder, and it carries their digests, so that a number on the board can be recomputed and audited by itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AwareDatetime, Field, ValidationError

from evaluator.judge.spans import StageSpan
from evaluator.report import CaseStatus, Finite, TaskReport, Unit
from evaluator.trace import EndReason
from tasks.names import Network, Release, Tier, Track
from tasks.schema import Strict, first_problem

SCHEMA_VERSION = 1

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.\-]{0,199}$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.\-]{0,79}$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ItemScore(Strict):
    """One rubric item as it was scored; reason and evidence stand in ``judgement.json``."""

    id: str
    stage: Literal["S1", "S2", "S3"]
    value: Unit | None
    applies: bool
    agreement: Unit | None = Field(default=None, description="Share of the judge's votes that agree")


class RunLimits(Strict):
    """The limits in force; runs with different ones are never averaged together."""

    wall_seconds: Count
    call_seconds: Count
    turns: Count
    tokens: Count
    cost_usd: Finite | None
    memory_mb: Count
    disk_mb: Count
    pids: Count
    cpus: Finite


class RunRecord(Strict):
    """One run. Scores lie in [0, 1]; ``None`` is "unscored", which is never zero."""

    schema_version: Literal[1] = 1

    # identity
    run_id: RunId
    task: Name
    track: Track
    tier: Tier
    release: Release
    agent: Name
    model: str | None
    repeat: Count = Field(description="Which of the planned repeats this is")
    attempt: Annotated[int, Field(ge=1, lt=2**63)] = Field(
        description="Physical attempt; failed ones are kept beside"
    )

    # scores
    overall: Unit | None
    agentic: Unit | None
    task_score: Unit | None
    task_score_ungated: Unit | None
    skill: Finite | None
    s1: Unit | None
    s2: Unit | None
    s3: Unit | None
    s4: Unit | None
    s5: Unit | None
    items: tuple[ItemScore, ...]
    metric: str
    metric_set: str | None
    metrics: dict[str, Finite | None]
    n_cases: Count
    n_scored: Count
    completion: Unit | None

    # how it ended
    end_reason: EndReason
    end_detail: str
    error_codes: tuple[str, ...] = Field(
        description="E1..E5 with sub-type, such as 'E5.missing_files'; never scored"
    )

    # what it cost
    turns: Count
    tokens_in: Count
    tokens_out: Count
    tokens_cached: Count
    cost_usd: Finite | None
    price_source: str | None
    seconds_working: Seconds
    seconds_wall: Seconds
    stages: tuple[StageSpan, ...] = Field(default=(), description="S1..S5 in order, empty when unscored")

    # where it comes from
    started_at: AwareDatetime
    finished_at: AwareDatetime
    harness_version: str
    code_sha256: Sha256
    task_sha256: Sha256
    manifest_sha256: Sha256
    brief_sha256: Sha256
    sandbox: str
    network: Network
    agent_environment: str
    evaluator_environment: str | None
    judge: Literal["rules", "llm"] | None
    judge_model: str | None
    judge_sha256: str | None = Field(default=None, description="Of an LLM judge's settings and words")
    judge_same_family: bool | None = Field(
        default=None, description="The judge's model is of the agent's provider"
    )
    judge_votes: Count | None = None
    judge_alpha: Finite | None = Field(default=None, description="Krippendorff's alpha of the judge's votes")
    judge_tokens: Count | None = None
    judge_cost_usd: Finite | None = None
    rubric_sha256: str | None
    evidence_sha256: str | None = Field(default=None, description="Of what the judge was shown")
    limits: RunLimits
    cpu_count: Count
    memory_mb: Count
    gpus: tuple[str, ...]
    hardware_class: str

    # what proves it
    data_revision: str | None = Field(
        default=None, description="Commit of the release's dataset repository that the data came from"
    )
    policy_warnings: Count = Field(default=0, description="Confirmed breaches that the agent was warned of")
    flags: tuple[str, ...] = Field(
        default=(), description="Signs of contamination, such as 'reference_copy'; evidence, never a verdict"
    )
    downloads: Count = Field(default=0, description="Requests that left the sandbox through the proxy")
    downloaded_bytes: Count = 0
    cell_sha256: Sha256
    trace_sha256: Sha256
    downloads_sha256: Sha256 | None = Field(default=None, description="Of the log of those requests")
    submission_sha256: Sha256 | None
    report_sha256: Sha256 | None
    judgement_sha256: Sha256 | None
    supersedes: Sha256 | None = Field(
        default=None, description="Digest of the record this one corrects (regrade, rejudge)"
    )


class CaseRecord(Strict):
    """One case of a run, for tables over cases."""

    schema_version: Literal[1] = 1
    run_id: RunId
    task: Name
    case_id: str
    status: CaseStatus
    score: Unit
    error_code: str | None
    metrics: dict[str, Finite | None]
    flags: tuple[str, ...]


class RunStatus(Strict):
    """``status/<run_id>.json``: what became of verifying one record. Without one a record is ``self-reported``."""

    schema_version: Literal[1] = 1
    run_id: RunId
    record_sha256: Sha256 = Field(description="The record that was verified; a correction starts anew")
    status: Annotated[str, Field(pattern=r"^(self-reported|re-scored|rejected: [^\n]{1,300})$")]
    checked_at: AwareDatetime
    checks: dict[str, str] = Field(default={}, description="Check -> what it found")


class RecordError(Exception):
    """A record file cannot be read; one line that names the file and the field."""


def dump_record(record: RunRecord) -> str:
    """Canonical JSON text: sorted keys, no NaN, one trailing newline."""
    return (
        json.dumps(
            record.model_dump(mode="json"), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False
        )
        + "\n"
    )


def load_record(path: Path) -> RunRecord:
    """Read one ``record.json``.

    Raises
    ------
    RecordError
        The file is absent, truncated, of another schema version, or breaks the schema.
    """
    try:
        return parse_record(path.read_bytes(), str(path))
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None


def parse_record(text: str | bytes, where: str) -> RunRecord:
    """The record in a JSON text; ``where`` names it in the error.

    Raises
    ------
    RecordError
        It is truncated, of another schema version, or breaks the schema.
    """
    return _parse(RunRecord, text, where)


def parse_case(text: str | bytes, where: str) -> CaseRecord:
    """The case in a JSON text; errors as in `parse_record`."""
    return _parse(CaseRecord, text, where)


def case_records(record: RunRecord, report: TaskReport) -> tuple[CaseRecord, ...]:
    """The cases of a run as they are published, in the order of its report."""
    return tuple(
        CaseRecord(
            run_id=record.run_id,
            task=record.task,
            case_id=case.case_id,
            status=case.status,
            score=case.score,
            error_code=case.error.code if case.error else None,
            metrics=case.metrics,
            flags=case.flags,
        )
        for case in report.cases
    )


Form = TypeVar("Form", bound=Strict)


def _parse(form: type[Form], text: str | bytes, where: str) -> Form:
    try:
        return form.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"] == ("schema_version",):
            version = ascii(first["input"])[:40]
            raise RecordError(
                f"{where}: schema version {version}; this program reads version {SCHEMA_VERSION}, update it"
            ) from None
        raise RecordError(f"{where}: {first_problem(error, 'record')}") from None
