"""What the seven tracks have in common: the case they are asked about and the answers they give.

A track never opens a file twice: ``check`` reads and validates an output, ``score`` measures exactly what
``check`` returned. Both run in a child process, one case at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import Field

from evaluator.readers.errors import ReadError
from evaluator.report import CaseResult, Finite, Unit
from evaluator.submission import expected_file
from evaluator.untrusted import Refused
from tasks.manifest import Manifest
from tasks.schema import Strict, Task

Parsed = TypeVar("Parsed")
MISSING = "missing"


class CaseFault(Exception):
    """An output that cannot be scored. ``code`` is a stable name; ``missing``: nothing is there."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ReferenceMissing(Exception):
    """A staged file is absent or cannot be used: the machine's fault, never the submission's."""


@dataclass(frozen=True)
class CaseFiles:
    """One case and where its three sides lie.

    ``refused`` holds what a collector had to leave behind, by file name. ``public`` and ``references`` are
    None where the caller has none (a format check needs no references).
    """

    id: str
    submission: Path
    public: Path | None
    references: Path | None
    refused: Mapping[str, CaseFault] = field(default_factory=dict)

    def output(self, name: str) -> Path:
        """A file of the submission that is safe to open. Raises :class:`CaseFault`."""
        try:
            return expected_file(self.submission, self.id, name)
        except Refused as refused:
            if refused.code == MISSING and name in self.refused:
                raise self.refused[name] from None
            raise CaseFault(refused.code, f"{name}: {refused.message}") from None

    def has_any(self, names: Sequence[str]) -> bool:
        """Whether the agent left anything under one of these names, good or bad."""
        refused = any(self.refused[name].code != MISSING for name in names if name in self.refused)
        return refused or any(os.path.lexists(self.submission / self.id / name) for name in names)

    def reference(self, name: str) -> Path:
        """A reference file. Raises :class:`ReferenceMissing`."""
        return self._staged(self.references, "references", name)

    def input(self, name: str) -> Path:
        """A public input. Raises :class:`ReferenceMissing`."""
        return self._staged(self.public, "public data", name)

    def _staged(self, root: Path | None, what: str, name: str) -> Path:
        if root is None:
            raise ReferenceMissing(f"case {self.id}: {name} is needed, but no folder of {what} was given")
        path = root / self.id / name
        if not path.is_file():
            raise ReferenceMissing(
                f"case {self.id}: expected {path} in the {what}, found none; stage the task again"
            )
        return path


class Outcome(Strict):
    """What one case counts. ``evidence`` is what ``aggregate`` needs beyond that; no report shows it."""

    score: Unit
    metrics: Mapping[str, Finite | None] = Field(default={})
    flags: tuple[str, ...] = ()
    evidence: Any = None


@dataclass(frozen=True)
class Finished:
    """A case as ``aggregate`` sees it: its line of the report, and the evidence."""

    result: CaseResult
    evidence: Any


@dataclass(frozen=True)
class Summary:
    """The whole submission.

    ``metric_set`` names the components that the headline used, ``libraries`` what they rest on beyond the usual ones.
    """

    score: float
    aggregates: Mapping[str, float | None]
    metric_set: str = "default"
    unavailable: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()


class Track(Protocol[Parsed]):
    """One kind of task. An instance belongs to one task and keeps no state of a case."""

    task: Task

    def prepare(self) -> None:
        """Load what all cases need for scoring, once, in the process that their children are forked from."""

    def expected(self, task: Task, manifest: Manifest) -> dict[str, tuple[str, ...]]:
        """File names that each case of the manifest must have."""

    def check(self, case: CaseFiles) -> Parsed:
        """Read and validate the outputs without references. Raises :class:`CaseFault`."""

    def score(self, case: CaseFiles, output: Parsed | None) -> Outcome:
        """Measure a valid output; without one (None), what a case without output counts."""

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        """The headline and its companions over all cases of the manifest."""

    def preview(self, case: CaseFiles, output: Parsed) -> bytes | None:
        """A small WebP picture of the output over the public input, or None if there is nothing to draw.

        It shows references where the case says where they lie: who may not show them leaves that out.
        """


class FilePerCase:
    """What most tracks do alike: the same file names in every case, and nothing to load."""

    def prepare(self) -> None:
        return

    def expected(self, task: Task, manifest: Manifest) -> dict[str, tuple[str, ...]]:
        return {case_id: task.output.filenames for case_id in manifest.case_ids()}


@contextmanager
def untrusted() -> Iterator[None]:
    """What a reader refuses in here is the submission's fault."""
    try:
        yield
    except ReadError as error:
        raise CaseFault(error.code, error.message) from None


@contextmanager
def staged(case: CaseFiles) -> Iterator[None]:
    """What goes wrong in here with a staged file is the machine's fault."""
    try:
        yield
    except (MemoryError, ReferenceMissing):
        raise
    except Exception as error:  # libraries raise many kinds for a file that is none
        text = " ".join(str(error).split())
        raise ReferenceMissing(
            f"case {case.id}: a staged file cannot be used ({text}); stage the task again"
        ) from None


def mean(values: Sequence[float]) -> float | None:
    """Mean that does not depend on the order of its values; None of nothing."""
    return fsum(values) / len(values) if values else None


def mean_of(cases: Sequence[Finished], name: str) -> float | None:
    """Mean of one metric over the cases in which it is defined."""
    values = (case.result.metrics.get(name) for case in cases)
    return mean([value for value in values if value is not None])


def headline(cases: Sequence[Finished]) -> float:
    """Mean of the cases' scores over the whole manifest."""
    return mean([case.result.score for case in cases]) or 0.0
