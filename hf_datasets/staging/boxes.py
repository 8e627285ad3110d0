"""What the detection families share: boxes cut to their picture, and the two files of a case."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders, StagingError
from hf_datasets.staging.images import rgb, write_png

CUT_NOTE = (
    "half-open pixel corners, cut at the picture's border; boxes less than one pixel wide or high after that "
    "are dropped"
)

Box = dict[str, str | float]
Corners = tuple[float, float, float, float]


def box_inside(name: str, corners: Corners, width: int, height: int) -> Box | None:
    """A box (x1, y1, x2, y2) cut to a picture of this size; ``None`` where hardly anything is left of it."""
    x1, x2 = max(corners[0], 0.0), min(corners[2], float(width))
    y1, y2 = max(corners[1], 0.0), min(corners[3], float(height))
    if x2 - x1 < 1 or y2 - y1 < 1:
        return None
    return {"class": name, "x1": x1, "y1": y1, "x2": x2, "y2": y2}


def refuse_far_box(where: str, corners: Corners, width: int, height: int, slack: float = 0.02) -> None:
    """Refuse a box that has no area or leaves the picture by more than a rounding: it belongs to another one.

    Raises
    ------
    StagingError
        The corners do not fit a picture of this size.
    """
    x1, y1, x2, y2 = corners
    right, bottom = width * (1 + slack), height * (1 + slack)
    fits = -slack * width <= x1 < x2 <= right and -slack * height <= y1 < y2 <= bottom
    if not (fits and all(math.isfinite(value) for value in corners)):
        raise StagingError(
            f"{where}: expected a box inside the picture of {width}x{height}, found {x1:g}, {y1:g} to {x2:g}, {y2:g}"
        )


def write_detection_case(to: CaseFolders, pixels: NDArray[np.uint8], boxes: Iterable[Box]) -> None:
    """Write the public ``image.png`` and the private ``boxes.json``."""
    write_png(to.public / "image.png", rgb(pixels))
    text = json.dumps({"boxes": list(boxes)}, indent=1) + "\n"
    (to.private / "boxes.json").write_text(text, encoding="utf-8")


def numbers(where: str, texts: Iterable[object]) -> Corners:
    """Four finite numbers.

    Raises
    ------
    StagingError
        One of them is none.
    """
    found = list(texts)
    try:
        a, b, c, d = (float(str(text)) for text in found)
    except ValueError:
        raise StagingError(f"{where}: expected four numbers of a box, found {found!r:.80}") from None
    return a, b, c, d


def unique_stems(root: Path, pattern: str) -> dict[str, Path]:
    """File name without suffix -> file, for all files below a folder; the same name twice is refused."""
    files: dict[str, Path] = {}
    for path in sorted(root.rglob(pattern)):
        if path.name.startswith("."):
            continue
        if path.stem in files:
            raise StagingError(
                f"{path}: {path.stem} is there twice, also as {files[path.stem]}; remove one of them"
            )
        files[path.stem] = path
    return files
