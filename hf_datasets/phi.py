"""Look for signs of real patients in what a trace shows: names from DICOM tags, record numbers, dates next to ids.

A finding blocks publication; a person has to look. The rules ask for a label or a form that our data never have, so
that an honest run passes, and they are no proof that nothing is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from hf_datasets.chunks import line_blocks
from hf_datasets.phi_rules import ANY_DATE, NOBODY, RULES

MOST_FINDINGS = 20
"""Of one file; whoever has to look needs no more to know what it is about."""
_LABEL_SHOWN = 40
_APART = "\n" * 5
"""Between two texts of an event: no rule reaches across so many lines."""


@dataclass(frozen=True)
class Finding:
    """Why a run may not be published: where it was seen, and what, in words without the thing itself."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def screen_trace(chunks: Iterable[bytes], name: str) -> list[Finding]:
    """Signs of patients in a trace, at most `MOST_FINDINGS`.

    Parameters
    ----------
    chunks
        The JSON lines, cut anywhere.
    name
        What the file is called in a finding; the line is added.

    Returns
    -------
    list of Finding
        Place, kind, and the label with the value masked.
    """
    findings: list[Finding] = []
    own: date | None = None
    for number, line in enumerate(_lines(chunks), 1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the redactor refuses such a line by its number
        own = own or _started(event)
        findings += (
            Finding(f"{name}:{number}", what) for text in _texts(event) for what in _signs(text, own)
        )
        if len(findings) >= MOST_FINDINGS:
            break
    return findings[:MOST_FINDINGS]


def screen_text(text: str, name: str) -> list[Finding]:
    """Signs of patients in a text that an agent handed in, such as a report; at most `MOST_FINDINGS`."""
    return [Finding(name, what) for what in _signs(text, None)][:MOST_FINDINGS]


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for block in line_blocks(chunks):
        yield from block.splitlines()


def _signs(text: str, own: date | None) -> Iterator[str]:
    """What the rules say of a text, each place once."""
    lowered = text.lower()
    dated = ANY_DATE.search(text) is not None
    seen: set[int] = set()
    for rule in RULES:
        if rule.hints and not any(hint in lowered for hint in rule.hints):
            continue
        if "date" in rule.pattern.groupindex and not dated:
            continue
        for match in rule.pattern.finditer(text):
            if match.end() not in seen and not _is_harmless(match, own):
                seen.add(match.end())
                yield f"{rule.kind}: {_masked(match)}"


def _is_harmless(match: re.Match[str], own: date | None) -> bool:
    """Values that name nobody, and dates of the run itself or of the staged files."""
    if NOBODY.search(match["value"]):
        return True
    return "date" in match.re.groupindex and _is_ours(match["date"], own)


def _is_ours(text: str, own: date | None) -> bool:
    for form in ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"):
        try:
            day = datetime.strptime(text, form).date()  # noqa: DTZ007 - a day on a calendar, no moment
        except ValueError:
            continue
        return day in (date(1980, 1, 1), date(1970, 1, 1)) or (
            own is not None and abs(day - own) <= timedelta(days=3)
        )
    return False


def _masked(match: re.Match[str]) -> str:
    """The label as it stands, the value with its letters as x and its digits as 0."""
    label = match.string[match.start() : match.start("value")]
    value = re.sub(r"\d", "0", re.sub(r"[^\W\d_]", "x", match["value"]))
    return f"{label[-_LABEL_SHOWN:]}{value[:_LABEL_SHOWN]}".replace("\n", " ")


def _started(event: Any) -> date | None:
    at = event.get("at") if isinstance(event, dict) else None
    try:
        return datetime.fromisoformat(at).date() if isinstance(at, str) else None
    except ValueError:
        return None


def _texts(value: Any) -> Iterator[str]:
    """Every string of a JSON value; one that is JSON itself, such as a call's arguments, is opened."""
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            try:
                yield from _texts(json.loads(value))
                return
            except (ValueError, RecursionError):
                pass
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
