"""The published report score ``mlrg7``: the mean of seven metrics, five of which need local model weights.

Weights are looked for in one folder (``AUTOMEDBENCH_WEIGHTS``, or the argument): ``corpora/wordnet/`` for METEOR,
``radgraph/`` and ``huggingface/`` for F1-RadGraph, ``chexbert/`` for the three CheXbert numbers. Nothing is
downloaded. Where a part is missing the whole set is unavailable; no stand-in is used in its place.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.metrics.chexbert import BERT_FOLDER, CHECKPOINT, Labeler, chexbert_labeler
from evaluator.metrics.meteor import WORDNET_FILES, WORDNET_FOLDER, Meteor, wordnet_meteor
from evaluator.metrics.radgraph import MODEL, GraphMaker, graph_f1, radgraph_model
from evaluator.metrics.text import bleu, rouge_l
from evaluator.metrics.weights import WEIGHTS_VARIABLE, weights_folder

LIBRARIES = ("nltk", "radgraph", "torch", "transformers")
"""Packages whose version may move a score of the set."""

COMPONENTS = (
    "bleu",
    "meteor",
    "rouge_l",
    "f1_radgraph",
    "chexbert14_micro_precision",
    "chexbert14_micro_recall",
    "chexbert14_micro_f1",
)
WEIGHTED = tuple(name for name in COMPONENTS if name not in ("bleu", "rouge_l"))
"""Those that need weights: without all of them none is computed."""


@dataclass(frozen=True)
class _Part:
    packages: tuple[str, ...]
    files: tuple[str, ...]


_PARTS = {
    "meteor": _Part(("nltk",), tuple(f"{WORDNET_FOLDER}/{name}" for name in WORDNET_FILES)),
    "f1_radgraph": _Part(("radgraph", "torch"), (f"{MODEL}/config.json", "huggingface")),
    "chexbert14": _Part(
        ("torch", "transformers"), (f"chexbert/{CHECKPOINT}", f"chexbert/{BERT_FOLDER}/config.json")
    ),
}


@dataclass(frozen=True)
class Models:
    """The three models of the set, loaded."""

    meteor: Meteor
    graphs: GraphMaker
    labels: Labeler


def available(weights: Path | None = None) -> dict[str, str]:
    """What keeps parts of the set from being computed here.

    Parameters
    ----------
    weights : Path, optional
        The weights folder; default: the one ``AUTOMEDBENCH_WEIGHTS`` names.

    Returns
    -------
    dict of str to str
        Part -> reason. Empty: everything is here, and `load_models` can be called.
    """
    folder = weights or weights_folder()
    return {name: reason for name, part in _PARTS.items() if (reason := _missing(part, folder))}


def load_models(weights: Path | None = None) -> Models:
    """Load all three models from the weights folder.

    Raises
    ------
    RuntimeError
        Something is missing; the message is what `available` says.
    """
    missing = available(weights)
    folder = weights or weights_folder()
    if missing or folder is None:
        raise RuntimeError(
            "mlrg7 is unavailable: " + "; ".join(f"{name}: {why}" for name, why in missing.items())
        )
    return Models(wordnet_meteor(folder), radgraph_model(folder), chexbert_labeler(folder / "chexbert"))


def mlrg7(predictions: Sequence[str], references: Sequence[str], models: Models) -> dict[str, float]:
    """The seven components and their mean.

    Parameters
    ----------
    predictions, references : sequences of str of equal length
        An empty prediction scores 0 in every part.
    models : Models

    Returns
    -------
    dict of str to float
        `COMPONENTS` and ``mlrg7``, all in [0, 1]. ``bleu`` is the mean of corpus BLEU-1 to BLEU-4; METEOR,
        ROUGE-L and F1-RadGraph (partial) are means over cases; the CheXbert numbers are micro averages over
        cases and 14 labels, uncertain counting as positive.
    """
    pairs = list(zip(predictions, references, strict=True))
    graphs = zip(models.graphs(predictions), models.graphs(references), strict=True)
    ours = [
        found if text.strip() else set()
        for found, text in zip(models.labels(predictions), predictions, strict=True)
    ]
    precision, recall, f1 = micro_scores(ours, models.labels(references))
    values = (
        sum(bleu(predictions, references)) / 4,
        sum(models.meteor(pred, ref) for pred, ref in pairs) / len(pairs),
        sum(rouge_l(pred, ref) for pred, ref in pairs) / len(pairs),
        sum(graph_f1(pred, ref) for pred, ref in graphs) / len(pairs),
        precision,
        recall,
        f1,
    )
    return dict(zip(COMPONENTS, values, strict=True)) | {"mlrg7": sum(values) / len(values)}


def micro_scores(
    predictions: Sequence[set[str]], references: Sequence[set[str]]
) -> tuple[float, float, float]:
    """Precision, recall and F1 of label sets, pooled over cases.

    0 where a denominator is 0 (as scikit-learn's default).
    """
    hits = sum(len(ours & theirs) for ours, theirs in zip(predictions, references, strict=True))
    claimed, wanted = sum(map(len, predictions)), sum(map(len, references))
    return (
        hits / claimed if claimed else 0.0,
        hits / wanted if wanted else 0.0,
        2 * hits / (claimed + wanted) if claimed + wanted else 0.0,
    )


def _missing(part: _Part, folder: Path | None) -> str | None:
    absent = [package for package in part.packages if importlib.util.find_spec(package) is None]
    if absent:
        return f"package {', '.join(absent)} is not installed (extra 'report')"
    if folder is None:
        return f"no weights folder: set {WEIGHTS_VARIABLE}"
    lost = [name for name in part.files if not (folder / name).exists()]
    return f"{lost[0]} is not in the weights folder" if lost else None
