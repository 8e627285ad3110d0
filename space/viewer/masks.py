"""Label maps over the scan: contours, fill, or where two of them agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from evaluator.readers.nifti import Volume
from space.markup import el
from space.viewer.canvas import (
    AXIS,
    FALSE,
    HIT,
    MISSED,
    Colours,
    Layer,
    Mask,
    Plane,
    Point,
    Size,
    agreement,
    colour_of,
    cut,
    filled,
    grey,
    in_colour,
    legend,
    outlined,
    panel_size,
    picture,
    resized,
    scaled,
    window_of,
)
from space.viewer.case import CaseView, Side
from space.viewer.look import AGREEMENT, FILL, Look
from space.viewer.panels import absent, columns, figure
from tasks.schema import MaskOutput, Target

MAX_TARGETS = 8
"""Structures drawn at once: so many colours can be told apart."""
LARGE, SMALL = 460, 300


def target_names(view: CaseView) -> list[str]:
    """The structures that can be chosen."""
    assert isinstance(view.task.output, MaskOutput)
    return [target.name for target in view.task.output.targets]


def focus(view: CaseView) -> Point:
    """Where the planes cut most of what the reference, else the first run, has found; else the middle."""
    sides = [side for side in (view.reference, *view.drawable) if side is not None]
    for side in sides:
        labels = max(side.output.values(), key=lambda volume: int(np.count_nonzero(volume.data))).data
        if labels.any():
            x, y, z = (
                int(np.count_nonzero(labels, axis=others).argmax()) for others in ((1, 2), (0, 2), (0, 1))
            )
            return x, y, z
    shape = _grid(view).data.shape
    return shape[0] // 2, shape[1] // 2, shape[2] // 2


def show(view: CaseView, look: Look) -> Markup:
    """Every side with the chosen structures, in the chosen planes."""
    targets = _chosen(view, look)
    slices = [_slice(view, look, plane) for plane in look.planes]
    figures = [
        _figure(view, side, look, targets, slices) if side.output else absent(side) for side in view.sides
    ]
    return el("div", _legend(view, look, targets), columns(figures, view))


def _chosen(view: CaseView, look: Look) -> list[Target]:
    assert isinstance(view.task.output, MaskOutput)
    wanted = [
        target for target in view.task.output.targets if not look.targets or target.name in look.targets
    ]
    return wanted[:MAX_TARGETS]


def _grid(view: CaseView) -> Volume:
    if view.given is not None:
        given: Volume = view.given
        return given
    volume: Volume = next(iter(view.drawable[0].output.values()))
    return volume


@dataclass(frozen=True)
class _Slice:
    """One plane at one place: the scan as all sides show it, at the size of their panels."""

    plane: Plane
    place: int
    count: int
    size: Size
    scan: Colours


def _slice(view: CaseView, look: Look, plane: Plane) -> _Slice:
    grid, place = _grid(view), look.place[AXIS[plane]]
    size = panel_size(grid.data.shape, grid.spacing, plane, LARGE if len(look.planes) == 1 else SMALL)
    count = grid.data.shape[AXIS[plane]]
    if view.given is None or view.window is None:
        return _Slice(plane, place, count, size, np.zeros((size[1], size[0], 3), np.uint8))
    window = window_of(view.given.data, view.window, look.window)
    scan = in_colour(resized(grey(cut(view.given.data, plane, place), window), size))
    return _Slice(plane, place, count, size, scan)


def _figure(
    view: CaseView, side: Side, look: Look, targets: Sequence[Target], slices: Sequence[_Slice]
) -> Markup:
    pictures = [_panel(view, side, look, targets, one) for one in slices]
    return figure(side, el("div", pictures, class_="amb-planes"))


def _panel(view: CaseView, side: Side, look: Look, targets: Sequence[Target], at: _Slice) -> Markup:
    against = _against(view, side)
    if look.layer == AGREEMENT and against is not None:
        layers = _agreement(side, against, targets, at)
        drawn, what = filled(at.scan, layers, look.opacity), f"agreement of {side.name} with {against.name}"
    else:
        layers = [
            Layer(scaled(mask, at.size), colour_of(number))
            for number, mask in enumerate(_masks(side, targets, at))
        ]
        names = ", ".join(target.name for target in targets)
        drawn, what = _drawn(at.scan, layers, look), f"{look.layer} of {names} by {side.name}"
    alt = f"{at.plane} slice {at.place + 1} of {at.count}, {what}"
    return picture(drawn, alt, class_="amb-slice")


def _drawn(scan: Colours, layers: Sequence[Layer], look: Look) -> Colours:
    """Fill, or lines that stay seen where a fill of that opacity would."""
    if look.layer == FILL:
        return filled(scan, layers, look.opacity)
    return outlined(scan, layers, min(1.0, look.opacity + 0.3))


def _masks(side: Side, targets: Sequence[Target], at: _Slice) -> list[Mask]:
    cuts: dict[str, Any] = {}
    for target in targets:
        if target.file not in cuts:
            cuts[target.file] = cut(side.output[target.file].data, at.plane, at.place)
    return [np.isin(cuts[target.file], target.ids) for target in targets]


def _against(view: CaseView, side: Side) -> Side | None:
    """What a side's agreement is held against: the reference, without one the first run; nothing for that itself."""
    other = view.reference or next(iter(view.drawable), None)
    return None if other is None or other is side else other


def _agreement(side: Side, other: Side, targets: Sequence[Target], at: _Slice) -> list[Layer]:
    ours, theirs = (_masks(one, targets, at) for one in (side, other))
    return [
        Layer(scaled(layer.mask, at.size), layer.colour)
        for pair in zip(ours, theirs, strict=True)
        for layer in agreement(*pair)
    ]


def _legend(view: CaseView, look: Look, targets: Sequence[Target]) -> Markup:
    other = view.reference or next(iter(view.drawable), None)
    if look.layer == AGREEMENT and other is not None:
        name = other.name
        return legend(
            [("both", HIT), (f"not in {name} (false)", FALSE), (f"only in {name} (missed)", MISSED)]
        )
    return legend([(target.name, colour_of(number)) for number, target in enumerate(targets)])
