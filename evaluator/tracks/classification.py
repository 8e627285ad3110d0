"""Classification: one class per case, optionally with a probability per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.metrics.classification import accuracy, auroc_macro, balanced_accuracy, macro_f1
from evaluator.readers.json_file import read_json
from evaluator.tracks.base import (
    CaseFault,
    CaseFiles,
    FilePerCase,
    Finished,
    Outcome,
    ReferenceMissing,
    Summary,
    staged,
    untrusted,
)
from tasks.schema import LabelOutput, Task

LABEL, PROBABILITIES = "label", "probabilities"
BALANCED = "balanced_accuracy"


@dataclass(frozen=True)
class ClassAnswer:
    """The chosen class and, where given, a probability for each of the task's classes."""

    label: str
    probabilities: tuple[float, ...] | None


class ClassificationTrack(FilePerCase):
    """Class names are compared without regard to case."""

    def __init__(self, task: Task) -> None:
        if not isinstance(task.output, LabelOutput):
            raise TypeError(f"task {task.id} delivers {task.output.kind}, expected label")
        self.task = task
        self.output = task.output
        self._classes = {name.casefold(): name for name in task.output.classes}

    def check(self, case: CaseFiles) -> ClassAnswer:
        path = case.output(self.output.file)
        with untrusted():
            content = read_json(path)
        if not isinstance(content, dict):
            raise CaseFault("wrong_type", f"{path.name} holds a {type(content).__name__}, expected an object")
        label = self._class_named(content.get(LABEL), path.name)
        return ClassAnswer(label, self._probabilities(content.get(PROBABILITIES), path.name))

    def _class_named(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or value.strip().casefold() not in self._classes:
            raise CaseFault(
                "unknown_class", f"{where}: {value!r:.60} is none of {', '.join(self.output.classes)}"
            )
        return self._classes[value.strip().casefold()]

    def _probabilities(self, value: Any, where: str) -> tuple[float, ...] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise CaseFault("wrong_type", f"{where}: {PROBABILITIES} must be an object of class to number")
        by_name = {self._class_named(name, where): number for name, number in value.items()}
        if len(by_name) < len(value):
            raise CaseFault("bad_probability", f"{where}: a class is named twice")
        numbers = tuple(_probability(by_name.get(name), where) for name in self.output.classes)
        total = sum(numbers)
        if abs(total - 1.0) > 1e-3:
            raise CaseFault("bad_probability", f"{where}: they add up to {total:g}, expected 1")
        return tuple(number / total for number in numbers)

    def score(self, case: CaseFiles, output: ClassAnswer | None) -> Outcome:
        with staged(case):
            value = read_json(case.reference(self.task.references[0]))[LABEL]
        try:
            expected = self._class_named(value, self.task.references[0])
        except CaseFault as fault:
            raise ReferenceMissing(f"case {case.id}: {fault.message}; stage the task again") from None
        correct = float(output is not None and output.label == expected)
        evidence = {
            "expected": expected,
            "found": output.label if output else None,
            PROBABILITIES: output.probabilities if output else None,
        }
        return Outcome(score=correct, metrics={"accuracy": correct}, evidence=evidence)

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        expected = [case.evidence["expected"] for case in cases]
        found = [case.evidence["found"] for case in cases]
        rows = [case.evidence[PROBABILITIES] for case in cases]
        values = {
            "accuracy": accuracy(expected, found),
            BALANCED: balanced_accuracy(expected, found),
            "macro_f1": macro_f1(expected, found, self.output.classes),
            "auroc_macro": auroc_macro(expected, rows, self.output.classes) if all(rows) else None,
        }
        score = values[BALANCED] if self.task.metric.headline == BALANCED else values["accuracy"]
        return Summary(score or 0.0, values)

    def preview(self, case: CaseFiles, output: ClassAnswer) -> bytes | None:  # noqa: ARG002 - a class is a word
        return None


def _probability(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise CaseFault("bad_probability", f"{where}: expected a number from 0 to 1 for each class")
    return float(value)
