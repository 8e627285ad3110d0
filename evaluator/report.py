"""``report.json``: what the evaluator says about one submission. Same input, same bytes."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from tasks.schema import Release, Strict, Track

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

CaseStatus = Literal["scored", "missing", "invalid", "limit"]
"""``scored``: parsed and measured. The others score 0 and carry an error."""


class CaseError(Strict):
    """Why a case scored 0. ``code`` is a stable snake_case name (``missing``, ``unreadable``, ``wrong_shape`` ...)."""

    code: str
    message: str


class CaseResult(Strict):
    """One case of the manifest.

    ``score`` is the headline value of this case where the headline is a mean of cases, and 0 for a case that did not
    count.
    Detection's headline is not a mean of cases; there ``score`` is the F1 at IoU 0.5 of that image, for display.
    """

    case_id: str
    status: CaseStatus
    score: Unit
    error: CaseError | None = None
    metrics: dict[str, Finite | None] = Field(default={})
    flags: tuple[str, ...] = ()


class TaskReport(Strict):
    """Scores of one submission against the manifest's whole case list."""

    schema_version: Literal[1] = 1
    task: str
    track: Track
    release: Release
    metric: str = Field(description="Name of the headline metric")
    metric_set: str = Field(description="Which set of components the headline used")
    unavailable: dict[str, str] = Field(default={}, description="Metric -> why it could not be computed here")
    task_score: Unit = Field(description="The published rule, completeness gate included")
    task_score_ungated: Unit
    skill: Finite | None = Field(
        default=None, description="(ungated - trivial) / (1 - trivial); None: no declared trivial"
    )
    n_cases: int
    n_scored: int
    completion: Unit = Field(description="Share of cases whose outputs are all present and valid")
    all_valid: bool = Field(description="Every expected output present and valid")
    format_valid: bool = Field(
        description="No output present that is unreadable or breaks the contract, and at least one present"
    )
    aggregates: dict[str, Finite | None] = Field(default={})
    flags: tuple[str, ...] = Field(
        default=(), description="Signs of contamination seen in any case; evidence, never a verdict"
    )
    cases: tuple[CaseResult, ...]
    manifest_sha256: str
    versions: dict[str, str] = Field(default={})


def dump_report(report: TaskReport) -> str:
    """Canonical JSON text: sorted keys, shortest float forms, one trailing newline."""
    return json.dumps(report.model_dump(mode="json"), sort_keys=True, indent=1, allow_nan=False) + "\n"
