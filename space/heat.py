"""A table whose cells are shaded by their value, for what a chart would hide: the numbers stay readable."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from space.boardtable import DASH
from space.markup import el

Cell = tuple[float | None, str]
"""A share in [0, 1], None where it is missing, and the text on hover."""


def heat_table(corner: str, heads: Sequence[tuple[str, str]], rows: Sequence[tuple[object, Sequence[Cell]]],
               caption: str) -> Markup:  # fmt: skip
    """``heads``: each column's name and definition. Values are shown x100."""
    top = [el("th", corner, scope="col")]
    top += [el("th", el("abbr", name, title=text), scope="col", class_="num") for name, text in heads]
    body = [el("tr", el("th", name, scope="row"), [_cell(*cell) for cell in cells]) for name, cells in rows]
    inner = el("table", el("caption", caption), el("thead", el("tr", top)), el("tbody", body))
    return el("div", inner, class_="amb-table amb-heats", tabindex="0", role="region", aria_label=caption)


def _cell(value: float | None, text: str) -> Markup:
    if value is None or value != value:
        return el("td", DASH, class_="num none", title=text or None)
    shade = f"--share:{min(max(value, 0.0), 1.0):.3f}"
    return el("td", f"{100 * value:.1f}", class_="num amb-heat", style=shade, title=text or None)
