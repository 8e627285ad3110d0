"""Answers, classes and reports: what was asked, what each run said, and word by word what tells them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from PIL import Image

from evaluator.metrics.observation import CONCEPTS, observations
from evaluator.tracks.classification import ClassAnswer
from space.markup import el, join, section, table
from space.textdiff import show_diff, similarity
from space.viewer.canvas import grey, in_colour, picture
from space.viewer.case import CaseView, Side
from space.viewer.panels import absent, beside, columns, figure
from space.viewer.read import Pictures
from tasks.schema import LabelOutput, ReportOutput

MAX_SIDE = 420
MAX_SHOWN = 8000


def show(view: CaseView) -> Markup:
    """The question or study, then a column for every side."""
    figures = [_column(view, side) if side.output is not None else absent(side) for side in view.sides]
    return el("div", beside(_pictures(view), columns(figures, view, _asked(view))), _findings(view))


def _asked(view: CaseView) -> Markup | None:
    if not isinstance(view.given, Pictures) or not view.given.question:
        return None
    options = [el("li", option) for option in view.given.options]
    asked = el("p", view.given.question[:MAX_SHOWN], class_="amb-question")
    return el("div", asked, el("ol", options, class_="amb-options") if options else None)


def _pictures(view: CaseView) -> Markup | None:
    if not isinstance(view.given, Pictures) or not view.given.pictures:
        return None
    images = [
        picture(_small(pixels), f"{name} of case {view.case_id}", class_="amb-slice")
        for name, pixels in view.given.pictures
    ]
    return el("div", images, class_="amb-planes")


def _small(pixels: Any) -> Any:
    if pixels.dtype != np.uint8:
        pixels = grey(pixels, (float(pixels.min()), float(pixels.max())))
    image = Image.fromarray(in_colour(pixels))
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    return np.asarray(image)


def _column(view: CaseView, side: Side) -> Markup:
    if isinstance(side.output, ClassAnswer):
        return figure(side, _label(view, side))
    text = side.output[:MAX_SHOWN]
    base = _base(view)
    if base is None or base is side:
        return figure(side, el("p", text, class_="amb-said"))
    said = base.output[:MAX_SHOWN]
    alike = el(
        "p", f"{100 * similarity(said, text):.0f} % of words shared with {base.name}", class_="amb-counts"
    )
    return figure(side, show_diff(said, text), alike)


def _base(view: CaseView) -> Side | None:
    """What the others are held against: the reference, without one the first run."""
    return view.reference or next(iter(view.drawable), None)


def _label(view: CaseView, side: Side) -> Markup:
    answer: ClassAnswer = side.output
    right = view.reference.output.label if view.reference and not side.is_reference else None
    mark = "" if right is None else " amb-right" if answer.label == right else " amb-wrong"
    bars = None
    if answer.probabilities is not None and isinstance(view.task.output, LabelOutput):
        bars = el("ul", [
            el("li", el("span", name), el("meter", min="0", max="1", value=f"{value:.4f}", aria_label=name),
               el("span", f"{value:.3f}"))
            for name, value in zip(view.task.output.classes, answer.probabilities, strict=True)
        ], class_="amb-probabilities")  # fmt: skip
    return join([el("p", answer.label, class_=f"amb-said{mark}"), bars])


def _findings(view: CaseView) -> Markup | None:
    """Of reports of the chest: which observations each side affirms, as the evaluator's rules read them."""
    output = view.task.output
    if not isinstance(output, ReportOutput) or "obs_rouge" not in view.task.metric.sets:
        return None
    sides = view.drawable
    if not sides:
        return None
    said = [observations(side.output) for side in sides]
    rows = [
        [concept.replace("_", " "), *(_finding(concept in one) for one in said)]
        for concept in CONCEPTS
        if any(concept in one for one in said)
    ]
    if not rows:
        return section("Findings", el("p", "No side affirms any of the twelve observations."))
    heads = ["observation", *(side.name for side in sides)]
    return section(
        "Findings", table(heads, rows, caption="Observations that each text affirms, read by rules")
    )


def _finding(affirmed: bool) -> Markup:
    mark = "●" if affirmed else "–"
    return el(
        "span", mark, title="affirmed" if affirmed else "not affirmed", class_="amb-found" if affirmed else ""
    )
