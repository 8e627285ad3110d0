"""An error code that fired, and the list of those that exist."""

from __future__ import annotations

from typing import Literal

from tasks.schema import Strict

ErrorCode = Literal["E1", "E2", "E3", "E4", "E5"]
Stage = Literal["S1", "S2", "S3", "S4", "S5"]

TITLES: dict[ErrorCode, str] = {
    "E1": "Understanding",
    "E2": "Data and model setup",
    "E3": "Verification and recovery",
    "E4": "Implementation and execution",
    "E5": "Deliverable and submission",
}

SUBTYPES: dict[str, tuple[ErrorCode, Stage]] = {
    "wrong_artifact": ("E1", "S1"),
    "dependency": ("E2", "S2"),
    "load": ("E2", "S2"),
    "path": ("E2", "S2"),
    "validation_skipped": ("E3", "S3"),
    "repeated_failure": ("E3", "S4"),
    "refusal_ignored": ("E3", "S5"),
    "copied_input": ("E3", "S3"),
    "identical_answers": ("E3", "S3"),
    "empty_output": ("E3", "S3"),
    "out_of_bounds": ("E3", "S3"),
    "crash": ("E4", "S4"),
    "shape_or_type": ("E4", "S4"),
    "out_of_resources": ("E4", "S4"),
    "limit_reached": ("E4", "S4"),
    "malformed_calls": ("E4", "S4"),
    "missing_files": ("E5", "S5"),
    "incomplete_coverage": ("E5", "S5"),
    "malformed_files": ("E5", "S5"),
    "misplaced_files": ("E5", "S5"),
}
"""Every sub-type that a rule can see, with its code and the stage in which it shows."""

READ_SUBTYPES: dict[str, tuple[ErrorCode, Stage, str]] = {
    "hallucinated_requirement": (
        "E1",
        "S1",
        "the plan follows a requirement that the assignment does not state",
    ),
    "wrong_model_type": (
        "E1",
        "S1",
        "a kind of method was used that cannot give the outputs that were asked for",
    ),
    "misread_task": ("E1", "S1", "another problem was worked on than the one that was asked"),
    "ignored_bad_output": (
        "E3",
        "S3",
        "a printed result was plainly bad, and the work went on as if it were good",
    ),
    "ignored_warning": (
        "E3",
        "S4",
        "a printed warning or error told of a fault, and nothing was done about it",
    ),
    "preprocessing_bug": (
        "E4",
        "S4",
        "inputs were read, resampled or normalised in a way that is plainly wrong",
    ),
}
"""Sub-types that take a reader, with what they mean."""


class FiredCode(Strict):
    """One code. ``events`` are the trace events it rests on; none where it rests on the report."""

    code: ErrorCode
    subtype: str
    stage: Stage
    reason: str
    events: tuple[int, ...] = ()
    found_by: Literal["rules", "llm"] = "rules"

    @property
    def name(self) -> str:
        """As in a record: ``E5.missing_files``."""
        return f"{self.code}.{self.subtype}"
