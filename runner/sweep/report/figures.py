"""Figures of a report as SVG: dots with error bars in one or several panels, stacked shares, cost against score.

Colours come from variables of the page, with fallbacks, so that a figure reads in light and dark surroundings and as a
file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isnan, log10

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a800")
"""Told apart with any colour vision (Okabe and Ito)."""

CODE_COLOURS = {"E1": "#cc79a7", "E2": "#56b4e9", "E3": "#e69f00", "E4": "#0072b2", "E5": "#d55e00"}

_ROW = 26
_GAP = 24
_LABEL = 150
_TOP = 34
_BOTTOM = 30
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:var(--ink,#222)}.t{font-weight:600;font-size:13px}"
    ".s{fill:var(--faint,#666);font-size:11px}.g{stroke:var(--line,#ddd);stroke-width:1}.e{stroke-width:2}"
)


@dataclass(frozen=True)
class Dot:
    """A value and its interval; NaN where unknown."""

    label: str
    mean: float
    low: float = float("nan")
    high: float = float("nan")


def panels(title: str, groups: Mapping[str, Sequence[Dot]]) -> str:
    """One panel a group, side by side, with one row a label; x from 0 to 100. All groups list the same labels."""
    labels = [dot.label for dot in next(iter(groups.values()))]
    width = 420 if len(groups) == 1 else max(105, 780 // len(groups))
    height = _TOP + 18 + _ROW * len(labels) + _BOTTOM
    parts = [
        _text(_LABEL - 8, _TOP + 18 + _ROW * (i + 0.5) + 4, name, "end") for i, name in enumerate(labels)
    ]
    for number, (name, dots) in enumerate(groups.items()):
        parts.append(_panel(_LABEL + number * (width + _GAP), width, name, dots))
    return _svg(title, _LABEL + len(groups) * (width + _GAP) + 10, height, parts)


def _panel(left: float, width: float, name: str, dots: Sequence[Dot]) -> str:
    top, bottom = _TOP + 18, _TOP + 18 + _ROW * len(dots)
    parts = [_text(left + width / 2, _TOP + 8, name, "middle")] if name else []
    ticks = (0, 50, 100) if width < 250 else (0, 20, 40, 60, 80, 100)
    for tick in ticks:
        x = left + width * tick / 100
        anchor = {0: "start", 100: "end"}.get(tick, "middle")
        parts += [_line(x, top, x, bottom, "g"), _text(x, bottom + 16, str(tick), anchor, "s")]
    for row, dot in enumerate(dots):
        parts.append(_dot(left, width, top + _ROW * (row + 0.5), dot, COLOURS[row % len(COLOURS)]))
    return "".join(parts)


def _dot(left: float, width: float, y: float, dot: Dot, colour: str) -> str:
    if isnan(dot.mean):
        return _text(left + 4, y + 4, "open", "start", "s")
    x = left + width * dot.mean
    parts = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.5' fill='{colour}'/>"]
    words = f"{dot.label}: {100 * dot.mean:.1f}"
    if not isnan(dot.low):
        low, high = left + width * dot.low, left + width * dot.high
        parts.insert(0, _line(low, y, high, y, "e", colour))
        parts += [_line(end, y - 4, end, y + 4, "e", colour) for end in (low, high)]
        words += f" ({100 * dot.low:.1f} to {100 * dot.high:.1f})"
    return f"<g><title>{escape(words)}</title>{''.join(parts)}</g>"


def code_shares(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """One bar a label, split into its shares of error codes (in [0, 1]); a label without any has no bar."""
    width, top = 560, _TOP + 24
    parts = [
        f"<rect x='{_LABEL + 70 * i}' y='{_TOP - 2}' width='11' height='11' fill='{colour}'/>"
        + _text(_LABEL + 70 * i + 16, _TOP + 8, name)
        for i, (name, colour) in enumerate(CODE_COLOURS.items())
    ]
    for row, (label, shares) in enumerate(rows.items()):
        y, x = top + _ROW * row, float(_LABEL)
        parts.append(_text(_LABEL - 8, y + 17, label, "end"))
        for name, share in shares.items():
            place = f"x='{x:.1f}' y='{y + 4}' width='{width * share:.1f}' height='{_ROW - 8}'"
            parts.append(
                f"<rect {place} fill='{CODE_COLOURS[name]}'>"
                f"<title>{escape(f'{label}: {name} {100 * share:.1f} %')}</title></rect>"
            )
            x += width * share
    return _svg(title, _LABEL + width + 20, top + _ROW * len(rows) + 12, parts)


def cost_against_score(title: str, dots: Sequence[Dot], costs: Sequence[float]) -> str:
    """Score (0 to 100) over US dollars a run on a logarithmic axis; only agents with both are drawn."""
    known = [
        (dot, cost, COLOURS[i % len(COLOURS)])
        for i, (dot, cost) in enumerate(zip(dots, costs, strict=True))
        if cost > 0 and not isnan(dot.mean)
    ]
    if not known:
        return ""
    left, top, width, height = 60, _TOP + 6, 560, 260
    first, last = (
        floor(log10(min(cost for _, cost, _ in known))),
        ceil(log10(max(cost for _, cost, _ in known))),
    )
    last = max(last, first + 1)
    parts = []
    for tick in (0, 20, 40, 60, 80, 100):
        y = top + height * (1 - tick / 100)
        parts += [_line(left, y, left + width, y, "g"), _text(left - 8, y + 4, str(tick), "end", "s")]
    for power in range(first, last + 1):
        x = left + width * (power - first) / (last - first)
        parts += [
            _line(x, top, x, top + height, "g"),
            _text(x, top + height + 16, f"${10.0**power:g}", "middle", "s"),
        ]
    for dot, cost, colour in known:
        x = left + width * (log10(cost) - first) / (last - first)
        y = top + height * (1 - dot.mean)
        if not isnan(dot.low):
            parts.append(
                _line(x, top + height * (1 - dot.low), x, top + height * (1 - dot.high), "e", colour)
            )
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{colour}'/>")
        anchor = "end" if x > left + 0.75 * width else "start"
        parts.append(_text(x + (-9 if anchor == "end" else 9), y - 6, dot.label, anchor))
    return _svg(title, left + width + 40, top + height + _BOTTOM, parts)


def _svg(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' "
        f"role='img' aria-label='{escape(title, quote=True)}'><style>{_STYLE}</style>"
        f"{_text(0, 16, title, css='t')}{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    named = f" class='{css}'" if css else ""
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'{named}>{escape(words)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, css: str, colour: str = "") -> str:
    stroke = f" stroke='{colour}'" if colour else ""
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' class='{css}'{stroke}/>"
