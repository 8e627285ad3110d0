"""Whether a sentence of a report affirms, denies or doubts a finding it mentions.

A small scope grammar in the manner of NegEx (Chapman et al., J Biomed Inform 2001): cues act on the findings
of their own clause, forwards or backwards, until a word that ends their scope. Written for English chest
reports.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Assertion = Literal["present", "absent", "uncertain"]

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?![a-z]{0,2}\.)|\n\s*\n|;\s*")
_SCOPE_END = re.compile(
    r"\b(?:but|however|although|though|except|aside from|apart from|other than|which|nevertheless|yet"
    r"|while|whereas|"
    r"with (?=stable|unchanged|persistent|residual|small|moderate|large|mild))\b|:"
)
_PSEUDO_NEGATION = re.compile(
    r"\b(?:no|without|not) (?:(?:significant|interval|definite|appreciable|substantial|major|further"
    r"|other|new) )*"
    r"(?:change|changes|increase|decrease|improvement|worsening|progression)(?: (?:in|of))?\b"
    r"|\bnot (?:significantly |appreciably |substantially )?(?:changed|improved|decreased|increased"
    r"|resolved)\b"
    r"|\b(?:no|not|without) (?:evidence |sign |suggestion )?(?:that |of )?(?:[a-z]+ ){0,4}?(?:has|have) "
    r"(?:completely |fully )?(?:resolved|cleared)\b"
    r"|\b(?:cannot|can not|could not|not) (?:be )?(?:entirely |completely |fully )?(?:excluded?|rule out"
    r"|ruled out)\b"
    r"|\bnot only\b"
)
_DENIES_AFTER = re.compile(
    r"\b(?:no|without|not|never|neither|nor|non|denies|negative for|free of|clear of|absence of|lack of"
    r"|lacks|"
    r"rather than|ruled out|rules out|resolution of|resolved|clearing of|removal of|no longer)\b"
)
_DENIES_BEFORE = re.compile(
    r"\b(?:(?:has|have) been (?:ruled out|excluded)|(?:has|have|had) (?:completely |fully |now |since "
    r"|largely )?(?:resolved|cleared|been removed"
    r"|disappeared)|"
    r"(?:is|are|was|were) (?:not|no longer) (?:seen|identified|visualized|visualised|present|evident"
    r"|detected|"
    r"demonstrated|appreciated|noted|visible)|(?:is|are) (?:absent|excluded|resolved|ruled out)|"
    r"not (?:seen|identified|visualized|present|evident)|resolved|removed)\b"
)
_DOUBTS_AFTER = re.compile(
    r"\b(?:possible|possibly|probable|probably|likely|may|might|could|questionable|question of|suspected"
    r"|suspicious for|"
    r"suspicion (?:of|for)|concern for|concerning for|suggests?|suggesting|suggestive of|versus|vs"
    r"|or(?= early)|cannot exclude|"
    r"cannot rule out|can not exclude|not exclude|evaluate for|assess for|presumed|presumably|rule out"
    r"|equivocal"
    r"|borderline|"
    r"potentially|worrisome for|consider|difficult to exclude)\b"
)
_DOUBTS_BEFORE = re.compile(
    r"\b(?:(?:is|are) (?:possible|likely|probable|suspected|questionable|not excluded|questioned)|"
    r"(?:cannot|can not|could not|not) (?:be )?(?:entirely |completely |fully )?(?:excluded|ruled out)|"
    r"may be present|may be considered|not excluded|suspected|versus|vs)\b"
)


def sentences(text: str) -> list[str]:
    """Sentences of a report: NFKC, lower case, one space between words, bullets and line breaks smoothed."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    parts = _SENTENCE_END.split(re.sub(r"[^\S\n]+", " ", folded))
    return [clean for part in parts if (clean := " ".join(part.split()).strip(" .!?;-*"))]


def assertion(sentence: str, start: int, end: int) -> Assertion:
    """How a sentence asserts the finding it mentions at ``start:end``.

    Parameters
    ----------
    sentence : str
        One item of `sentences`.
    start, end : int
        Place of the mention.

    Returns
    -------
    "present", "absent" or "uncertain"
        Denial outranks doubt ("no evidence to suggest pneumonia"), but what "cannot be excluded" is not
        denied.
    """
    hidden = _PSEUDO_NEGATION.sub(_hide, sentence)
    if _DENIES_AFTER.search(_reach_back(hidden[:start])) or _DENIES_BEFORE.search(_reach_on(hidden[end:])):
        return "absent"
    if _DOUBTS_AFTER.search(_reach_back(sentence[:start])) or _DOUBTS_BEFORE.search(
        _reach_on(sentence[end:])
    ):
        return "uncertain"
    return "present"


def _hide(match: re.Match[str]) -> str:
    """Blank the negation of a phrase such as "no change in", keeping every place.

    And the doubt of "cannot exclude".
    """
    return re.sub(
        r"\b(?:no|not|without|cannot|has|have|resolved|cleared|ruled out)\b",
        lambda word: "#" * len(word[0]),
        match[0],
    )


def _reach_back(text: str) -> str:
    """The part of ``text`` whose cues still reach its end."""
    ends = [match.end() for match in _SCOPE_END.finditer(text)]
    return text[ends[-1] :] if ends else text


def _reach_on(text: str) -> str:
    """The part of ``text`` whose cues still reach back to its start."""
    end = re.search(r"[,:]|\b(?:but|however|although|though|and|with|without|no)\b", text)
    return text[: end.start()] if end else text
