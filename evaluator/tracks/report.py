"""Reports: a named set of text metrics, the first of the task's sets whose model weights are installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.contamination import REFERENCE_COPY, same_text
from evaluator.metrics import mlrg
from evaluator.metrics.chest import chexlabel_rule_f1
from evaluator.metrics.observation import OBSERVATION_WEIGHT, ROUGE_WEIGHT, observation_f1
from evaluator.metrics.text import MAX_ORDER, bleu, cider_d, document_frequencies, rouge_l
from evaluator.readers.text_file import read_text
from evaluator.tracks.base import (
    CaseFault,
    CaseFiles,
    FilePerCase,
    Finished,
    Outcome,
    ReferenceMissing,
    Summary,
    headline,
    mean,
    mean_of,
    staged,
    untrusted,
)
from tasks.schema import ReportOutput, Task

MLRG7, OBS_ROUGE, BLEU_ROUGE = "mlrg7", "obs_rouge", "bleu_rouge"


class ReportTrack(FilePerCase):
    """A free-text report of one study, or the caption of one image.

    The observations are those of a chest film: where the task's sets leave out ``obs_rouge``, nothing is said about
    them, and a case counts by the overlap of words alone (``bleu_rouge``).
    """

    def __init__(self, task: Task) -> None:
        if not isinstance(task.output, ReportOutput):
            raise TypeError(f"task {task.id} delivers {task.output.kind}, expected report")
        self.task = task
        self.output = task.output
        self._chest = OBS_ROUGE in task.metric.sets
        self._by_case = OBS_ROUGE if self._chest else BLEU_ROUGE

    def check(self, case: CaseFiles) -> str:
        path = case.output(self.output.file)
        with untrusted():
            text = read_text(path).strip()
        letters = sum(char.isalpha() for char in text)
        if len(text) < self.output.min_chars:
            raise CaseFault(
                "too_short", f"{path.name} has {len(text)} characters, expected {self.output.min_chars}"
            )
        if len(text) > self.output.max_chars:
            raise CaseFault(
                "too_long", f"{path.name} has {len(text)} characters, at most {self.output.max_chars}"
            )
        if letters < self.output.min_letters:
            raise CaseFault(
                "too_few_letters", f"{path.name} has {letters} letters, expected {self.output.min_letters}"
            )
        return text

    def score(self, case: CaseFiles, output: str | None) -> Outcome:
        with staged(case):
            reference = read_text(case.reference(self.task.references[0])).strip()
        if not reference:
            raise ReferenceMissing(f"case {case.id}: the staged report is empty; stage the task again")
        text = output or ""
        metrics = _chest_metrics(text, reference) if self._chest else _caption_metrics(text, reference)
        # A set that is defined over the whole corpus has no value of one case, so a case shows this one.
        return Outcome(
            score=metrics[self._by_case],
            metrics=metrics,
            flags=(REFERENCE_COPY,) * same_text(reference, text),
            evidence={"text": text, "reference": reference},
        )

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        texts = [case.evidence["text"] for case in cases]
        references = [case.evidence["reference"] for case in cases]
        orders = bleu(texts, references)
        observed = ("observation_precision", "observation_recall", "observation_f1") if self._chest else ()
        written = [text for text in texts if text]
        aggregates = {
            **{name: mean_of(cases, name) for name in (*observed, "rouge_l")},
            **{f"bleu_{order}": value for order, value in enumerate(orders, 1)},
            "bleu": mean(orders),
            "cider_d": cider_d(texts, references, document_frequencies(references))[0],
            "distinct_reports": len(set(written)) / len(written) if written else None,
            **(chexlabel_rule_f1(texts, references) if self._chest else {}),
            self._by_case: headline(cases),
        }
        return self._headline(texts, references, aggregates)

    def _headline(
        self, texts: list[str], references: list[str], aggregates: dict[str, float | None]
    ) -> Summary:
        chosen, unavailable = choose_set(self.task.metric.sets, self._by_case, mlrg.available())
        if chosen == self._by_case:
            return Summary(aggregates[chosen] or 0.0, aggregates, chosen, unavailable)
        if chosen is None:
            raise ReferenceMissing(f"no metric set of {self.task.id} can be computed here: {unavailable}")
        try:
            models = mlrg.load_models()
        except Exception as error:  # a weights file can be broken in as many ways as there are libraries
            raise ReferenceMissing(
                f"the weights of {chosen} do not load: {error}; install them again"
            ) from None
        values = mlrg.mlrg7(texts, references, models)
        return Summary(values[MLRG7], aggregates | values, MLRG7, unavailable, mlrg.LIBRARIES)

    def preview(self, case: CaseFiles, output: str) -> bytes | None:  # noqa: ARG002 - a report is text
        return None


def _chest_metrics(text: str, reference: str) -> dict[str, float]:
    observed = observation_f1(text, reference)
    overlap = rouge_l(text, reference)
    return {
        OBS_ROUGE: OBSERVATION_WEIGHT * observed.f1 + ROUGE_WEIGHT * overlap,
        "observation_precision": observed.precision,
        "observation_recall": observed.recall,
        "observation_f1": observed.f1,
        "rouge_l": overlap,
    }


def _caption_metrics(text: str, reference: str) -> dict[str, float]:
    overlap = rouge_l(text, reference)
    return {BLEU_ROUGE: (sum(bleu([text], [reference])) / MAX_ORDER + overlap) / 2, "rouge_l": overlap}


def choose_set(
    sets: Sequence[str], without_weights: str, missing: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """The first of a task's sets that can be computed, and why those before it, or parts of them, cannot.

    Parameters
    ----------
    sets : sequence of str
        In order of preference.
    without_weights : str
        The set that every machine can compute.
    missing : mapping of str to str
        Part of ``mlrg7`` -> what it lacks here; empty where it can be computed.
    """
    unavailable: dict[str, str] = {}
    for name in sets:
        if name == without_weights or (name == MLRG7 and not missing):
            return name, unavailable
        unavailable |= _reasons(name, missing if name == MLRG7 else {name: "is not known here"})
    return None, unavailable


def _reasons(name: str, parts: Mapping[str, str]) -> dict[str, str]:
    """Why the set, and each of its components that need weights, cannot be computed."""
    why = "; ".join(f"{part}: {reason}" for part, reason in parts.items())
    components = {
        component: next(
            (reason for part, reason in parts.items() if component.startswith(part)), f"part of {name}"
        )
        for component in (mlrg.WEIGHTED if name == MLRG7 else ())
    }
    return {name: why} | components
