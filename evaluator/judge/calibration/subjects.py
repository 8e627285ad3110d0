"""The assignments that the scripted agents work on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from pydantic import PositiveInt

from evaluator.judge.material import Assignment
from tasks.schema import Strict, Tier, Track

CASES = tuple(f"case-{number:02d}" for number in range(10))


class Subject(Strict):
    """One assignment, with the words of a good and of a wrong plan, and what looks at a pilot print."""

    title: str
    modality: str
    unit: str
    files: tuple[str, ...]
    wanted: str
    shape: tuple[PositiveInt, ...]
    read: str
    method: str
    candidates: tuple[str, str, str]
    finish: str
    check: str
    wrong: str
    inspected: str
    glanced: str

    def assignment(self, track: Track, tier: Tier) -> Assignment:
        methods = self.candidates[:1] if tier is Tier.LITE else self.candidates
        return Assignment(
            track=track,
            tier=tier,
            title=self.title,
            modality=self.modality,
            unit=self.unit,
            wanted=self.wanted,
            methods=methods,
            expected_files=self.files,
            cases=len(CASES),
        )

    def plan(self, method: str, candidates: tuple[str, ...] = ()) -> str:
        """A plan with a clear pipeline around ``method``, and a comparison of ``candidates`` if there are any."""
        compared = "".join(
            f"- {name}: {note}\n"
            for name, note in zip(candidates, ("most exact", "no weights", "fallback"), strict=False)
        )
        looked_at = (
            f"## Candidates looked into\n{compared}Chosen: {candidates[0]}, as it fits best.\n\n"
            if compared
            else ""
        )
        return (
            f"# Plan: {self.title}\n\n{looked_at}## Pipeline\n1. Read {self.read}.\n2. Run {method}.\n"
            f"3. Then {self.finish}.\n4. Check: {self.check}.\n5. Pilot on one case first, then all "
            f"{len(CASES)} cases.\n\nWritten for each case: {', '.join(self.files)}.\n"
        )


class _File(Strict):
    subjects: dict[Track, Subject]


@cache
def subjects() -> dict[Track, Subject]:
    """One subject a track."""
    text = (Path(__file__).parent / "subjects.yaml").read_text(encoding="utf-8")
    return _File.model_validate(yaml.safe_load(text)).subjects
