"""How a run is scored: the published weights and rubric items that brief, evaluator and Space all read.

OVERALL = 0.5 AGENTIC + 0.5 TASK, and AGENTIC is the weighted sum of the five stages. S1 and S2 are means of
yes/no items, S3 is a level, S4 and S5 are computed. Nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

STAGE_NAMES: Mapping[str, str] = MappingProxyType(
    {"S1": "Plan", "S2": "Setup", "S3": "Validate", "S4": "Inference", "S5": "Submit"}
)
STAGE_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"S1": 0.25, "S2": 0.15, "S3": 0.35, "S4": 0.15, "S5": 0.10}
)
"""Shares of the stages in AGENTIC."""

AGENTIC_SHARE = 0.5
TASK_SHARE = 0.5
"""Shares of OVERALL."""

S4_COMPLETION_SHARE = 0.5
S4_VALID_SHARE = 0.5
S5_POSITIVE_SHARE = 0.5
S5_VALID_SHARE = 0.5


@dataclass(frozen=True)
class Item:
    """A yes/no item of S1 or S2.

    ``needs``: id of the item without which this one is 0. ``lite_credit``: given in the Lite tier as soon as
    plan.md exists. ``weights_only``: left out of the mean where the method has no weights (a classical one).
    """

    id: str
    text: str
    needs: str | None = None
    lite_credit: bool = False
    weights_only: bool = False


@dataclass(frozen=True)
class Level:
    """A level of S3 and what reaches it."""

    value: float
    text: str


_METHOD = {
    "segmentation": "The chosen method covers every target of the task, lesions included.",
    "enhancement": "The chosen method is a real restoration method, not a copy or plain interpolation.",
    "vqa": "The chosen method is a model that sees the image, not the question alone.",
    "report": "The plan names the method's entry point and uses every image of the study.",
    "detection": "The chosen method is a detector that gives boxes, not an image classifier.",
    "classification": "The chosen method gives one of the task's classes from the image itself.",
    "synthesis": "The chosen method maps the source image to the target modality, not a copy of the input.",
}

_INSPECTION = {
    "segmentation": "shape, grid, label values and voxel count of every target",
    "vqa": "the parsed answer against the raw output of the model",
    "report": "the text, read, and the use of every image of the study",
    "detection": "coordinates, classes and scores against the image",
    "classification": "the parsed label and its score",
    "synthesis": "shape, value range and a quality check",
}


def s1_items(track: str) -> tuple[Item, ...]:
    """The six items of S1 for a track."""
    return (
        Item(
            "plan_exists",
            "`plan.md` exists, a text of at least 100 characters, written before the first case is complete.",
        ),
        Item(
            "plan_pipeline",
            "The plan lays out a clear pipeline, from input to delivered file.",
            "plan_exists",
        ),
        Item("plan_method", _METHOD[track], "plan_exists"),
        Item("plan_candidates", "At least three candidate methods were researched.", lite_credit=True),
        Item(
            "plan_picture",
            "`plan.png` exists, a PNG of at least 64 x 64 pixels that is not of one colour.",
            lite_credit=True,
        ),
        Item("plan_picture_pipeline", "The picture shows the pipeline.", "plan_picture", lite_credit=True),
    )


S2_ITEMS = (
    Item("weights_obtained", "The weights of the method were obtained.", weights_only=True),
    Item(
        "input_checked",
        "The inputs were checked against what the method expects (shape, spacing, type, range).",
    ),
    Item(
        "environment_ready",
        "The environment was set up, shown by a command that succeeded before the first case.",
    ),
    Item(
        "failures_fixed",
        "Commands that failed before the first case were put right within five attempts, or none failed.",
    ),
    Item(
        "model_loaded",
        "The model was loaded on the GPU (on a machine without one: loaded, and one forward pass succeeded).",
        weights_only=True,
    ),
)
"""The five items of S2. All are 0 when nothing was executed."""


def s3_levels(track: str) -> tuple[Level, ...]:
    """The levels of S3 for a track, best first."""
    if track == "enhancement":
        return (
            Level(
                1.0,
                "one pilot case end to end before the batch; shape, value range and a quality check",
            ),
            Level(0.5, "pilot with shape and value range checked"),
            Level(0.2, "only the shape checked"),
            Level(0.0, "no pilot, or the batch first"),
        )
    return (
        Level(1.0, f"one pilot case end to end before the batch, its output inspected: {_INSPECTION[track]}"),
        Level(0.5, "part of it"),
        Level(0.0, "no pilot, or the batch first"),
    )
