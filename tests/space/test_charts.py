"""Charts: what is written beside a point covers neither another name nor another point."""

from __future__ import annotations

import re

from space.charts import Mark, scatter

CLOSE = [
    ("one-agent", 0.52, 2.7),
    ("another-one", 0.55, 3.9),
    ("a-third", 0.59, 5.8),
    ("a-fourth", 0.60, 2.7),
]


def test_names_of_close_points_do_not_meet() -> None:
    marks = [Mark(name, "#000", y, x=x) for name, y, x in CLOSE]
    drawn = scatter(marks, x_title="x", y_title="y", label="l", log=True, width=860, height=420)
    boxes = []
    for name, _, _ in CLOSE:
        found = re.search(rf'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">{name}<', drawn)
        assert found, name
        x, y, wide = float(found[1]), float(found[2]), 6 * len(name)
        left = x - wide if found[3] == "end" else x
        boxes.append((left, y - 10, left + wide, y))
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]


def test_the_scale_holds_points_and_whiskers() -> None:
    mark = Mark("a", "#000", 0.55, x=1.0, low=0.31, high=0.88)
    drawn = scatter([mark], x_title="x", y_title="y", label="l")
    steps = [int(step) for step in re.findall(r'class="soft">(\d+)<', drawn) if int(step) >= 10]
    assert (min(steps), max(steps)) == (20, 90)
