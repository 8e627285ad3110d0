"""Boxes over the image, those under the threshold left out; with a reference, hits, false and missed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from PIL import Image

from evaluator.tracks.detection import Box, Corners
from space.markup import el
from space.palette import PALETTE
from space.viewer.canvas import Colours, colour_of, grey, in_colour, legend, picture
from space.viewer.case import CaseView, Side
from space.viewer.look import AGREEMENT, Look
from space.viewer.panels import absent, columns, figure
from tasks.schema import BoxOutput

MAX_BOXES = 100
"""Best boxes of a side that are drawn."""
MAX_SIDE = 640
HIT_IOU = 0.5


@dataclass(frozen=True)
class Matched:
    """Places of boxes and of references that belong together, and of those left alone."""

    hits: frozenset[int]
    false: frozenset[int]
    missed: frozenset[int]

    @property
    def f1(self) -> float:
        total = 2 * len(self.hits) + len(self.false) + len(self.missed)
        return 2 * len(self.hits) / total if total else 1.0


def match(found: Sequence[Box], expected: Sequence[Box]) -> Matched:
    """Best box first, each takes the reference of its class that it overlaps most, at IoU 0.5 or more."""
    free = set(range(len(expected)))
    hits = set()
    for place in sorted(range(len(found)), key=lambda place: -found[place].score):
        box = found[place]
        rivals = [
            (iou(box.corners, expected[one].corners), one) for one in free if expected[one].label == box.label
        ]
        best = max(rivals, default=(0.0, -1))
        if best[0] >= HIT_IOU:
            hits.add(place)
            free.remove(best[1])
    return Matched(frozenset(hits), frozenset(range(len(found))) - hits, frozenset(free))


def iou(a: Corners, b: Corners) -> float:
    """Intersection over union of two boxes, in [0, 1]."""
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0.0, wide) * max(0.0, high)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / union if union > 0 else 0.0


def show(view: CaseView, look: Look) -> Markup:
    """Every side's boxes of at least the threshold's score over the image."""
    assert isinstance(view.task.output, BoxOutput)
    figures = [_figure(view, side, look) if side.output is not None else absent(side) for side in view.sides]
    return el("div", _legend(view, look), columns(figures, view))


def _figure(view: CaseView, side: Side, look: Look) -> Markup:
    assert isinstance(view.task.output, BoxOutput)
    classes = view.task.output.classes
    found = [box for box in side.output if box.score >= look.threshold or side.is_reference][:MAX_BOXES]
    expected = view.reference.output if view.reference and not side.is_reference else None
    matched = match(found, expected) if expected is not None else None
    pixels, size = _image(view)
    shapes = [
        _box(box, _colour(place, box, matched, look), classes[box.label], side.is_reference)
        for place, box in reversed(list(enumerate(found)))
    ]
    if expected is not None and matched is not None and look.layer == AGREEMENT:
        missed = [expected[place] for place in sorted(matched.missed)]
        shapes += [_box(box, PALETTE.false_negative, classes[box.label], True) for box in missed]
    counts = _counts(found, len(side.output), matched)
    svg = el(
        "svg",
        shapes,
        viewBox=f"0 0 {size[0]} {size[1]}",
        role="img",
        aria_label=f"boxes of {side.name}: {counts}",
    )
    image = picture(pixels, f"image of case {view.case_id}")
    return figure(side, el("div", image, svg, class_="amb-boxes"), el("p", counts, class_="amb-counts"))


def _counts(found: Sequence[Box], total: int, matched: Matched | None) -> str:
    text = f"{len(found)} of {total} boxes"
    if matched is None:
        return text
    return (
        f"{text}: {len(matched.hits)} hits, {len(matched.false)} false, {len(matched.missed)} missed, "
        f"F1 {100 * matched.f1:.1f}"
    )


def _image(view: CaseView) -> tuple[Colours, tuple[float, float]]:
    """The image, made smaller where it is large, and the size that the boxes are measured in."""
    if view.given is None:
        reach = [box.corners for side in view.drawable for box in side.output[:MAX_BOXES]] or [(0, 0, 1, 1)]
        wide, high = (min(10_000.0, max(max(one[axis] for one in reach), 1.0)) for axis in (2, 3))
        scale = MAX_SIDE / max(wide, high)
        return np.zeros((max(1, round(high * scale)), max(1, round(wide * scale)), 3), np.uint8), (wide, high)
    pixels = view.given.pictures[0][1]
    if pixels.dtype != np.uint8:
        pixels = grey(pixels, (float(pixels.min()), float(pixels.max())))
    height, width = pixels.shape[:2]
    image = Image.fromarray(in_colour(pixels))
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    return np.asarray(image), (width, height)


def _colour(place: int, box: Box, matched: Matched | None, look: Look) -> str:
    if matched is not None and look.layer == AGREEMENT:
        return PALETTE.true_positive if place in matched.hits else PALETTE.false_positive
    return PALETTE.of(box.label)


def _box(box: Box, colour: str, name: str, dashed: bool) -> Markup:
    """A rectangle with its class and score; a dark line under it keeps it seen on light ground."""
    x1, y1, x2, y2 = (min(20_000.0, max(-20_000.0, value)) for value in box.corners)
    place = {"x": f"{x1:.1f}", "y": f"{y1:.1f}", "width": f"{x2 - x1:.1f}", "height": f"{y2 - y1:.1f}"}
    label = name if dashed else f"{name} {box.score:.2f}"
    return el(
        "g",
        el("title", label),
        el("rect", **place, class_="amb-under"),
        el("rect", **place, stroke=colour, class_="amb-dashed" if dashed else None),
        el("text", label if not dashed else "", x=place["x"], y=f"{y1 - 2:.1f}", fill=colour),
        data_score=f"{box.score:.3f}",
    )


def _legend(view: CaseView, look: Look) -> Markup:
    assert isinstance(view.task.output, BoxOutput)
    if look.layer == AGREEMENT and view.reference is not None:
        from space.viewer.canvas import FALSE, HIT, MISSED

        return legend([("hit", HIT), ("false", FALSE), ("missed (dashed)", MISSED)])
    return legend([(name, colour_of(number)) for number, name in enumerate(view.task.output.classes)])
