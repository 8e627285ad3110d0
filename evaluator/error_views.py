"""What the error codes of many runs say: shares, scores by number of codes, recovery, engineering against knowledge.

E1 (understanding) is a lack of knowledge; E2 to E5 are lacks of engineering.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Protocol, TypeVar

from evaluator.fired import TITLES, ErrorCode

KNOWLEDGE: ErrorCode = "E1"
MANY = 2
"""From this many different codes on, a run had something to recover from."""


class Coded(Protocol):
    """What is needed of a run's record."""

    @property
    def error_codes(self) -> Sequence[str]: ...
    @property
    def overall(self) -> float | None: ...
    @property
    def completion(self) -> float | None: ...


@dataclass(frozen=True)
class ErrorView:
    """Figures over a group of runs.

    ``shares``: of all codes that fired (each counted once a run), the share of each; zeros when none fired.
    ``overall_by_count``: mean OVERALL in [0, 1] of the scored runs with so many different codes. ``recovery_rate``: of
    the runs with at least two codes, the share that still delivered every case; None without such a run.
    ``engineering_to_knowledge``: firings of E2-E5 for one of E1; None where E1 never fired.
    """

    runs: int
    shares: Mapping[ErrorCode, float]
    subtypes: Mapping[str, int]
    overall_by_count: Mapping[int, float]
    recovery_rate: float | None
    engineering_to_knowledge: float | None


def view_errors(runs: Iterable[Coded]) -> ErrorView:
    """Figures over all given runs."""
    runs = list(runs)
    fired = Counter(code for run in runs for code in codes_of(run))
    total = fired.total()
    knowledge = fired[KNOWLEDGE]
    return ErrorView(
        runs=len(runs),
        shares={code: fired[code] / total if total else 0.0 for code in TITLES},
        subtypes=dict(sorted(Counter(name for run in runs for name in set(run.error_codes)).items())),
        overall_by_count=_overall_by_count(runs),
        recovery_rate=_recovery_rate(runs),
        engineering_to_knowledge=(total - knowledge) / knowledge if knowledge else None,
    )


R = TypeVar("R", bound=Coded)
K = TypeVar("K")


def view_errors_by(runs: Iterable[R], key: Callable[[R], K]) -> dict[K, ErrorView]:
    """Figures of each group, such as ``key=lambda run: (run.track, run.agent)``."""
    groups: dict[K, list[R]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return {name: view_errors(group) for name, group in groups.items()}


def codes_of(run: Coded) -> frozenset[ErrorCode]:
    """The different codes of a run, sub-types left aside."""
    fired = {name.split(".")[0] for name in run.error_codes}
    return frozenset(code for code in TITLES if code in fired)


def _overall_by_count(runs: Iterable[Coded]) -> dict[int, float]:
    scores: dict[int, list[float]] = {}
    for run in runs:
        if run.overall is not None:
            scores.setdefault(len(codes_of(run)), []).append(run.overall)
    return {count: fsum(values) / len(values) for count, values in sorted(scores.items())}


def _recovery_rate(runs: Iterable[Coded]) -> float | None:
    troubled = [run for run in runs if len(codes_of(run)) >= MANY]
    return sum(run.completion == 1 for run in troubled) / len(troubled) if troubled else None
