"""N-gram metrics of generated text, on one stated tokenisation for both sides.

These carry little meaning alone: one dropped "no" keeps BLEU-4 at .86. They stand beside the label metrics of
`chest`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Ngram = tuple[str, ...]

MAX_ORDER = 4
CIDER_SIGMA = 6.0
"""Width of CIDEr-D's penalty for a difference in length, in bigrams."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*\w*|\w+(?:['’-]\w+)*|[^\w\s]")
_WORD = re.compile(r"[^\W_]+")
_MASKED = re.compile(r"x{4,}$|_+$")


def tokenise(text: str) -> list[str]:
    """Tokens of a report.

    Returns
    -------
    list of str
        NFKC, lower case; words (with inner hyphens and apostrophes), numbers (with inner points and commas)
        and single punctuation marks. White space of any kind separates. De-identification marks (XXXX, ___)
        are left out, since no one can predict them.
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    return [token for token in _TOKEN.findall(folded) if not _MASKED.match(token)]


def words(text: str) -> list[str]:
    """Lower-case runs of letters and digits.

    Without punctuation and de-identification marks (ROUGE's tokens).
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    return [word for word in _WORD.findall(folded) if not _MASKED.match(word)]


def bleu(predictions: Sequence[str], references: Sequence[str]) -> tuple[float, float, float, float]:
    """Corpus BLEU-1 to BLEU-4, one reference a case, no smoothing.

    Parameters
    ----------
    predictions, references : sequences of str of equal length

    Returns
    -------
    (b1, b2, b3, b4)
        Each in [0, 1]: the geometric mean of the clipped n-gram precisions of the corpus up to that order,
        times the brevity penalty exp(1 - r/c) when the predictions are shorter. An order for which *neither*
        side has a single n-gram is left out of the geometric mean, so a perfect one-word answer scores 1;
        where only the predictions are too short, that order's precision is 0.

    Notes
    -----
    Papineni et al., ACL 2002.
    """
    _require_pairs(predictions, references)
    pairs = [(tokenise(pred), tokenise(ref)) for pred, ref in zip(predictions, references, strict=True)]
    length = sum(len(pred) for pred, _ in pairs)
    target = sum(len(ref) for _, ref in pairs)
    if length == 0:
        return (0.0, 0.0, 0.0, 0.0)
    penalty = min(1.0, math.exp(1.0 - target / length))
    precisions: list[float] = []
    scores = []
    for order in range(1, MAX_ORDER + 1):
        hits = possible = wanted = 0
        for pred, ref in pairs:
            ours, theirs = _ngrams(pred, order), _ngrams(ref, order)
            hits += (ours & theirs).total()
            possible += ours.total()
            wanted += theirs.total()
        if possible or wanted:
            precisions.append(hits / possible if possible else 0.0)
        scores.append(penalty * _geometric_mean(precisions))
    return (scores[0], scores[1], scores[2], scores[3])


def rouge_l(prediction: str, reference: str) -> float:
    """ROUGE-L F1 (beta 1) of two texts, on `words`.

    Returns
    -------
    float
        In [0, 1]; 0 when either side has no word.

    Notes
    -----
    Lin, ACL workshop 2004; the whole text is one sequence.
    """
    ours, theirs = words(prediction), words(reference)
    common = _longest_common_subsequence(ours, theirs)
    return 2.0 * common / (len(ours) + len(theirs)) if common else 0.0


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many reference texts each n-gram of order 1-4 occurs.

    Frozen, so that a subset scores the same.
    """

    counts: Counter[Ngram]
    n_documents: int


def document_frequencies(references: Sequence[str]) -> DocumentFrequencies:
    """Document frequencies of the whole reference set of a task."""
    counts: Counter[Ngram] = Counter()
    for reference in references:
        tokens = tokenise(reference)
        for order in range(1, MAX_ORDER + 1):
            counts.update(_ngrams(tokens, order).keys())
    return DocumentFrequencies(counts, len(references))


def cider_d(
    predictions: Sequence[str], references: Sequence[str], frequencies: DocumentFrequencies
) -> tuple[float, list[float]]:
    """CIDEr-D, one reference a case.

    Parameters
    ----------
    predictions, references : sequences of str of equal length
    frequencies : DocumentFrequencies
        Of the task's whole reference set, not of the submitted subset.

    Returns
    -------
    mean, per_case
        In [0, 10]. With a single reference document, or when all references are alike, every inverse document
        frequency is 0 and so is the score of a perfect text.

    Notes
    -----
    Vedantam et al., CVPR 2015: clipped tf-idf cosine of orders 1-4, Gaussian length penalty with sigma 6.
    """
    _require_pairs(predictions, references)
    scores = [_cider_case(pred, ref, frequencies) for pred, ref in zip(predictions, references, strict=True)]
    return sum(scores) / len(scores), scores


def _cider_case(prediction: str, reference: str, frequencies: DocumentFrequencies) -> float:
    ours, theirs = tokenise(prediction), tokenise(reference)
    difference = max(len(ours) - 1, 0) - max(len(theirs) - 1, 0)
    penalty = math.exp(-(difference**2) / (2 * CIDER_SIGMA**2))
    total = 0.0
    for order in range(1, MAX_ORDER + 1):
        left, right = _weights(ours, order, frequencies), _weights(theirs, order, frequencies)
        norms = math.hypot(*left.values()) * math.hypot(*right.values())
        if norms > 0.0:
            total += (
                sum(
                    min(value, right[ngram]) * right[ngram] for ngram, value in left.items() if ngram in right
                )
                / norms
            )
    return 10.0 * penalty * total / MAX_ORDER


def _weights(tokens: list[str], order: int, frequencies: DocumentFrequencies) -> dict[Ngram, float]:
    documents = math.log(max(1, frequencies.n_documents))
    counts = _ngrams(tokens, order)
    return {
        ngram: count * (documents - math.log(max(1, frequencies.counts.get(ngram, 0))))
        for ngram, count in counts.items()
    }


def _ngrams(tokens: list[str], order: int) -> Counter[Ngram]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def _geometric_mean(values: Sequence[float]) -> float:
    if min(values) <= 0.0:
        return 0.0
    return math.exp(sum(math.log(value) for value in values) / len(values))


def _longest_common_subsequence(left: list[str], right: list[str]) -> int:
    """Length of the longest common subsequence, one bit a token of ``left`` (Hyyrö, 2004).

    Linear in ``right``.
    """
    places: dict[str, int] = {}
    for place, token in enumerate(left):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(left)) - 1
    row = full
    for token in right:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & full
    return len(left) - row.bit_count()


def _require_pairs(predictions: Sequence[str], references: Sequence[str]) -> None:
    if len(predictions) != len(references):
        raise ValueError(f"{len(predictions)} predictions but {len(references)} references")
    if not references:
        raise ValueError("no text to score")
