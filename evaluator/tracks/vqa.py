"""Visual question answering: normalised exact match, or the option's letter in multiple choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluator.contamination import REFERENCE_COPY, same_text
from evaluator.metrics.answers import exact_match, option_letter, token_f1, yes_no
from evaluator.readers.json_file import read_json
from evaluator.tracks.base import (
    CaseFault,
    CaseFiles,
    FilePerCase,
    Finished,
    Outcome,
    ReferenceMissing,
    Summary,
    headline,
    mean_of,
    staged,
    untrusted,
)
from tasks.schema import AnswerOutput, Task

ID, ANSWER, LABEL = "question_id", "predicted_answer", "predicted_label"
OPEN_METRICS = ("exact_match_normalised", "token_f1", "em_f1_mean", "yes_no_accuracy", "open_exact_match")
CHOICE_METRICS = ("option_accuracy", "parse_rate")


class VqaTrack(FilePerCase):
    """A short answer to one question."""

    def __init__(self, task: Task) -> None:
        if not isinstance(task.output, AnswerOutput):
            raise TypeError(f"task {task.id} delivers {task.output.kind}, expected answer")
        self.task = task
        self.output = task.output

    def check(self, case: CaseFiles) -> str:
        path = case.output(self.output.file)
        with untrusted():
            content = read_json(path)
        if not isinstance(content, dict):
            raise CaseFault("wrong_type", f"{path.name} holds a {type(content).__name__}, expected an object")
        if content.get(ID, case.id) != case.id:
            raise CaseFault("wrong_case", f"{path.name} answers {content[ID]!r:.60}, expected {case.id!r}")
        answer = self._answer(content, path.name)
        if self.output.mode == "choice" and option_letter(answer, _options(case, self.task)) is None:
            raise CaseFault(
                "no_option_named", f"{path.name}: {answer!r:.60} names no option of this question"
            )
        return answer

    def _answer(self, content: dict[str, Any], name: str) -> str:
        key = LABEL if self.output.mode == "choice" else ANSWER
        answer = content.get(key)
        if answer in (None, ""):
            raise CaseFault("missing_key", f"{name} has no {key} with a text in it")
        if not isinstance(answer, str):
            raise CaseFault("wrong_type", f"{name}: the answer is a {type(answer).__name__}, expected a text")
        if not answer.strip():
            raise CaseFault("empty_answer", f"{name}: the answer is blank")
        return answer

    def score(self, case: CaseFiles, output: str | None) -> Outcome:
        with staged(case):
            reference = read_json(case.reference(self.task.references[0]))
            key = reference["answer"]
            closed = _is_closed(reference)
        if not isinstance(key, str) or not key.strip():
            raise ReferenceMissing(f"case {case.id}: the staged answer is empty; stage the task again")
        if self.output.mode == "choice":
            return self._score_choice(case, output, key)
        correct = output is not None and exact_match(output, key, closed=closed)
        overlap = 0.0 if output is None else 1.0 if correct else token_f1(output, key)
        metrics = {
            "exact_match_normalised": float(correct),
            "token_f1": overlap,
            "em_f1_mean": (correct + overlap) / 2.0,
            "yes_no_accuracy": float(correct) if closed else None,
            "open_exact_match": None if closed else float(correct),
        }
        flags = (REFERENCE_COPY,) * same_text(key, output or "")
        return Outcome(score=float(correct), metrics=metrics, flags=flags, evidence=_same(output))

    def _score_choice(self, case: CaseFiles, output: str | None, key: str) -> Outcome:
        chosen = None if output is None else option_letter(output, _options(case, self.task))
        correct = chosen is not None and chosen == key.strip().upper()
        metrics = {"option_accuracy": float(correct), "parse_rate": float(chosen is not None)}
        return Outcome(score=float(correct), metrics=metrics, evidence=chosen)

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        names = CHOICE_METRICS if self.output.mode == "choice" else OPEN_METRICS
        aggregates = {name: mean_of(cases, name) for name in names}
        given = [case.evidence for case in cases if case.evidence is not None]
        aggregates["distinct_answers"] = len(set(given)) / len(given) if given else None
        return Summary(headline(cases), aggregates)

    def preview(self, case: CaseFiles, output: str) -> bytes | None:  # noqa: ARG002 - an answer is text
        return None


def _same(answer: str | None) -> str | None:
    """An answer as it counts for telling whether two are the same."""
    return None if answer is None else " ".join(answer.casefold().split())


def _options(case: CaseFiles, task: Task) -> Any:
    """The options of this question: as the agent saw them, else as the reference repeats them."""
    with staged(case):
        if case.public is not None:
            return read_json(case.input("question.json"))["options"]
        return read_json(case.reference(task.references[0]))["options"]


def _is_closed(reference: Mapping[str, Any]) -> bool:
    """Whether the question asks for yes or no: the data set's own word, else what its key says."""
    stated = reference.get("answer_type")
    return (
        stated.strip().lower() == "closed"
        if isinstance(stated, str)
        else yes_no(reference["answer"]) is not None
    )
