"""One measurement of another library, made in whatever interpreter has it: ``python evaluator_peers.py NAME FOLDER``.

The folder holds the arrays; the answer is one line of JSON: seconds, megabytes over the loaded arrays, and the value
where there is one to compare. Nothing of the project is imported, so that peers can live in an environment of their
own.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

SPACING = (0.8, 0.8, 1.5)
TOLERANCE_MM = 2.0

Measured = Callable[[], float | None]
"""What is timed; its value, if it has one to compare."""


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    action, repeats = PEERS[name](folder)
    before = megabytes("VmRSS")
    times, value = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        value = action()
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(times), "megabytes": megabytes("VmHWM") - before, "value": value}))


def megabytes(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024


def maps_in(folder: Path) -> list[np.ndarray]:
    return [np.load(folder / f"{side}.npy") for side in ("reference", "prediction")]


def first_label(folder: Path) -> list[np.ndarray]:
    return [side == 1 for side in maps_in(folder)]


# --- masks ---


def simple_itk(folder: Path) -> tuple[Measured, int]:
    sitk = importlib.import_module("SimpleITK")
    images = [sitk.GetImageFromArray(side) for side in maps_in(folder)]
    return lambda: sitk.LabelOverlapMeasuresImageFilter().Execute(*images), 2


def surface_distance(folder: Path) -> tuple[Measured, int]:
    peer = importlib.import_module("surface_distance")
    crops = list(crops_of(*maps_in(folder)))

    def all_labels() -> None:
        for reference, prediction in crops:
            distances = peer.compute_surface_distances(reference, prediction, SPACING)
            peer.compute_surface_dice_at_tolerance(distances, TOLERANCE_MM)
            peer.compute_robust_hausdorff(distances, 95)
            peer.compute_dice_coefficient(reference, prediction)

    return all_labels, 1


def crops_of(reference: np.ndarray, prediction: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The masks of each label that both maps have, cut to the box that holds them."""
    pairs = zip(ndimage.find_objects(reference), ndimage.find_objects(prediction), strict=False)
    for label, (ours, theirs) in enumerate(pairs, 1):
        if ours and theirs:
            box = tuple(
                slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(ours, theirs, strict=True)
            )
            yield reference[box] == label, prediction[box] == label


def medpy(folder: Path) -> tuple[Measured, int]:
    binary = importlib.import_module("medpy.metric.binary")
    reference, prediction = first_label(folder)

    def dice_and_hd95() -> None:
        binary.dc(prediction, reference)
        binary.hd95(prediction, reference, SPACING)

    return dice_and_hd95, 1


def monai(folder: Path) -> tuple[Measured, int]:
    metrics, torch = importlib.import_module("monai.metrics"), importlib.import_module("torch")
    reference, prediction = (torch.from_numpy(side)[None, None] for side in first_label(folder))
    sides = {"y_pred": prediction, "y": reference, "include_background": True, "spacing": SPACING}

    def nsd_and_hd95() -> None:
        metrics.compute_hausdorff_distance(**sides, percentile=95)
        metrics.compute_surface_dice(**sides, class_thresholds=[TOLERANCE_MM])

    return nsd_and_hd95, 1


def scipy(folder: Path) -> tuple[Measured, int]:
    sides = first_label(folder)

    def distances_of_borders() -> None:
        for ours, theirs in (sides, sides[::-1]):
            border = ours & ~ndimage.binary_erosion(ours)
            far = ndimage.distance_transform_edt(~border, sampling=SPACING)
            np.percentile(far[theirs & ~ndimage.binary_erosion(theirs)], 95)

    return distances_of_borders, 1


# --- boxes ---


def pycocotools(folder: Path) -> tuple[Measured, int]:
    coco, judge = (importlib.import_module(f"pycocotools.{part}") for part in ("coco", "cocoeval"))

    def load(dataset: dict[str, Any]) -> Any:
        truth = coco.COCO()
        truth.dataset = dataset
        truth.createIndex()
        return truth

    return average_precision(folder, load, judge.COCOeval), 2


def hotcoco(folder: Path) -> tuple[Measured, int]:
    peer = importlib.import_module("hotcoco")
    return average_precision(folder, peer.COCO, peer.COCOeval), 3


def average_precision(folder: Path, load: Callable[[dict[str, Any]], Any], judge: Any) -> Measured:
    """AP50 from boxes already loaded, as ours is."""
    boxes = np.load(folder / "boxes.npz")
    truth_boxes, found_boxes = boxes["references"].tolist(), boxes["detections"].tolist()
    dataset = {
        "images": [{"id": i, "width": 512, "height": 512} for i in range(int(boxes["images"]))],
        "categories": [{"id": k + 1, "name": str(k)} for k in range(3)],
        "annotations": [
            {"id": n + 1, **entry(row), "area": (row[4] - row[2]) * (row[5] - row[3]), "iscrowd": 0}
            for n, row in enumerate(truth_boxes)
        ],
    }
    found = [entry(row) | {"score": row[6]} for row in found_boxes]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = load(dataset)
        results = truth.loadRes(found)

    def evaluate() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            run = judge(truth, results, "bbox")
            run.params.iouThrs = np.array([0.5])
            run.params.areaRng, run.params.areaRngLbl = [[0, 1e10]], ["all"]
            run.params.maxDets = [100]
            run.evaluate()
            run.accumulate()
        return float(np.mean(run.eval["precision"]))

    return evaluate


def entry(row: list[float]) -> dict[str, Any]:
    """Of a row image, class, x1, y1, x2, y2."""
    box = [row[2], row[3], row[4] - row[2], row[5] - row[3]]
    return {"image_id": int(row[0]), "category_id": int(row[1]) + 1, "bbox": box}


PEERS: dict[str, Callable[[Path], tuple[Measured, int]]] = {
    "SimpleITK": simple_itk,
    "surface_distance": surface_distance,
    "medpy": medpy,
    "monai": monai,
    "scipy": scipy,
    "pycocotools": pycocotools,
    "hotcoco": hotcoco,
}
"""By the name of the module; what is timed, and how often."""


if __name__ == "__main__":
    main()
