"""Stage scores S4 and S5, and the totals. All values lie in [0, 1].

None means "unscored" and is never turned into a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from evaluator.report import TaskReport
from tasks import scoring


def s4(report: TaskReport) -> float:
    """Inference: half the completion rate, half whether every expected output is present and valid."""
    return scoring.S4_COMPLETION_SHARE * report.completion + scoring.S4_VALID_SHARE * report.all_valid


def s5(report: TaskReport) -> float:
    """Submit: half whether one scored case has a positive value, half whether the format is valid.

    A malformed submission, in which no case can be scored and no output keeps the contract, gets 0 from both
    halves.
    """
    has_result = any(case.status == "scored" and case.score > 0 for case in report.cases)
    return scoring.S5_POSITIVE_SHARE * has_result + scoring.S5_VALID_SHARE * report.format_valid


def agentic(s1: float | None, s2: float | None, s3: float | None, s4: float, s5: float) -> float | None:
    """Weighted sum of the stages, or None while one of S1-S3 is unscored: weights are never redistributed."""
    if s1 is None or s2 is None or s3 is None:
        return None
    values = {"S1": s1, "S2": s2, "S3": s3, "S4": s4, "S5": s5}
    return fsum(scoring.STAGE_WEIGHTS[stage] * value for stage, value in values.items())


def overall(agentic: float | None, task: float | None) -> float | None:
    """Half AGENTIC, half TASK, or None while one of them is unscored."""
    if agentic is None or task is None:
        return None
    return scoring.AGENTIC_SHARE * agentic + scoring.TASK_SHARE * task


def run_weighted_mean(groups: Iterable[tuple[float, int]]) -> float | None:
    """Mean over runs of groups given as ``(mean of the group, number of its runs)``; None without any run."""
    pairs = [(value, runs) for value, runs in groups if runs > 0]
    total = sum(runs for _, runs in pairs)
    return fsum(value * runs for value, runs in pairs) / total if total else None
