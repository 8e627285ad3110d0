"""Two texts word by word: what both say, what only one says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup

from space.markup import el, join

MAX_WORDS = 3000
"""Words of each text that are compared; what follows is left out and said to be."""

_PART = re.compile(r"\S+")
Side = Literal["same", "left", "right"]


@dataclass(frozen=True)
class Piece:
    """A run of words: on both sides, or on one of them alone."""

    side: Side
    text: str


def word_diff(left: str, right: str) -> list[Piece]:
    """The pieces in reading order; where words differ, those of the left come first.

    Words are compared without regard to case and to the punctuation at their ends, and shown as the right wrote them.
    """
    ours, theirs = (_PART.findall(text)[:MAX_WORDS] for text in (left, right))
    matcher = SequenceMatcher(None, [_bare(word) for word in ours], [_bare(word) for word in theirs], False)
    return list(_pieces(matcher, ours, theirs))


def _pieces(matcher: SequenceMatcher[str], ours: list[str], theirs: list[str]) -> Iterator[Piece]:
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            yield Piece("same", " ".join(theirs[c:d]))
            continue
        if b > a:
            yield Piece("left", " ".join(ours[a:b]))
        if d > c:
            yield Piece("right", " ".join(theirs[c:d]))


def _bare(word: str) -> str:
    return word.casefold().strip(".,;:!?()[]\"'") or word


def show_diff(left: str, right: str) -> Markup:
    """The right text with its own words marked, and those of the left that it lacks struck out."""
    marks = {"left": "del", "right": "ins"}
    shown = [
        el(marks[piece.side], piece.text) if piece.side in marks else piece.text
        for piece in word_diff(left, right)
    ]
    return el("p", join(shown, " "), _left_out(left, right), class_="amb-diff")


def similarity(left: str, right: str) -> float:
    """Share of words in common, in [0, 1]: twice the common ones over all words of both."""
    pieces = word_diff(left, right)
    counts = {side: sum(len(piece.text.split()) for piece in pieces if piece.side == side) for side in SIDES}
    total = 2 * counts["same"] + counts["left"] + counts["right"]
    return 2 * counts["same"] / total if total else 1.0


SIDES: tuple[Side, ...] = ("same", "left", "right")


def _left_out(left: str, right: str) -> Markup | None:
    longest = max(len(_PART.findall(text)) for text in (left, right))
    if longest <= MAX_WORDS:
        return None
    return el("em", f" Only the first {MAX_WORDS} of {longest} words are compared.")
