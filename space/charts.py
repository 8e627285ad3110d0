"""Charts as SVG: drawn here, coloured by the page's own variables (so light and dark need nothing), no script, with a
title on every mark and a text for those who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from space.markup import el, join
from space.palette import PALETTE

_ROW = 26
_LEFT, _RIGHT = 150, 56


@dataclass(frozen=True)
class Mark:
    """One series or point: its name, colour and figures; ``low`` and ``high`` are whiskers where they are known."""

    name: str
    colour: str
    y: float
    x: float = 0.0
    low: float | None = None
    high: float | None = None
    symbol: str = "circle"
    text: str = ""


def figure(svg: Markup, caption: object, legend: Markup | None = None) -> Markup:
    return el("figure", el("figcaption", caption), svg, legend, class_="amb-chart")


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """Name and colour of each part."""
    return el("div", [el("span", el("i", style=f"background:{colour}"), name) for name, colour in entries],
              class_="amb-legend", aria_hidden="true")  # fmt: skip


def series_legend(names: Sequence[str]) -> Markup:
    """Name, colour and symbol of each series, in the palette's order."""
    entries = [
        el("span", el("b", _SIGNS[PALETTE.symbol(number)], style=f"color:{PALETTE.of(number)}"), " ", name)
        for number, name in enumerate(names)
    ]
    return el("div", entries, class_="amb-legend", aria_hidden="true")


_SIGNS = {"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲"}


def dots(marks: Sequence[Mark], *, label: str, width: int = 560) -> Markup:
    """One row a mark: a dot at ``y``, with whiskers, on the part of the scale from 0 to 100 that holds them all."""
    height = _ROW * len(marks) + 34
    span = width - _LEFT - _RIGHT
    first, last = _decades(marks)

    def at(value: float) -> float:
        return _LEFT + span * (10 * value - first) / (last - first)

    grid = [_tick_x(at(step / 10), height - 26, f"{10 * step}") for step in range(first, last + 1)]
    rows = []
    for number, mark in enumerate(marks):
        y = _ROW * number + 15
        rows.append(el("text", _cut(mark.name, 20), x=_LEFT - 10, y=y + 4, text_anchor="end"))
        if mark.low is not None and mark.high is not None:
            rows.append(_whisker(at(mark.low), y, at(mark.high), y, mark.colour))
        rows.append(_dot(mark, at(mark.y), y))
        rows.append(el("text", f"{100 * mark.y:.1f}", x=width - _RIGHT + 12, y=y + 4))
    return _svg(width, height, label, [*grid, *rows], "amb-narrow-too")


def scatter(
    marks: Sequence[Mark],
    *,
    x_title: str,
    y_title: str,
    label: str,
    front: Sequence[int] = (),
    log: bool = False,
    width: int = 640,
    height: int = 380,
) -> Markup:
    """Points with whiskers; ``y`` on the part of the scale from 0 to 100 that holds them all; ``front`` are the marks
    that a dashed line joins, in order of x.
    """
    left, right, top, bottom = 52, 24, 14, 44
    first, last = _decades(marks)
    ticks = _ticks([mark.x for mark in marks], log=log)
    lowest, highest = ticks[0], ticks[-1]

    def across(value: float) -> float:
        share = (
            math.log(max(value, lowest) / lowest) / math.log(highest / lowest)
            if log
            else (value - lowest) / (highest - lowest)
        )
        return left + (width - left - right) * share

    def up(value: float) -> float:
        return top + (height - top - bottom) * (last - 10 * value) / (last - first)

    parts = [_tick_x(across(tick), height - bottom, f"{tick:g}", top) for tick in ticks]
    for step in range(10 * first, 10 * last + 1, 10):
        y = up(step / 100)
        parts.append(el("line", x1=left, x2=width - right, y1=y, y2=y, class_="grid"))
        parts.append(el("text", step, x=left - 8, y=y + 4, text_anchor="end", class_="soft"))
    line = " ".join(f"{across(marks[i].x):.1f},{up(marks[i].y):.1f}" for i in front)
    parts.append(el("polyline", points=line, class_="front"))
    taken = [(across(mark.x) - 8, up(mark.y) - 8, across(mark.x) + 8, up(mark.y) + 8) for mark in marks]
    for number, mark in enumerate(marks):
        x, y = across(mark.x), up(mark.y)
        if mark.low is not None and mark.high is not None:
            parts.append(_whisker(x, up(mark.low), x, up(mark.high), mark.colour))
        parts.append(_dot(mark, x, y))
        name = _cut(mark.name, 20)
        anchor, place, below, box = _label_place(x, y, 7.4 * len(name), (left, width - right), taken)
        taken.append(box)
        weight = "650" if number in front else None
        parts.append(
            el("text", name, x=f"{place:.1f}", y=f"{below:.1f}", text_anchor=anchor, font_weight=weight)
        )
    middle = (left + width - right) / 2
    parts.append(el("text", x_title, x=middle, y=height - 6, text_anchor="middle", class_="soft"))
    parts.append(el("text", y_title, x=-(height - bottom) / 2, y=13, text_anchor="middle", class_="soft",
                    transform="rotate(-90)"))  # fmt: skip
    return _svg(width, height, label, parts)


