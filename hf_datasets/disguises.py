"""The forms in which a secret can lie in a text: escaped, percent-encoded, base64 or hexadecimal, cut to pieces."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPE = re.compile(
    r"\\+u(?P<u>[0-9a-fA-F]{4})|\\+x(?P<x>[0-9a-fA-F]{2})|%(?:25)*(?P<p>[0-9a-fA-F]{2})|\\+(?P<c>/)"
)
_RUN = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}(?:(?:\\+r)?(?:\\+n|\r?\n)[A-Za-z0-9+/_-]+={0,2})*"
)
_BREAK = re.compile(r"\\+[rn]|\s|=")
_ANCHOR = 5
"""Shortest piece that is looked for as such; hits are then measured on both sides."""


@dataclass(frozen=True)
class Plain:
    """A text without its escapes, and the way back to the original's positions."""

    text: str
    starts: tuple[int, ...]
    """Where in ``text`` each piece begins ..."""
    origins: tuple[int, ...]
    """... and where in the original; odd pieces are one character for a whole escape."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        return self._place(start), self._place(end)

    def _place(self, position: int) -> int:
        piece = bisect_right(self.starts, position) - 1
        return self.origins[piece] + (position - self.starts[piece])


def plain(text: str) -> Plain | None:
    r"""``text`` with ``\uXXXX``, ``\xXX``, ``%XX`` and ``\/`` resolved at any depth; None if there are none."""
    if not any(sign in text for sign in ("\\u", "\\x", "\\/", "%")):
        return None
    parts: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    length = before = 0
    for match in _ESCAPE.finditer(text):
        for part, origin in ((text[before : match.start()], before), (_resolved(match), match.start())):
            parts.append(part)
            starts.append(length)
            origins.append(origin)
            length += len(part)
        before = match.end()
    if not parts:
        return None
    return Plain("".join((*parts, text[before:])), (*starts, length), (*origins, before))


def _resolved(match: re.Match[str]) -> str:
    code = match["u"] or match["x"] or match["p"]
    return chr(int(code, 16)) if code else match["c"]


def encoded(secret: str) -> frozenset[str]:
    """What base64 (either alphabet, any of the three alignments) and hexadecimal surely make of a secret inside a
    longer text.
    """
    raw = secret.encode(errors="surrogatepass")
    forms = {raw.hex(), raw.hex().upper()}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + raw).decode()
        # Characters that also hold bits of a neighbour are left out on both sides.
        first, last = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
        core = text[first:last]
        forms |= {core, core.replace("+", "-").replace("/", "_")}
    return frozenset(forms)


def decoded_runs(text: str) -> Iterator[str]:
    """What base64-looking runs of ``text`` hold, whichever of the four phases they begin at."""
    for match in _RUN.finditer(text):
        run = _BREAK.sub("", match[0]).replace("-", "+").replace("_", "/")
        if run.islower() or run.isupper() or not any(map(str.isdigit, run)):
            continue  # words, paths and digests; 24 characters of base64 have letters of both cases and digits
        for phase in range(4):
            piece = run[phase : len(run) - (len(run) - phase) % 4]
            try:
                yield base64.b64decode(piece).decode("latin-1")
            except binascii.Error:
                continue


def shared_runs(text: str, needle: str, least: int) -> Iterator[tuple[int, int]]:
    """Spans of ``text`` with ``least`` or more characters in a row that ``needle`` has in a row too.

    Every such run holds one of a few anchors of ``needle``, so that a text without any of them costs no more than
    searching it for those.
    """
    for at in range(0, len(needle) - _ANCHOR + 1, max(1, least - _ANCHOR + 1)):
        anchor = needle[at : at + _ANCHOR]
        found = text.find(anchor)
        while found >= 0:
            left, right = _grown(text, needle, found, at)
            if right - left >= least:
                yield left, right
            found = text.find(anchor, max(right, found + 1))


def _grown(text: str, needle: str, found: int, at: int) -> tuple[int, int]:
    before = min(found, at)
    left = _alike(text[found - before : found][::-1], needle[at - before : at][::-1])
    right = _alike(text[found : found + len(needle) - at], needle[at:])
    return found - left, found + right


def _alike(one: str, two: str) -> int:
    """How many characters two texts begin with alike; halving, for an agent may repeat a key a million times."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == two[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
