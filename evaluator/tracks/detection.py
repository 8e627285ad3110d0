"""Detection: mean average precision at IoU 0.5 over the classes that occur in the references."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.contamination import REFERENCE_COPY, same_boxes
from evaluator.metrics.boxes import (
    Detections,
    References,
    coco_ap,
    f1_at_iou,
    froc_recall,
    map_50_95,
    voc_ap50,
)
from evaluator.readers.json_file import read_json
from evaluator.tracks.base import (
    CaseFault,
    CaseFiles,
    FilePerCase,
    Finished,
    Outcome,
    ReferenceMissing,
    Summary,
    mean_of,
    staged,
    untrusted,
)
from tasks.schema import BoxOutput, Task

Corners = tuple[float, float, float, float]
Table = NDArray[np.float64]
COORDINATES = ("x1", "y1", "x2", "y2")
MAX_KEPT = 1000
"""Best boxes of an image that are kept at all: far above what the headline looks at; bounds hostile files."""


@dataclass(frozen=True)
class Box:
    """A box in pixels of the image; ``label`` indexes the task's classes."""

    label: int
    corners: Corners
    score: float


class DetectionTrack(FilePerCase):
    """Boxes of several classes with scores."""

    def __init__(self, task: Task) -> None:
        if not isinstance(task.output, BoxOutput):
            raise TypeError(f"task {task.id} delivers {task.output.kind}, expected boxes")
        self.task = task
        self.output = task.output
        self._labels = {name.casefold(): index for index, name in enumerate(task.output.classes)}

    def check(self, case: CaseFiles) -> list[Box]:
        path = case.output(self.output.file)
        with untrusted():
            content = read_json(path)
        boxes = self._boxes(content, path)
        boxes.sort(key=lambda box: (-box.score, box.corners, box.label))
        return boxes[:MAX_KEPT]

    def _boxes(self, content: Any, path: Path) -> list[Box]:
        if not isinstance(content, dict) or not isinstance(content.get("boxes"), list):
            raise CaseFault("wrong_type", f'{path.name} must be an object with a list "boxes"')
        return [self._box(entry, f"{path.name}: box {place}") for place, entry in enumerate(content["boxes"])]

    def _box(self, entry: Any, where: str) -> Box:
        if not isinstance(entry, dict):
            raise CaseFault("wrong_type", f"{where} is a {type(entry).__name__}, expected an object")
        name = entry.get("class")
        if not isinstance(name, str) or name.strip().casefold() not in self._labels:
            raise CaseFault(
                "unknown_class", f"{where} has class {name!r:.60}, expected one of {self.output.classes}"
            )
        x1, y1, x2, y2 = (_number(entry, key, where) for key in COORDINATES)
        if not (x1 < x2 and y1 < y2):
            raise CaseFault("bad_box", f"{where} has no area: x1 {x1:g}, y1 {y1:g}, x2 {x2:g}, y2 {y2:g}")
        score = _number(entry, "score", where) if "score" in entry else 1.0
        if not 0.0 <= score <= 1.0:
            raise CaseFault("bad_score", f"{where} has score {score:g}, expected 0 to 1")
        return Box(self._labels[name.strip().casefold()], (x1, y1, x2, y2), score)

    def score(self, case: CaseFiles, output: list[Box] | None) -> Outcome:
        expected = self._references(case)
        found = output or []
        true, said = _table(expected), _table(found)
        f1 = 0.0 if output is None else f1_at_iou(_references([true]), _detections([said]))
        evidence = {"expected": _packed(true), "found": _packed(said)}
        flags = ["empty_prediction"] * (output == [] and expected != [])
        flags += ["out_of_bounds"] * self._leaves_image(case, found)
        flags += [REFERENCE_COPY] * same_boxes(_places(expected), _places(found))
        return Outcome(score=f1, metrics={"f1_iou50": f1}, flags=tuple(flags), evidence=evidence)

    def _leaves_image(self, case: CaseFiles, boxes: Sequence[Box]) -> bool:
        """Whether a box reaches more than a pixel beyond its image; unknown, so no, without the image."""
        if case.public is None or not boxes:
            return False
        from PIL import Image

        with staged(case), Image.open(case.input(self.output.image)) as image:
            width, height = image.size
        return any(
            min(box.corners[:2]) < -1 or box.corners[2] > width + 1 or box.corners[3] > height + 1
            for box in boxes
        )

    def _references(self, case: CaseFiles) -> list[Box]:
        path = case.reference(self.task.references[0])
        try:
            with staged(case):
                return self._boxes(read_json(path), path)
        except CaseFault as fault:
            raise ReferenceMissing(f"case {case.id}: {fault.message}; stage the task again") from None

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        references = _references([_unpacked(case.evidence["expected"]) for case in cases])
        detections = _detections([_unpacked(case.evidence["found"]) for case in cases])
        classes, limit = self.output.classes, self.output.max_detections
        ap50 = coco_ap(references, detections, classes, (0.5,), limit)
        if ap50.mean is None:
            raise ReferenceMissing("no case has a reference box; stage the task again")
        recall = froc_recall(references, detections, len(cases)) or {}
        aggregates = {
            "map50_coco101": ap50.mean,
            "map_coco": map_50_95(references, detections, classes, limit),
            "ap50_voc_all_points": voc_ap50(references, detections, classes),
            "f1_iou50": mean_of(cases, "f1_iou50"),
            **{f"ap50_coco101_{name}": value for name, value in ap50.per_class.items()},
            **{f"recall_at_fppi_{rate:g}": value for rate, value in recall.items()},
        }
        return Summary(ap50.mean, aggregates)

    def preview(self, case: CaseFiles, output: list[Box]) -> bytes | None:
        from evaluator.pictures import Mark, box_picture
        from evaluator.readers.image import read_image

        with staged(case):
            pixels = read_image(case.input(self.output.image))
        expected = None
        if case.references is not None:
            expected = [Mark(box.label, box.corners) for box in self._references(case)]
        return box_picture(pixels, [Mark(box.label, box.corners, box.score) for box in output], expected)


def _number(entry: dict[str, Any], key: str, where: str) -> float:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CaseFault("wrong_type", f"{where}: {key} is {value!r:.40}, expected a number")
    if abs(value) > 1e9:
        raise CaseFault("bad_box", f"{where}: {key} is beyond any image")
    return float(value)


def _places(boxes: Sequence[Box]) -> list[tuple[float, ...]]:
    return [(box.label, *box.corners) for box in boxes]


def _table(boxes: Sequence[Box]) -> Table:
    """One row a box: label, x1, y1, x2, y2, score."""
    rows = [(box.label, *box.corners, box.score) for box in boxes]
    return np.array(rows, dtype=np.float64).reshape(-1, 6)


def _packed(table: Table) -> str:
    """The table as text, a twentieth of what lists of numbers take: thousands of images may be full of boxes."""
    return base64.b64encode(table.tobytes()).decode()


def _unpacked(text: str) -> Table:
    return np.frombuffer(base64.b64decode(text), dtype=np.float64).reshape(-1, 6)


def _references(images: Sequence[Table]) -> References:
    place, rows = _stacked(images)
    return References.of(place, rows[:, 0], rows[:, 1:5])


def _detections(images: Sequence[Table]) -> Detections:
    place, rows = _stacked(images)
    return Detections.of(place, rows[:, 0], rows[:, 1:5], rows[:, 5])


def _stacked(images: Sequence[Table]) -> tuple[NDArray[np.int64], Table]:
    """The image of each row, and all rows."""
    return np.repeat(np.arange(len(images)), [len(table) for table in images]), np.concatenate(images)
