"""METEOR with NLTK's rules: with WordNet synonyms from a local folder, or with exact and stem matches only.

The second is another metric and carries another name, ``meteor_exact_stem``. Both need NLTK (the extra
``report``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from evaluator.metrics.text import tokenise

Meteor = Callable[[str, str], float]
"""(prediction, reference) -> METEOR in [0, 1]."""

WORDNET_FOLDER = "corpora/wordnet"
WORDNET_FILES = ("index.noun", "data.noun", "index.sense", "lexnames")


def wordnet_meteor(folder: Path) -> Meteor:
    """METEOR with synonyms from the WordNet 3.0 dictionary files in ``folder/corpora/wordnet``, NLTK's own layout.

    Notes
    -----
    Banerjee and Lavie, ACL workshop 2005, in NLTK's form (alpha 0.9, beta 3, gamma 0.5) on `tokenise`. Not Meteor
    1.5, whose Java program gives other values. Equal token lists score 1, where NLTK's fragmentation penalty would
    take 0.5 from a perfect one-word answer; an empty side scores 0.
    """
    search_path: list[str] = import_module("nltk.data").path
    root = str(folder.resolve())
    if root not in search_path:
        search_path.append(root)  # NLTK opens dictionary files below these folders only
    reader: Any = import_module("nltk.corpus.reader.wordnet").WordNetCorpusReader
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other languages are not wanted
        return _meteor(reader(f"{root}/{WORDNET_FOLDER}", None))


def exact_stem_meteor() -> Meteor:
    """``meteor_exact_stem``: METEOR without synonyms, so without data files.

    Conventions of `wordnet_meteor`.
    """
    return _meteor(_NoSynonyms())


class _NoSynonyms:
    def synsets(self, word: str) -> list[Any]:  # noqa: ARG002  (the shape of NLTK's reader)
        return []


def _meteor(wordnet: Any) -> Meteor:
    single_meteor_score = import_module("nltk.translate.meteor_score").single_meteor_score

    def score(prediction: str, reference: str) -> float:
        ours, theirs = tokenise(prediction), tokenise(reference)
        if not ours or not theirs:
            return 0.0
        return 1.0 if ours == theirs else float(single_meteor_score(theirs, ours, wordnet=wordnet))

    return score
