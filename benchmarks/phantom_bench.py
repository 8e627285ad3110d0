"""How long it takes to draw data: a whole-body CT with 117 labels, and twenty cases of every task."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.figures import seconds, table
from hf_datasets.families import FAMILIES
from hf_datasets.phantoms import make_phantom
from hf_datasets.phantoms.anatomy import Person
from hf_datasets.phantoms.body import Grid
from hf_datasets.phantoms.ct_body import draw_body, hounsfield
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.totalsegmentator import class_ids
from hf_datasets.staging import stage

WHOLE_BODY = Grid((128, 512, 512), (8.6, 0.88, 0.88), (0.0, 0.0, 110.0))


def whole_body() -> int:
    """Draw, label and render one CT of 512 x 512 x 128; the number of labels that are in it."""
    canvas = draw_body(WHOLE_BODY, Person(cysts=("left", "right")), rng_for(0, "bench"))
    labels = canvas.labels(class_ids())
    hounsfield(canvas, rng_for(1, "bench"))
    return int(np.count_nonzero(np.bincount(labels.ravel(), minlength=118)[1:]))


def twenty_cases(task_id: str) -> float:
    """Seconds that twenty cases of a task take to be drawn and staged, from those its phantom has."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        raw = make_phantom(task_id, Path(folder) / "raw")
        cases = len(stage(task_id, raw, Path(folder) / "data", release="phantom").cases)
        return (time.perf_counter() - started) / cases * 20


def main() -> None:
    found = whole_body()
    rows = [
        (f"CT 512x512x128, {found} of 117 labels", f"{seconds(whole_body, 3):.2f} s", "goal <= 5 s"),
        *((f"{task_id}, 20 cases", f"{twenty_cases(task_id):.1f} s", "goal <= 20 s") for task_id in FAMILIES),
    ]
    table(rows)


if __name__ == "__main__":
    main()
