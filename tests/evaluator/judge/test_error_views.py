"""Figures over the codes of many runs, worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from evaluator.error_views import view_errors, view_errors_by


@dataclass
class Run:
    error_codes: tuple[str, ...]
    overall: float | None = 0.5
    completion: float | None = 1.0
    agent: str = "a"


RUNS = [
    Run((), 0.9),
    Run(("E3.validation_skipped",), 0.7),
    Run(("E1.misread_task", "E5.missing_files"), 0.1, 0.0),
    Run(("E2.load", "E2.path", "E4.crash"), 0.5, 1.0, "b"),
    Run(("E2.load", "E3.repeated_failure", "E5.missing_files"), None, 0.0, "b"),
]


def test_figures():
    view = view_errors(RUNS)
    assert view.runs == 5
    assert view.shares == pytest.approx({"E1": 1 / 8, "E2": 2 / 8, "E3": 2 / 8, "E4": 1 / 8, "E5": 2 / 8})
    assert sum(view.shares.values()) == pytest.approx(1)
    assert view.overall_by_count == pytest.approx({0: 0.9, 1: 0.7, 2: 0.3})
    assert view.recovery_rate == pytest.approx(1 / 3)
    assert view.engineering_to_knowledge == 7
    assert view.subtypes["E2.load"] == 2


def test_by_group():
    views = view_errors_by(RUNS, lambda run: run.agent)
    assert {name: view.runs for name, view in views.items()} == {"a": 3, "b": 2}
    assert views["b"].engineering_to_knowledge is None
    assert views["b"].recovery_rate == 0.5


def test_nothing():
    view = view_errors([])
    assert (view.runs, view.recovery_rate, view.engineering_to_knowledge, view.overall_by_count) == (
        0,
        None,
        None,
        {},
    )
    assert set(view.shares.values()) == {0.0}