_Box = tuple[float, float, float, float]


def _label_place(
    x: float, y: float, wide: float, within: tuple[float, float], taken: Sequence[_Box]
) -> tuple[str, float, float, _Box]:
    """Where a point's name stands: the first place around it where it covers nothing, else where it covers least."""
    places: list[tuple[int, str, float, float, _Box]] = []
    for dy in (-8, 18, 4):
        for anchor, dx in (("start", 10), ("end", -10)):
            start = x + dx - (wide if anchor == "end" else 0)
            box = (start, y + dy - 11, start + wide, y + dy + 3)
            outside = start < within[0] or start + wide > within[1]
            places.append(
                (10 * outside + sum(_meet(box, other) for other in taken), anchor, x + dx, y + dy, box)
            )
    _, anchor, place, base, box = min(places, key=lambda found: found[0])
    return anchor, place, base, box


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _decades(marks: Sequence[Mark]) -> tuple[int, int]:
    """The tens between which all marks with their whiskers lie, in [0, 10]."""
    lowest = min([mark.y if mark.low is None else mark.low for mark in marks], default=0.0)
    highest = max([mark.y if mark.high is None else mark.high for mark in marks], default=1.0)
    return max(0, math.floor(10 * lowest - 0.2)), min(10, math.ceil(10 * highest + 0.2))


def lines(
    series: Sequence[Sequence[Mark]],
    places: Sequence[str],
    *,
    label: str,
    width: int = 640,
    height: int = 300,
) -> Markup:
    """One line a series over named places; a mark's ``x`` is the number of its place. ``y`` from 0 to 100."""
    left, right, top, bottom = 40, 20, 14, 30
    step = (width - left - right) / max(1, len(places))

    def across(mark: Mark, number: int) -> float:
        return left + step * (mark.x + 0.5) + 5 * (number - (len(series) - 1) / 2)

    def up(value: float) -> float:
        return top + (height - top - bottom) * (1 - min(max(value, 0.0), 1.0))

    parts = []
    for tick in range(0, 101, 20):
        y = up(tick / 100)
        parts.append(el("line", x1=left, x2=width - right, y1=y, y2=y, class_="grid"))
        parts.append(el("text", tick, x=left - 8, y=y + 4, text_anchor="end", class_="soft"))
    for place, name in enumerate(places):
        parts.append(el("text", name, x=left + step * (place + 0.5), y=height - 8, text_anchor="middle"))
    for number, marks in enumerate(series):
        line = " ".join(f"{across(mark, number):.1f},{up(mark.y):.1f}" for mark in marks)
        if marks:
            parts.append(el("polyline", points=line, fill="none", stroke=marks[0].colour, stroke_width=2))
        for mark in marks:
            x = across(mark, number)
            if mark.low is not None and mark.high is not None:
                parts.append(_whisker(x, up(mark.low), x, up(mark.high), mark.colour))
            parts.append(_dot(mark, x, up(mark.y)))
    return _svg(width, height, label, parts)


