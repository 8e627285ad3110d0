"""One set of boxes out of several readers': agreement by overlap, coordinates averaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hf_datasets.staging.boxes import Corners

OVERLAP = 0.5
"""Intersection over union from which boxes of two readers mean the same finding."""

AGREEMENT = 2
"""Readers who must have marked a finding."""

NOTE = (
    "boxes of one class are grouped, reader by reader, where their intersection over union with the group's mean "
    f"box is at least {OVERLAP:g}, one box a reader in a group; groups of at least {AGREEMENT} readers are kept and "
    "their coordinates averaged"
)


@dataclass(frozen=True)
class Mark:
    """What one reader drew."""

    reader: str
    name: str
    corners: Corners


@dataclass
class _Group:
    marks: list[Mark] = field(default_factory=list)

    def mean(self) -> Corners:
        x1, y1, x2, y2 = (
            sum(side) / len(self.marks) for side in zip(*(mark.corners for mark in self.marks), strict=True)
        )
        return x1, y1, x2, y2

    def lacks(self, reader: str) -> bool:
        return all(mark.reader != reader for mark in self.marks)


def agreed(marks: Iterable[Mark]) -> list[tuple[str, Corners]]:
    """Class and mean corners of every finding on which enough readers agree, sorted.

    Parameters
    ----------
    marks
        The boxes (x1, y1, x2, y2) of all readers of one picture, in any order.
    """
    ordered = sorted(marks, key=lambda mark: (mark.name, mark.reader, mark.corners))
    groups: dict[str, list[_Group]] = {}
    for mark in ordered:
        _group_for(mark, groups.setdefault(mark.name, [])).marks.append(mark)
    return sorted(
        (name, group.mean())
        for name, some in groups.items()
        for group in some
        if len(group.marks) >= AGREEMENT
    )


def _group_for(mark: Mark, groups: list[_Group]) -> _Group:
    """The group that the mark overlaps most, or a new one."""
    fitting = [
        (overlap(mark.corners, group.mean()), -place, group)
        for place, group in enumerate(groups)
        if group.lacks(mark.reader)
    ]
    share, _, best = max(fitting, key=lambda one: one[:2], default=(0.0, 0, _Group()))
    if share < OVERLAP:
        best = _Group()
        groups.append(best)
    return best


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """Intersection over union of two boxes (x1, y1, x2, y2)."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(0.0, width) * max(0.0, height)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared) if shared else 0.0
