"""What all viewers share: columns of figures with a caption, and sentences in place of what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from space.markup import el, note
from space.viewer.case import CaseView, Side


def figure(side: Side, *content: object) -> Markup:
    """A side's column: its name, what it shows, and its figures of this case."""
    facts = [el("span", el("b", name), " ", value) for name, value in side.facts]
    caption = el("figcaption", el("strong", side.name), el("span", facts, class_="amb-figures"))
    kind = "amb-side amb-reference" if side.is_reference else "amb-side"
    return el("figure", caption, el("div", content), class_=kind)


def absent(side: Side) -> Markup:
    """A side without output says why."""
    return figure(side, note(side.fault, "bad"))


def columns(figures: Iterable[Markup], view: CaseView, *above: object) -> Markup:
    """All sides, one beside the other where the screen is wide enough, and the note of the case."""
    said = note(view.note, "warning") if view.note else None
    return el("div", said, above, el("div", list(figures), class_="amb-sides"), class_="amb-viewer")


def beside(main: Markup | None, sides: Markup) -> Markup:
    """The main thing at the left, the sides at its right; one below the other on a narrow screen."""
    return sides if main is None else el("div", el("div", main), sides, class_="amb-beside")