def bars(rows: Sequence[tuple[str, Sequence[Mark]]], *, label: str, width: int = 560) -> Markup:
    """One row a name, its marks' ``y`` (shares, at most 1 in all) laid end to end."""
    height = _ROW * len(rows) + 30
    span = width - _LEFT - _RIGHT
    parts = [_tick_x(_LEFT + span * step / 100, height - 24, f"{step} %") for step in range(0, 101, 25)]
    for number, (name, marks) in enumerate(rows):
        y = _ROW * number + 4
        parts.append(el("text", _cut(name, 20), x=_LEFT - 10, y=y + 14, text_anchor="end"))
        x = float(_LEFT)
        for mark in marks:
            wide = span * mark.y
            text = el("title", mark.text or f"{mark.name}: {100 * mark.y:.1f} %")
            parts.append(
                el("rect", text, x=f"{x:.1f}", y=y, width=f"{wide:.1f}", height=_ROW - 8, fill=mark.colour)
            )
            x += wide
    return _svg(width, height, label, parts, "amb-narrow-too")


def pareto(marks: Sequence[Mark]) -> list[int]:
    """The marks that no other beats: none as cheap (``x``) is better (``y``). In order of x."""
    order = sorted(range(len(marks)), key=lambda i: (marks[i].x, -marks[i].y))
    front: list[int] = []
    for i in order:
        if not front or marks[i].y > marks[front[-1]].y:
            front.append(i)
    return front


def _svg(width: int, height: int, label: str, parts: Sequence[object], class_: str | None = None) -> Markup:
    return el("svg", el("title", label), join(parts), viewBox=f"0 0 {width} {height}", width=width, height=height,
              role="img", aria_label=label, class_=class_)  # fmt: skip


def _dot(mark: Mark, x: float, y: float) -> Markup:
    text = el("title", mark.text or f"{mark.name}: {100 * mark.y:.1f}")
    paint = {"fill": mark.colour, "stroke": "var(--amb-page)", "stroke_width": 1.5}
    match mark.symbol:
        case "square":
            return el("rect", text, x=f"{x - 5:.1f}", y=f"{y - 5:.1f}", width=10, height=10, **paint)
        case "diamond":
            return el("path", text, d=f"M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7-7z", **paint)
        case "triangle-up":
            return el("path", text, d=f"M{x:.1f} {y - 7:.1f}l7 12h-14z", **paint)
        case _:
            return el("circle", text, cx=f"{x:.1f}", cy=f"{y:.1f}", r=6, **paint)


def _whisker(x1: float, y1: float, x2: float, y2: float, colour: str) -> Markup:
    """A line with caps, across or upright."""
    cap = "v-10m0 5" if y1 == y2 else "h-10m5 0"
    start = f"M{x1:.1f} {y1 + 5:.1f}{cap}" if y1 == y2 else f"M{x1 + 5:.1f} {y1:.1f}{cap}"
    end = "m0 5v-10" if y1 == y2 else "m5 0h-10"
    path = f"{start}L{x2:.1f} {y2:.1f}{end}"
    return el("path", d=path, fill="none", stroke=colour, stroke_width=2, class_="whisker")


def _tick_x(x: float, bottom: float, text: str, top: float = 0.0) -> Markup:
    line = el("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=top, y2=bottom, class_="grid")
    return join([line, el("text", text, x=f"{x:.1f}", y=bottom + 16, text_anchor="middle", class_="soft")])


def _ticks(values: Sequence[float], *, log: bool) -> list[float]:
    """Round places on an axis that hold all values."""
    if log:
        positive = [value for value in values if value > 0] or [1.0]
        first = math.floor(math.log10(min(positive)))
        last = max(first + 1, math.ceil(math.log10(max(positive))))
        return [10.0**power for power in range(first, last + 1)]
    highest = max([*values, 1e-9])
    step = 10.0 ** math.floor(math.log10(highest))
    step = next(step * part for part in (0.1, 0.2, 0.25, 0.5, 1, 2) if highest / (step * part) <= 6)
    return [step * number for number in range(math.ceil(highest / step) + 1)]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
