"""The columns of a board: name, unit and definition, the same on the page, in downloads and in the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.names import Track
from tasks.scoring import STAGE_NAMES, STAGE_WEIGHTS

Kind = Literal["rank", "agent", "text", "score", "share", "usd", "number", "coverage", "badges"]


@dataclass(frozen=True)
class Column:
    """``key``: in frames, downloads and the API. ``title`` and ``text``: as people read it, the text on hover.

    ``better``: which way a first click sorts.
    """

    key: str
    title: str
    kind: Kind
    text: str
    better: Literal["high", "low"] = "high"
    optional: bool = True

    @property
    def is_number(self) -> bool:
        return self.kind not in ("agent", "text", "badges")


_STAGE_TEXTS = {
    "S1": "a feasible method, planned and written down before any case",
    "S2": "weights, packages and inputs made ready and checked",
    "S3": "one pilot case before the batch, its output looked at",
    "S4": "half the share of cases delivered and valid, half whether all are",
    "S5": "half whether a case scored above zero, half whether the format is valid",
}
_TRACK_TITLES = {
    Track.SEGMENTATION: "Seg", Track.ENHANCEMENT: "Enh", Track.VQA: "VQA", Track.REPORT: "Report",
    Track.DETECTION: "Det", Track.CLASSIFICATION: "Cls", Track.SYNTHESIS: "Syn",
}  # fmt: skip

BEFORE = (
    Column("rank", "#", "rank", "1 + the number of agents that are better beyond chance: paired permutation test over "
           "cells, Holm-adjusted, 5 %. Agents of one rank are tied.", "low", optional=False),
    Column("agent", "Agent", "agent", "Name of the agent's profile; opens its runs", optional=False),
)  # fmt: skip
SCORES = (
    Column("overall", "OVERALL", "score", "(AGENTIC + TASK) / 2, x100, run-weighted mean over all planned cells; ± is "
           "half the 95 % bootstrap interval"),
    Column("agentic", "AGENTIC", "score", "How the work was done, x100: " + " + ".join(
        f"{weight:g} {stage}" for stage, weight in STAGE_WEIGHTS.items())),
    Column("task_score", "TASK", "score", "What was delivered, x100: the task's headline metric, missing cases 0"),
)  # fmt: skip
STAGES = tuple(
    Column(stage.lower(), stage, "score", f"{stage} {STAGE_NAMES[stage]}, x100: {_STAGE_TEXTS[stage]}")
    for stage in STAGE_NAMES
)
TRACKS = tuple(
    Column(f"track_{track.value}", _TRACK_TITLES[track], "score", f"OVERALL on the {track.value} track, x100")
    for track in Track
)
COSTS = (
    Column("cost_usd", "USD", "usd", "US dollars a run, mean; a dash while a run has no known price", "low"),
    Column("turns", "Turns", "number", "Replies of the model a run, mean", "low"),
    Column(
        "minutes", "Min", "number", "Working minutes a run, waiting for the provider left out, mean", "low"
    ),
    Column("tokens", "Tokens", "number", "Tokens read and written a run, mean", "low"),
    Column(
        "failure_rate", "Failed %", "share", "Share of runs without every case delivered and valid", "low"
    ),
)
AFTER = (
    Column(
        "coverage", "Runs", "coverage", "Runs with a score / planned (repeats x tiers x tasks of this board)"
    ),
    Column("model", "Model", "text", "The agent's model as its provider calls it"),
    Column("badges", "Badges", "badges", "Who judged, who checked, on which hardware, on which release"),
)
COLUMNS: Sequence[Column] = (*BEFORE, *SCORES, *STAGES, *TRACKS, *COSTS, *AFTER)
BY_KEY = {column.key: column for column in COLUMNS}
OPTIONAL = tuple(column for column in COLUMNS if column.optional)
HIDDEN_AT_FIRST = ("tokens",)

EXPORTED = (
    "rank", "agent", "model", "overall", "overall_low", "overall_high", *(column.key for column in SCORES[1:]),
    *(column.key for column in STAGES), *(column.key for column in TRACKS), *(column.key for column in COSTS),
    "n_present", "n_planned", "n_unjudged", "n_empty", "mean_present", "status", "board",
)  # fmt: skip
"""Columns of a downloaded board, in order; scores in [0, 1]."""


def track_title(track: str) -> str:
    """A track's short name."""
    return _TRACK_TITLES[Track(track)]
