"""How a case is looked at: everything that the controls of the comparison say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from space.viewer.canvas import PLANES, Plane, Point

THREE = "three planes"
VIEWS: tuple[str, ...] = (*PLANES, THREE)
CONTOURS, FILL, AGREEMENT, CLASSES = "contours", "fill", "agreement", "classes"
LAYERS = (CONTOURS, FILL, AGREEMENT)


@dataclass(frozen=True)
class Look:
    """``place``: voxel (x, y, z) through which the planes cut. ``opacity`` and ``threshold`` lie in [0, 1].

    ``left`` and ``right`` name what lies on each side of the swipe; empty ones are chosen by the viewer.
    """

    view: str = "axial"
    place: Point = (0, 0, 0)
    layer: str = CONTOURS
    opacity: float = 0.6
    targets: Sequence[str] = ()
    window: str = "automatic"
    threshold: float = 0.0
    left: str = ""
    right: str = ""

    @property
    def planes(self) -> tuple[Plane, ...]:
        return PLANES if self.view == THREE else tuple(plane for plane in PLANES if plane == self.view)
