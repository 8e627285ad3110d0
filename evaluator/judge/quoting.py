"""Foreign text made safe to show: it can be read, and it cannot pose as anything but a quotation.

Every line of it begins with a mark of its own, what cannot be seen is spelled out, and its length is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

MARK = "  | "
_TOKEN = re.compile(r"[A-Za-z]{1,4}|\d{1,2}|[^\sA-Za-z\d]|\s+")
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LINE_CHARS = 400


def tokens(text: str) -> int:
    """Tokens of a text, estimated high: four letters, two digits, one other sign or one run of space each."""
    return sum(
        1 if len(part) > 1 or part.isascii() else len(part.encode(errors="replace"))
        for part in _TOKEN.findall(text)
    )


def visible(text: str) -> str:
    """``text`` with every invisible sign but the line end spelled out, so that nothing hides in it."""
    lines = _LINE_END.split(text)
    return "\n".join(
        "".join(char if char.isprintable() else _spelled(char) for char in line.expandtabs(4))
        for line in lines
    )


def _spelled(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


def name(text: str) -> str:
    """A name that a stranger chose, as one JSON string in ASCII of bounded length."""
    return json.dumps(text if len(text) <= 120 else text[:119] + "…")


def masked(text: str, words: Sequence[str]) -> str:
    """``text`` without the given words, whatever their case."""
    for word in words:
        text = re.sub(re.escape(word), "[agent]", text, flags=re.IGNORECASE)
    return text


def clipped(text: str, chars: int, head_share: float = 0.6) -> str:
    """At most about ``chars`` characters of ``text``: head and tail, and between them how much is left out."""
    if len(text) <= chars:
        return text
    head = int(chars * head_share)
    tail = chars - head
    gap = f"[... {len(text) - chars} characters left out ...]"
    return f"{text[:head]}\n{gap}\n{text[len(text) - tail :]}"


def quoted(text: str) -> str:
    """Every line of ``text`` behind the mark; very long lines are broken, so that none runs off."""
    return "\n".join(
        MARK + line[start : start + _LINE_CHARS]
        for line in text.split("\n")
        for start in range(0, max(1, len(line)), _LINE_CHARS)
    )


def fitted(text: str, budget: int, head_share: float = 0.6) -> str:
    """``text`` quoted within ``budget`` tokens; empty where nothing worth reading would be left."""
    shown = quoted(text)
    cost = tokens(shown)
    chars = len(text)
    while cost > budget:
        chars = min(chars - 1, int(chars * 0.95 * budget / cost))
        if chars < _WORTH_READING:
            return ""
        shown = quoted(clipped(text, chars, head_share))
        cost = tokens(shown)
    return shown


_WORTH_READING = 24
