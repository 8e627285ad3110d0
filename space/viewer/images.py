"""Restored and synthesised images: a swipe between any two, all of them side by side, and what tells them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from evaluator.pictures import Window, window_for
from evaluator.readers.nifti import Volume
from space.markup import el
from space.palette import PALETTE
from space.viewer.canvas import (
    AXIS,
    Colours,
    Plane,
    Point,
    Size,
    cut,
    difference,
    grey,
    in_colour,
    legend,
    panel_size,
    picture,
    resized,
    rgb,
    window_of,
)
from space.viewer.case import CaseView, Side
from space.viewer.look import Look
from space.viewer.panels import absent, beside, columns, figure
from tasks.schema import ImageOutput

INPUT = "input"
LARGE, SMALL = 560, 340


def focus(view: CaseView) -> Point:
    """The middle of the volume."""
    x, y, z = _grid(view).data.shape
    return x // 2, y // 2, z // 2


def names(view: CaseView) -> list[str]:
    """What can lie on either side of the swipe."""
    given = [INPUT] if view.given is not None else []
    return given + [side.name for side in view.drawable]


def is_flat(view: CaseView) -> bool:
    """Whether there is but one plane to look at."""
    return "flat" in _grid(view).flags


@dataclass(frozen=True)
class _Cut:
    """A slice of one image: its values shown from 0 to 255, at the size of the panel."""

    name: str
    shown: Any
    side: Side | None


def show(view: CaseView, look: Look) -> Markup:
    """The swipe, then every image with its difference from the reference, else from the input."""
    plane = look.planes[0] if look.planes else "axial"
    if is_flat(view):
        plane = "axial"
    cuts = {one.name: one for one in _cuts(view, look, plane, LARGE)}
    small = _cuts(view, look, plane, SMALL)
    figures = [_figure(one, _base(view, small), plane) for one in small]
    figures += [absent(side) for side in view.sides if side.output is None]
    return beside(_swipe(cuts, look, plane), columns(figures, view, _key(view, small)))


def _grid(view: CaseView) -> Volume:
    """The finest grid there is: an output may be larger than its input."""
    volumes = [side.output for side in view.drawable] + ([view.given] if view.given is not None else [])
    grid: Volume = volumes[0]
    return grid


def _cuts(view: CaseView, look: Look, plane: Plane, longest: int) -> list[_Cut]:
    grid = _grid(view)
    size = panel_size(grid.data.shape, grid.spacing, plane, longest)
    found = []
    if view.given is not None and view.window is not None:
        window = window_of(view.given.data, view.window, look.window)
        place = look.place[AXIS[plane]] * view.given.data.shape[AXIS[plane]] // grid.data.shape[AXIS[plane]]
        found.append(_Cut(INPUT, _shown(view.given, plane, place, size, window), None))
    window = _output_window(view, look)
    found += [
        _Cut(side.name, _shown(side.output, plane, look.place[AXIS[plane]], size, window), side)
        for side in view.drawable
    ]
    return found


def _output_window(view: CaseView, look: Look) -> Window:
    """One window for all outputs: that of the task's range, so that none looks better for being shown otherwise."""
    assert isinstance(view.task.output, ImageOutput)
    shown = (view.reference or view.drawable[0]).output.data
    suits = window_for(np.asarray(view.task.output.data_range), f"{view.task.title} {view.task.modality}")
    return window_of(shown, suits, look.window)


def _shown(volume: Volume, plane: Plane, place: int, size: Size, window: Window) -> Any:
    return resized(grey(cut(volume.data, plane, place), window), size)


def _swipe(cuts: dict[str, _Cut], look: Look, plane: Plane) -> Markup | None:
    """Two images on top of each other with a bar between them that mouse, finger and arrow keys move."""
    listed = list(cuts)
    if len(listed) < 2:
        return None
    left = look.left if look.left in cuts else listed[0]
    right = look.right if look.right in cuts else listed[1]
    under, over = (
        picture(in_colour(cuts[name].shown), f"{plane} slice of {name}", exact=True) for name in (right, left)
    )
    bar = el(
        "input", type="range", min="0", max="100", value="50", class_="amb-bar",
        aria_label=f"Bar between {left} and {right}",
        oninput="this.parentElement.style.setProperty('--cut', this.value + '%')",
    )  # fmt: skip
    return el(
        "figure",
        el("figcaption", el("strong", left), el("span", "◀ drag ▶", aria_hidden="true"), el("strong", right)),
        el(
            "div",
            under,
            el("div", over, class_="amb-over"),
            el("span", class_="amb-line", aria_hidden="true"),
            bar,
            class_="amb-swipe",
        ),
        class_="amb-swiper",
    )


def _base(view: CaseView, cuts: list[_Cut]) -> _Cut | None:
    """What the differences are from."""
    wanted = view.reference.name if view.reference else INPUT if _same_size(view) else None
    return next((one for one in cuts if one.name == wanted), None)


def _same_size(view: CaseView) -> bool:
    return view.given is not None and all(
        side.output.data.shape == view.given.data.shape for side in view.drawable
    )


def _figure(one: _Cut, base: _Cut | None, plane: Plane) -> Markup:
    side = one.side or Side(INPUT)
    pictures = [picture(in_colour(one.shown), f"{plane} slice of {one.name}", class_="amb-slice")]
    if base is not None and one is not base and one.side is not None:
        apart: Colours = difference(one.shown, base.shown)
        pictures.append(picture(apart, f"{one.name} minus {base.name}", class_="amb-slice"))
    return figure(side, el("div", pictures, class_="amb-planes"))


def _key(view: CaseView, cuts: list[_Cut]) -> Markup | None:
    base = _base(view, cuts)
    if base is None:
        return None
    return legend(
        [
            (f"brighter than {base.name}", rgb(PALETTE.false_positive)),
            (f"equal to {base.name}", (255, 255, 255)),
            (f"darker than {base.name}", rgb(PALETTE.of(0))),
        ]
    )
