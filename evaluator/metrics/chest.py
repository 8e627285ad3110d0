"""Fourteen chest findings read from a report by rules: ``chexlabel_rule``.

The labels are those of CheXpert (Irvin et al., AAAI 2019). The rules are our own; what they give is *not* the
output of the CheXpert labeler or of CheXbert, and must never be published under those names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluator.metrics.negation import Assertion, assertion, sentences

LABELS = (
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
    "No Finding",
)

_SIZE = r"(?:enlarged|enlargement|prominent|prominence|widened|widening|increased in size)"
_NORMAL = r"(?:normal|unremarkable|within normal limits|not enlarged|top normal|stable and normal)"
_HEART = r"(?:heart|cardiac(?: silhouette| size| shadow| contours?)?|cardiac)"
_MEDIASTINUM = r"(?:mediastin(?:um|al(?: silhouettes?| contours?| structures)?))"
_CARDIOMEDIASTINAL = r"(?:cardio-?mediastin(?:um|al)(?: and hilar)?(?: silhouettes?| contours?| structures)?)"
_WITHIN = r"(?:[\w'-]+ ){0,4}"

_MENTIONS = {
    "Enlarged Cardiomediastinum": rf"{_SIZE} (?:of the )?(?:{_CARDIOMEDIASTINAL}|{_MEDIASTINUM})"
    rf"|(?:{_CARDIOMEDIASTINAL}|{_MEDIASTINUM}) {_WITHIN}{_SIZE}|mediastinal widening",
    "Cardiomegaly": rf"cardiomegaly|{_SIZE} (?:of the )?{_HEART}|\b{_HEART}(?: size"
    rf"| silhouette)? {_WITHIN}{_SIZE}",
    "Lung Opacity": r"opacit(?:y|ies)|opacification|infiltrates?|airspace disease|air-?space disease"
    r"|infiltration"
    r"|interstitial markings|reticular markings",
    "Lung Lesion": r"nodules?\b|nodular (?:density|opacity|lesion)|\bmass(?:es)?\b|lung lesions?"
    r"|pulmonary lesions?|tumou?rs?\b"
    r"|granulomas?\b|cavit(?:y|ary) lesions?|metastas[ei]s",
    "Edema": r"\bo?edema\b|vascular congestion|pulmonary congestion|heart failure|\bchf\b|fluid overload"
    r"|kerley"
    r"|vascular engorgement",
    "Consolidation": r"consolidations?|consolidative",
    "Pneumonia": r"pneumonias?\b|bronchopneumonia|infectious process|\binfection\b",
    "Atelectasis": r"atelecta(?:sis|ses|tic)|(?:lobar|lobe|lung) collapse|collapse of the (?:left|right"
    r"|lung|lower|upper)",
    "Pneumothorax": r"pneumothora(?:x|ces)|hydropneumothorax",
    "Pleural Effusion": r"effusions?\b|pleural fluid|hydropneumothorax|hemothorax",
    "Pleural Other": r"pleural (?:thickening|plaques?|scarring|calcifications?|abnormalit(?:y|ies))"
    r"|apical (?:capping|scarring)"
    r"|fibrothorax|empyema",
    "Fracture": r"fractures?\b|fractured",
    "Support Devices": r"endotracheal|\bett?\b tube|\bng tube|nasogastric|\bnj tube|enteric tube"
    r"|feeding tube|orogastric"
    r"|tracheostomy|\bpicc\b|central (?:venous )?(?:line|catheter)|catheter|port-?a-?cath|\bport\b"
    r"|pacemaker|pacer\b|\bicd\b"
    r"|pacing (?:wires?|leads?)|\bleads?\b|chest tubes?|pigtail|swan-?ganz|\bstents?\b|defibrillator"
    r"|prosthetic valve"
    r"|valve (?:replacement|prosthesis)|sternal wires|sternotomy wires|median sternotomy|dobhoff"
    r"|balloon pump|hardware",
}
_PATTERNS = {label: re.compile(pattern) for label, pattern in _MENTIONS.items()}
_NOT_A_MENTION = re.compile(
    r"pericardial effusions?|joint effusions?|(?:leads? to|leading to|port(?:able|ion|al))|mass effect"
    r"|body mass"
    r"|ekg leads?|ecg leads?|heart failure clinic|infection control"
)

_SAYS_NORMAL = {
    "Enlarged Cardiomediastinum": rf"(?:{_CARDIOMEDIASTINAL}"
    rf"|{_MEDIASTINUM}(?: and [\w ]+?)?) {_WITHIN}{_NORMAL}"
    rf"|normal (?:{_CARDIOMEDIASTINAL}|{_MEDIASTINUM})|no mediastinal widening",
    "Cardiomegaly": rf"\b{_HEART}(?: size| silhouette)?(?: and [\w ]+?)? {_WITHIN}{_NORMAL}"
    rf"|normal (?:in size )?(?:size of the )?{_HEART}(?: size)?|normal-?sized heart",
}
_NORMAL_PATTERNS = {label: re.compile(pattern) for label, pattern in _SAYS_NORMAL.items()}
_NOTHING_FOUND = re.compile(
    r"no (?:evidence of |radiographic evidence of |definite )?(?:an )?(?:acute|active) (?:[\w-]+ ){0,3}"
    r"(?:process|disease|abnormalit(?:y|ies)|findings?|pathology)|normal (?:chest|study|examination"
    r"|radiograph)"
    r"|no (?:acute )?(?:abnormalit(?:y|ies)|findings?)\b|(?:chest|study|examination) is normal"
    r"|lungs are clear|clear lungs"
)

DENIALS_OF_A_NORMAL_REPORT = 3
"""A report that denies this many findings and affirms none says that nothing was found."""

_NAMES = (
    "chexlabel_rule_precision_micro",
    "chexlabel_rule_recall_micro",
    "chexlabel_rule_f1_micro",
    "chexlabel_rule_f1_macro",
)

_RANK: dict[Assertion, int] = {"absent": 0, "uncertain": 1, "present": 2}


def extract(text: str) -> dict[str, Assertion]:
    """Findings a chest report mentions.

    Parameters
    ----------
    text : str
        Findings and impression, in English.

    Returns
    -------
    dict of label to "present", "absent" or "uncertain"
        Labels that are not mentioned are missing. Of several mentions the strongest counts: present, then
        uncertain, then absent. "No Finding" is present when the report says that nothing was found, or only
        denies, and no other label but Support Devices is present or uncertain. An empty text mentions
        nothing, which is not "No Finding".
    """
    found: dict[str, Assertion] = {}
    nothing = False
    for sentence in sentences(text):
        nothing = nothing or bool(_NOTHING_FOUND.search(sentence))
        for label in LABELS[:-1]:
            for said in _mentions(label, sentence):
                if label not in found or _RANK[said] > _RANK[found[label]]:
                    found[label] = said
    abnormal = any(said != "absent" for label, said in found.items() if label != "Support Devices")
    denied = sum(said == "absent" for said in found.values())
    if (nothing or denied >= DENIALS_OF_A_NORMAL_REPORT) and not abnormal:
        found["No Finding"] = "present"
    return found


def chexlabel_rule_f1(
    predictions: Sequence[str], references: Sequence[str], *, uncertain_is_positive: bool = True
) -> dict[str, float]:
    """Agreement of the rule-based labels of predicted and reference reports, pooled over all 14 labels.

    Parameters
    ----------
    predictions, references : sequences of str of equal length
    uncertain_is_positive : bool
        Count "uncertain" as a finding (the published convention), or as none.

    Returns
    -------
    dict
        ``chexlabel_rule_precision_micro``, ``chexlabel_rule_recall_micro`` and ``chexlabel_rule_f1_micro``,
        pooled over cases and labels, and ``chexlabel_rule_f1_macro``, the mean over the labels that occur on
        either side. All in [0, 1]; all 1 when no label is positive on any side.
    """
    if len(predictions) != len(references) or not references:
        raise ValueError(f"{len(predictions)} predictions for {len(references)} references")
    ours = [positive_labels(extract(text), uncertain_is_positive) for text in predictions]
    theirs = [positive_labels(extract(text), uncertain_is_positive) for text in references]
    pairs = list(zip(ours, theirs, strict=True))
    hits = sum(len(ours & theirs) for ours, theirs in pairs)
    claimed, wanted = sum(len(ours) for ours, _ in pairs), sum(len(theirs) for _, theirs in pairs)
    per_label = [
        2 * sum(label in ours and label in theirs for ours, theirs in pairs) / total
        for label in LABELS
        if (total := sum((label in ours) + (label in theirs) for ours, theirs in pairs))
    ]
    if not per_label:
        return dict.fromkeys(_NAMES, 1.0)
    values = (
        hits / claimed if claimed else 0.0,
        hits / wanted if wanted else 0.0,
        2 * hits / (claimed + wanted),
        sum(per_label) / len(per_label),
    )
    return dict(zip(_NAMES, values, strict=True))


def positive_labels(found: dict[str, Assertion], uncertain_is_positive: bool = True) -> set[str]:
    """The labels of a report that count as findings."""
    counted = {"present", "uncertain"} if uncertain_is_positive else {"present"}
    return {label for label, said in found.items() if said in counted}


def _mentions(label: str, sentence: str) -> list[Assertion]:
    masked = _NOT_A_MENTION.sub(lambda match: "#" * len(match[0]), sentence)
    if (normal := _NORMAL_PATTERNS.get(label)) and normal.search(masked):
        return ["absent"]
    return [assertion(sentence, match.start(), match.end()) for match in _PATTERNS[label].finditer(masked)]
