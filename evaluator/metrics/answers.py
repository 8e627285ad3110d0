"""Answers to questions about images: normalisation, exact match, token F1, yes/no and option letters.

The normal form differs from the VQA v2 and SQuAD scripts where those are wrong for medicine: only a *leading*
article is dropped (else "hepatitis a" equals "hepatitis"), number words reach 99, numbers compare by value,
Unicode is folded (NFKC). `docs/metrics.md` lists the differences.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_TEENS = [
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = {
    word: 10 * place
    for place, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2
    )
}
_NUMBERS = {word: value for value, word in enumerate(_ONES + _TEENS)} | _TENS
_ARTICLES = ("a", "an", "the")
_YES, _NO = {"yes"}, {"no", "none"}

_APOSTROPHES = re.compile(r"['’‘`]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER_UNIT = re.compile(r"(?<![\w.])([-+]?\d+(?:\.\d+)?)(?=[^\W\d_])")
_WORD_HYPHEN = re.compile(r"(?<=[^\W\d_])[-‐‑](?=[^\W\d_])")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)$")
_ANSWER_PREFIX = re.compile(r"^(?:the )?(?:final |correct )?answer(?: is)? (?=\w)")

_BARE_LETTER = re.compile(r"[\s(\[{*_\"']*([^\W\d_])[\s)\]}*_\"'.:,;]*$")
_LEADING_LETTER = re.compile(r"\s*[(\[*]*([^\W\d_])[)\].:*]+(?=\s|$)")
_BRACKETED_LETTER = re.compile(r"[(\[{]\s*([^\W\d_])\s*[)\]}]")
_DECLARATION = re.compile(
    r"(?:\\boxed\s*\{\s*(?:\\text\s*\{)?"
    r"|\b(?:answer|option|choice)\b\s*(?:is|:|=)*\s*(?:option\s+|choice\s+)?"
    r"|\b(?:so|therefore|thus|hence|choose|pick|select)\b[\s,:]*(?:it\s+is\s+|option\s+)?)"
    r"[*(\[\"']*(?P<letter>[^\W\d_])(?![\w'])[*)\]}\"']*"
    r"(?P<second>\s*(?:and|or|/|,|&)\s*[*(\[\"']*(?P<other>[^\W\d_])(?!\w))?"
    r"(?P<rest>\s+\w+)?",
    re.IGNORECASE,
)
_AFTER_LETTER = {"because", "since", "as", "due", "given", "is", "was"}


def normalise(text: str) -> str:
    """The normal form in which answers are compared.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        NFKC, case-folded, one space between tokens; apostrophes removed, other punctuation a space (kept: a
        decimal point, a slash between digits, a sign before a number, and symbols such as % and °); thousands
        separators removed, number and unit apart, number words 0-99 and numbers in one form; a leading
        article dropped when something follows it. Empty when nothing remains.
    """
    return " ".join(_tokens(text))


def exact_match(prediction: str, reference: str, *, closed: bool = False) -> bool:
    """Whether an answer equals the reference in normal form.

    Parameters
    ----------
    prediction, reference : str
    closed : bool
        The question asks for yes or no. When the reference then is yes or no, only the decision counts ("No,
        there is none" equals "no"); an answer that says both is wrong.

    Returns
    -------
    bool
        Never true for an answer whose normal form is empty. A hyphenated word equals its spaced and its
        joined form. "none" equals the number 0.
    """
    if closed and (expected := yes_no(reference)) is not None:
        return yes_no(prediction) == expected
    answers, keys = _forms(prediction), _forms(reference)
    if "" in answers:
        return False
    return bool(answers & keys) or ("none" in answers and "0" in keys)


def token_f1(prediction: str, reference: str) -> float:
    """F1 of the bags of tokens of both normal forms, in [0, 1].

    1 where `exact_match` holds (Rajpurkar et al., 2016).
    """
    if exact_match(prediction, reference):
        return 1.0
    answer, key = Counter(_tokens(prediction)), Counter(_tokens(reference))
    shared = (answer & key).total()
    return 2.0 * shared / (answer.total() + key.total()) if shared else 0.0


def yes_no(text: str) -> bool | None:
    """The decision an answer starts with.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool or None
        True for a leading "yes", False for a leading "no" or "none" (after an optional "the answer is"). None
        when the answer starts otherwise, or says both.
    """
    tokens = _ANSWER_PREFIX.sub("", normalise(text)).split()
    said = set(tokens)
    if not tokens or (said & _YES and said & _NO):
        return None
    if tokens[0] in _YES:
        return True
    return False if tokens[0] in _NO else None


def option_letter(text: str, options: Mapping[str, str] | Sequence[str]) -> str | None:
    """The option an answer chooses.

    Parameters
    ----------
    text : str
    options : mapping of letter to option text, or sequence
        A sequence holds the letters themselves, or the option texts in the order A, B, C, ...

    Returns
    -------
    str or None
        The upper-case letter. In order: the letter alone; the last explicit declaration ("answer is X", a
        boxed X); a letter that starts the answer with a bracket, point or colon; a single bracketed letter;
        the text of exactly one option. None when the answer names no option of this question, or two. An
        article "A" or pronoun "I" never decides.
    """
    choices = _choices(options)
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    if bare := _BARE_LETTER.match(text):
        return _option(str(bare[1]), choices)
    declared = [match for match in _DECLARATION.finditer(text) if _declares(match, choices)]
    if declared:
        second = declared[-1]["other"]
        if second is not None and second.upper() in choices:
            return None
        return _option(str(declared[-1]["letter"]), choices)
    if (leading := _LEADING_LETTER.match(text)) and leading[1].upper() in choices:
        return str(leading[1]).upper()
    bracketed = {letter.upper() for letter in _BRACKETED_LETTER.findall(text)} & choices.keys()
    if len(bracketed) == 1:
        return str(bracketed.pop())
    named = [letter for letter, words in choices.items() if words and exact_match(text, words)]
    return named[0] if len(named) == 1 else None


def _tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _APOSTROPHES.sub("", text)
    text = _THOUSANDS.sub("", text)
    text = _NUMBER_UNIT.sub(r"\1 ", text)
    tokens = _numbers("".join(_keep(text, place) for place in range(len(text))).split())
    return tokens[1:] if len(tokens) > 1 and tokens[0] in _ARTICLES else tokens


def _keep(text: str, place: int) -> str:
    """The character at ``place``, or a space where it is punctuation that separates."""
    char = text[place]
    if not unicodedata.category(char).startswith("P") or char in "%‰":
        return char
    before = text[place - 1] if place else " "
    after = text[place + 1] if place + 1 < len(text) else " "
    if char == "." and after.isdigit() and (before.isdigit() or before.isspace()):
        return char
    if char == "/" and before.isdigit() and after.isdigit():
        return char
    if char == "-" and after.isdigit() and before.isspace():
        return char
    return " "


def _numbers(tokens: list[str]) -> list[str]:
    """Number words and numbers in one written form: "twenty one" and "21.0" become "21"."""
    result: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        following = _NUMBERS.get(tokens[place + 1], 0) if place + 1 < len(tokens) else 0
        if token in _TENS and 1 <= following <= 9:
            result.append(str(_TENS[token] + following))
            place += 1
        elif token in _NUMBERS:
            result.append(str(_NUMBERS[token]))
        else:
            result.append(_plain_number(token) if _NUMBER.match(token) else token)
        place += 1
    return result


def _plain_number(token: str) -> str:
    sign = "-" if token[0] == "-" else ""
    whole, _, fraction = token.lstrip("+-").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return value if value == "0" else sign + value


def _forms(text: str) -> set[str]:
    """The normal form, and the one with the halves of hyphenated words joined."""
    folded = unicodedata.normalize("NFKC", text)
    return {normalise(folded), normalise(_WORD_HYPHEN.sub("", folded))}


def _choices(options: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    if isinstance(options, Mapping):
        return {letter.upper(): words for letter, words in options.items()}
    if all(len(option) == 1 and option.isalpha() for option in options):
        return {letter.upper(): "" for letter in options}
    return dict(zip(string.ascii_uppercase, options, strict=False))


def _option(letter: str, choices: Mapping[str, str]) -> str | None:
    return letter.upper() if letter.upper() in choices else None


def _declares(match: re.Match[str], choices: Mapping[str, str]) -> bool:
    """Whether a declaration names an option, rather than going on with the article "a" or the pronoun "I"."""
    letter, rest = match["letter"], (match["rest"] or "").strip().lower()
    if letter.upper() not in choices:
        return False
    if letter in "ai":
        return match[0].startswith("\\boxed")
    return letter not in "AI" or not rest or rest in _AFTER_LETTER
