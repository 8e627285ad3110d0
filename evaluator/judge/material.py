"""Everything of a run that a judge may look at. Who the agent is, how it scored and what the references are is
not in it, and so cannot be given away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from evaluator.judge.evidence import Evidence, evidence_of
from evaluator.judge.inputs import Shape
from evaluator.submission import SubmissionManifest, load_submission_manifest, process_folder
from evaluator.trace import Event, RunStarted
from tasks.schema import (
    AnswerOutput,
    BoxOutput,
    ImageOutput,
    LabelOutput,
    MaskOutput,
    Output,
    ReportOutput,
    Task,
    Tier,
    Track,
)


@dataclass(frozen=True)
class Assignment:
    """What was asked of the agent, in the words of the harness."""

    track: Track
    tier: Tier
    title: str
    modality: str
    unit: str
    wanted: str
    methods: tuple[str, ...]
    expected_files: tuple[str, ...]
    cases: int

    @classmethod
    def of(cls, task: Task, tier: Tier, cases: int) -> Assignment:
        named = {Tier.LITE: (task.tiers.lite.model,), Tier.STANDARD: task.tiers.standard.candidates}
        return cls(
            track=task.track,
            tier=tier,
            title=task.title,
            modality=task.modality,
            unit=task.unit,
            wanted=_wanted(task.output),
            methods=tuple(model.name for model in named.get(tier, ())),
            expected_files=task.output.filenames,
            cases=cases,
        )


def _wanted(output: Output) -> str:
    match output:
        case MaskOutput():
            labels = "; ".join(
                f"{file.name}: " + ", ".join(f"{label} = {what}" for label, what in file.labels.items())
                for file in output.files
            )
            return f"label maps on the grid of the input ({labels})"
        case ImageOutput():
            scale = "the shape" if output.scale == 1 else f"{output.scale} times the shape"
            low, high = output.data_range
            return f"an image of {scale} of {output.shape_of}, values {low:g} to {high:g} {output.unit}"
        case AnswerOutput():
            return "the letter of one option" if output.mode == "choice" else "a short answer in words"
        case ReportOutput():
            sections = f" with the sections {', '.join(output.sections)}" if output.sections else ""
            return f"a report in words{sections}"
        case BoxOutput():
            return f"boxes with class and score; classes: {', '.join(output.classes)}"
        case LabelOutput():
            return f"one class a case: {', '.join(output.classes)}"
    assert_never(output)


@dataclass(frozen=True)
class Material:
    """Trace, facts, the plan's collected files, and what was collected of the outputs.

    ``names`` are words that would tell who the agent is; they are taken out of everything that is shown.
    """

    assignment: Assignment
    events: tuple[Event, ...]
    evidence: Evidence
    plan_folder: Path
    collected: SubmissionManifest | None = None

    @property
    def names(self) -> tuple[str, ...]:
        start = next((event for event in self.events if isinstance(event, RunStarted)), None)
        if start is None:
            return ()
        model = start.model or ""
        named = {model, model.rpartition("/")[2], start.agent}
        return tuple(sorted((word for word in named if _tells(word)), key=len, reverse=True))


_MIN_NAME = 4


def _tells(word: str) -> bool:
    """Whether a word names somebody; ``baseline`` would be taken out of every sentence about baselines."""
    return len(word) >= _MIN_NAME and not word.isalpha()


def material_of(
    assignment: Assignment,
    events: Sequence[Event],
    submission: Path,
    input_shapes: Iterable[Shape] = (),
    *,
    gpus: Collection[str] = (),
) -> Material:
    """Material of a run from its trace and the collected ``submission`` folder.

    Parameters
    ----------
    input_shapes : iterable of tuple of int
        Shapes of the public inputs (``inputs.public_shapes``).
    gpus : collection of str
        GPUs that the agent's sandbox had.
    """
    plan_folder = process_folder(submission)
    evidence = evidence_of(
        events, plan_folder, assignment.expected_files, assignment.cases, input_shapes, gpu=bool(gpus)
    )
    return Material(assignment, tuple(events), evidence, plan_folder, load_submission_manifest(submission))
