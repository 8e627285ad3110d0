"""The viewer that fits a case."""

from __future__ import annotations

from markupsafe import Markup

from space.markup import el
from space.viewer import boxes, images, masks, words
from space.viewer.canvas import Point
from space.viewer.case import CaseView
from space.viewer.look import Look
from space.viewer.panels import absent, columns


def draw(view: CaseView, look: Look) -> Markup:
    """All sides of a case; where none has anything to draw, why."""
    if not view.drawable:
        return el("div", columns([absent(side) for side in view.sides], view))
    match view.task.output.kind:
        case "mask":
            return masks.show(view, look)
        case "image":
            return images.show(view, look)
        case "boxes":
            return boxes.show(view, look)
        case _:
            return words.show(view)


def focus(view: CaseView) -> Point:
    """Where a volume is looked at first."""
    if not view.drawable or view.task.output.kind not in ("mask", "image"):
        return 0, 0, 0
    return masks.focus(view) if view.task.output.kind == "mask" else images.focus(view)
