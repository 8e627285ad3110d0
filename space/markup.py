"""HTML put together from values: whatever is not markup already is escaped, so no text of a record can become a tag."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

_FIGURE = re.compile(r"[-+]?\$?[\d,.]+( %)?")
_VOID = {"br", "hr", "img", "input"}


def el(name: str, *children: object, **attributes: object) -> Markup:
    """One element.

    Parameters
    ----------
    name : str
        Tag name, ours.
    children : object
        Markup stays, None is left out, an iterable is joined, everything else is escaped text.
    attributes : object
        ``class_`` for ``class``, ``data_x`` for ``data-x``; None and False are left out, True is a bare attribute.
    """
    opening = Markup("<{}{}>").format(Markup(name), _attributes(attributes))
    if name in _VOID:
        return opening
    return opening + join(children) + Markup("</{}>").format(Markup(name))


def join(children: Iterable[object], between: object = "") -> Markup:
    """Children one after the other, escaped where they are not markup."""
    return escape(between).join(_flat(child) for child in children if child is not None)


def _flat(child: object) -> Markup:
    if isinstance(child, str):
        return escape(child)
    return join(child) if isinstance(child, Iterable) else escape(child)


def _attributes(attributes: dict[str, object]) -> Markup:
    parts = []
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(Markup(" {}").format(Markup(name)))
        elif value is not None and value is not False:
            parts.append(Markup(' {}="{}"').format(Markup(name), value))
    return Markup("").join(parts)


def table(
    heads: Sequence[object], rows: Iterable[Sequence[object]], *, caption: str, class_: str = ""
) -> Markup:
    """A table that scrolls sideways in its own box; its first column stays in sight, columns of figures stand right."""
    lines = list(rows)
    kinds = ["num" if _are_figures([line[place] for line in lines]) else None for place in range(len(heads))]
    kinds[:1] = [None]
    head = el(
        "tr", [el("th", cell, scope="col", class_=kind) for cell, kind in zip(heads, kinds, strict=True)]
    )
    body = [
        el(
            "tr",
            el("th", line[0], scope="row"),
            [el("td", cell, class_=kind) for cell, kind in zip(line[1:], kinds[1:], strict=True)],
        )
        for line in lines
    ]
    inner = el("table", el("caption", caption), el("thead", head), el("tbody", body))
    return el(
        "div", inner, class_=f"amb-table {class_}".strip(), tabindex="0", role="region", aria_label=caption
    )


def _are_figures(cells: Sequence[object]) -> bool:
    texts = {cell.striptags() if isinstance(cell, Markup) else str(cell) for cell in cells} - {"–"}
    return bool(texts) and all(_FIGURE.fullmatch(text) for text in texts)


def pairs(rows: Iterable[tuple[object, object]]) -> Markup:
    """A list of names and values."""
    return el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in rows], class_="amb-pairs")


def note(text: object, kind: str = "info") -> Markup:
    """A sentence that stands out; ``kind`` is ``info``, ``warning`` or ``bad``."""
    return el("p", text, class_=f"amb-note amb-{kind}", role="note")


def chip(text: object, kind: str = "", title: str | None = None) -> Markup:
    """A short word in a frame."""
    return el("span", text, class_=f"amb-chip {kind}".strip(), title=title)


def section(heading: str, *children: object, open_: bool | None = None) -> Markup:
    """A part of a page under its heading; with ``open_`` given, one that folds."""
    if open_ is None:
        return el("section", el("h3", heading), *children, class_="amb-section")
    return el("details", el("summary", heading), *children, class_="amb-section", open=open_)


def percent(value: float | None, digits: int = 1) -> str:
    """A score in [0, 1] as the board writes it, x100; a dash for a missing one."""
    return "–" if value is None else f"{100 * value:.{digits}f}"


def number(value: float | None, digits: int = 4) -> str:
    """A figure with so many significant digits; a dash for a missing one."""
    return "–" if value is None else f"{value:.{digits}g}"


def dollars(value: float | None) -> str:
    return "–" if value is None else f"${value:.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"


def duration(seconds: float) -> str:
    """``4.2 s``, ``3 min 05 s`` or ``2 h 07 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: float) -> str:
    """Bytes, in the unit that keeps the figure short."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
