"""The set ``obs_rouge``: twelve observations read by rules, and ROUGE-L. No model weights needed.

The twelve names are those of the published lightweight report score. The rules are our own: a denial counts
in its own sentence only, and not against the whole report.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from evaluator.metrics.chest import extract, positive_labels
from evaluator.metrics.negation import assertion, sentences
from evaluator.metrics.text import rouge_l

OBSERVATION_WEIGHT, ROUGE_WEIGHT = 0.7, 0.3

CONCEPTS = (
    "support_devices",
    "no_acute_process",
    "clear_lungs",
    "low_lung_volumes",
    "consolidation",
    "pleural_effusion",
    "pneumothorax",
    "pulmonary_edema",
    "cardiomegaly",
    "adenopathy_or_mass",
    "granuloma_or_calcified_nodule",
    "post_surgical_changes",
)

_FROM_LABELS = {
    "support_devices": ("Support Devices",),
    "consolidation": ("Consolidation", "Pneumonia"),
    "pleural_effusion": ("Pleural Effusion",),
    "pneumothorax": ("Pneumothorax",),
    "pulmonary_edema": ("Edema",),
    "cardiomegaly": ("Cardiomegaly",),
}
_AFFIRMED = {
    "low_lung_volumes": r"\b(?:low|lower|decreased|reduced|diminished|small) lung volumes?"
    r"|lung volumes? (?:is|are) "
    r"(?:\w+ )?(?:low|decreased|reduced|diminished)|hypoinflat\w+|poor inspiratory effort"
    r"|shallow inspiration",
    "adenopathy_or_mass": r"adenopathy|enlarged (?:lymph )?nodes?|\bmass(?:es)?\b(?! effect)"
    r"|hilar (?:enlargement|fullness)"
    r"|paratracheal (?:thickening|fullness)",
    "granuloma_or_calcified_nodule": r"granulomas?\b|granulomatous|calcified (?:\w+ ){0,2}(?:nodules?"
    r"|nodes?|granulomas?)",
    "post_surgical_changes": r"sternotomy|sternal wires|\bcabg\b|bypass graft|post-?surgical|post-?operative"
    r"|surgical (?:clips?|changes?|hardware|staples?)|lobectomy|mastectomy|cholecystectomy clips",
}
_AFFIRMED_PATTERNS = {name: re.compile(pattern) for name, pattern in _AFFIRMED.items()}
_STATED = {
    "no_acute_process": r"\bno (?:evidence of |radiographic evidence of |definite )?(?:an )?(?:acute|active) "
    r"(?:[\w-]+ ){0,3}(?:process|disease|abnormalit(?:y|ies)|findings?|pathology)",
    "clear_lungs": r"\blungs? (?:fields? )?(?:is|are|remain|appear)s? (?:[\w-]+ ){0,3}clear\b(?! of)"
    r"|\bclear lungs?\b"
    r"|\blungs? clear\b",
}
_STATED_PATTERNS = {name: re.compile(pattern) for name, pattern in _STATED.items()}


class ObservationScore(NamedTuple):
    """Precision, recall and F1 of the observations of one report, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


def observations(text: str) -> frozenset[str]:
    """Which of the twelve `CONCEPTS` a report affirms; an uncertain finding counts as affirmed."""
    positive = positive_labels(extract(text))
    found = {name for name, sources in _FROM_LABELS.items() if positive.intersection(sources)}
    for sentence in sentences(text):
        found.update(name for name, pattern in _STATED_PATTERNS.items() if pattern.search(sentence))
        found.update(
            name
            for name, pattern in _AFFIRMED_PATTERNS.items()
            if any(
                assertion(sentence, match.start(), match.end()) != "absent"
                for match in pattern.finditer(sentence)
            )
        )
    return frozenset(found)


def observation_f1(prediction: str, reference: str) -> ObservationScore:
    """Agreement of the observations of two reports.

    Parameters
    ----------
    prediction, reference : str

    Returns
    -------
    ObservationScore
        (1, 1, 1) when neither report affirms any observation, but (0, 0, 0) for an empty prediction: a report
        that says nothing never agrees. With observations on one side only, 0.
    """
    if not prediction.strip():
        return ObservationScore(0.0, 0.0, 0.0)
    ours, theirs = observations(prediction), observations(reference)
    if not ours and not theirs:
        return ObservationScore(1.0, 1.0, 1.0)
    hits = len(ours & theirs)
    return ObservationScore(
        hits / len(ours) if ours else 0.0,
        hits / len(theirs) if theirs else 0.0,
        2 * hits / (len(ours) + len(theirs)),
    )


def obs_rouge(prediction: str, reference: str) -> float:
    """``obs_rouge`` of one case: 0.7 observation F1 + 0.3 ROUGE-L, in [0, 1].

    The task's score is the mean over cases.
    """
    return OBSERVATION_WEIGHT * observation_f1(prediction, reference).f1 + ROUGE_WEIGHT * rouge_l(
        prediction, reference
    )
