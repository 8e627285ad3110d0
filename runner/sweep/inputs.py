"""What a cell's result depends on, as digests, and what has to be done again when some of them changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Decision = Literal["reuse", "rejudge", "regrade", "run"]

GRADING = ("task_sha256", "evaluator_environment", "code_grade")
JUDGING = ("judge_sha256", "code_judge")


@dataclass(frozen=True)
class Inputs:
    """Digests that were locked for one cell.

    ``settings_sha256`` is over release, limits, network and sandbox; ``agent_sha256`` over the agent's profile;
    ``judge_sha256`` over the judge's settings and words. The code has three parts: what runs an agent, what grades,
    what judges.
    """

    brief_sha256: str
    manifest_sha256: str
    agent_sha256: str
    agent_environment: str
    settings_sha256: str
    code_run: str
    task_sha256: str
    evaluator_environment: str
    code_grade: str
    judge_sha256: str
    code_judge: str

    def changed(self, before: Inputs) -> tuple[str, ...]:
        """Names of the digests that differ."""
        old = asdict(before)
        return tuple(name for name, value in asdict(self).items() if old[name] != value)


def decide(now: Inputs, before: Inputs | None) -> Decision:
    """What a cell with a sealed record of ``before`` needs to stand for ``now``; without one it has to run."""
    if before is None:
        return "run"
    changed = set(now.changed(before))
    if changed - {*GRADING, *JUDGING}:
        return "run"
    if changed & set(GRADING):
        return "regrade"
    return "rejudge" if changed else "reuse"
