"""Time and memory of the metrics, beside scikit-image, pycocotools and, where they are installed, other libraries.

Ratios are of one run on one machine. Times are the best of a few, since the rest is what else the machine does.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import multiprocessing
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from skimage.metrics import structural_similarity

from benchmarks.figures import table
from evaluator.metrics.boxes import Detections, References, coco_ap
from evaluator.metrics.image import ssim
from evaluator.metrics.segmentation import SurfaceTooLarge, dice_per_label, surface_per_label

Row = tuple[str, str, str]

SHAPE = (512, 512, 300)
LABELS = 117
SPACING = (0.8, 0.8, 1.5)
TOLERANCE_MM = 2.0
SLICES = 200
IMAGES = 2000


def main() -> None:
    reference, prediction = label_maps(SHAPE)
    for rows in (
        dice_rows(reference, prediction),
        surface_rows(reference, prediction),
        noise_rows(reference),
        coco_rows(),
        ssim_rows(),
        growth_rows(),
    ):
        table(rows)
        print(flush=True)


def dice_rows(reference: np.ndarray, prediction: np.ndarray) -> Iterator[Row]:
    labels = list(range(1, LABELS + 1))
    ours, memory = best(lambda: dice_per_label(reference, prediction, labels))
    yield f"Dice of {LABELS} labels, {SHAPE}", f"{ours:.2f} s, +{memory:.0f} MB", "goal <= 1.5 s, +200 MB"
    some = labels[::20]
    naive, memory = best(lambda: [naive_dice(reference == k, prediction == k) for k in some], 1)
    naive *= LABELS / len(some)
    yield (
        "  a loop over labels",
        f"{naive:.1f} s, +{memory:.0f} MB",
        f"{naive / ours:.0f}x ours, from {len(some)} labels",
    )
    if sitk := module("SimpleITK"):
        images = [sitk.GetImageFromArray(side) for side in (reference, prediction)]
        peer, memory = best(lambda: sitk.LabelOverlapMeasuresImageFilter().Execute(*images), 1)
        yield "  SimpleITK", f"{peer:.2f} s, +{memory:.0f} MB", f"{peer / ours:.1f}x ours"


def surface_rows(reference: np.ndarray, prediction: np.ndarray) -> Iterator[Row]:
    labels = list(range(1, LABELS + 1))

    def everything() -> None:
        dice_per_label(reference, prediction, labels)
        surface_per_label(reference, prediction, labels, SPACING, TOLERANCE_MM)

    ours, memory = best(everything, 2)
    yield f"Dice, NSD, HD95 of {LABELS} labels", f"{ours:.2f} s, +{memory:.0f} MB", "goal +1000 MB"
    if peer := module("surface_distance"):
        crops = list(crops_of(reference, prediction))
        taken, _ = best(lambda: [surface_distance(peer, *crop) for crop in crops], 1)
        yield "  surface-distance on crops", f"{taken:.1f} s", f"{taken / ours:.0f}x ours, goal 5x"
    for name, action in full_volume_peers():
        taken, memory = best(lambda action=action: action(reference == 1, prediction == 1), 1)
        told = f"{taken:.0f} s a label, +{memory:.0f} MB"
        yield (
            f"  {name} on full volumes",
            told,
            f"{taken * LABELS / ours:.0f}x ours, goal 10x, from one label",
        )


def noise_rows(reference: np.ndarray) -> Iterator[Row]:
    noise = np.random.default_rng(0).integers(0, LABELS + 1, SHAPE, dtype=np.uint8)

    def guarded() -> None:
        with contextlib.suppress(SurfaceTooLarge):
            surface_per_label(reference, noise, range(1, LABELS + 1), SPACING, TOLERANCE_MM)

    seconds, memory = best(guarded, 1)
    yield f"noise mask of {LABELS} labels, refused", f"{seconds:.2f} s, +{memory:.0f} MB", "goal <= 60 s"


def coco_rows() -> Iterator[Row]:
    references, detections = scene(IMAGES)
    classes = ("a", "b", "c")
    ours = fastest(lambda: coco_ap(references, detections, classes))
    yield f"COCO AP50, {IMAGES} images, {detections.score.size} detections", f"{ours * 1e3:.0f} ms", ""
    for name in ("pycocotools", "hotcoco"):
        if (evaluate := coco_peer(name, references, detections)) is None:
            continue
        peer = fastest(evaluate, 1)
        apart = abs(evaluate() - float(coco_ap(references, detections, classes).mean or 0.0))
        goal = ", goal 20x and 1e-9" if name == "pycocotools" else ""
        yield f"  {name}", f"{peer * 1e3:.0f} ms", f"{peer / ours:.0f}x ours, values {apart:.0e} apart{goal}"


def ssim_rows() -> Iterator[Row]:
    reference, prediction = volumes(SLICES)
    options: dict[str, Any] = {
        "gaussian_weights": True,
        "sigma": 1.5,
        "use_sample_covariance": False,
        "data_range": 4000.0,
    }

    def peer() -> float:
        pairs = zip(reference, prediction, strict=True)
        return float(np.mean([structural_similarity(ref, pred, **options) for ref, pred in pairs]))

    def own() -> float:
        return ssim(reference, prediction, 4000.0, slice_axis=0)

    ours, theirs = fastest(own, 2), fastest(peer, 1)
    yield f"SSIM of {SLICES} slices of 512 x 512", f"{ours:.2f} s", ""
    yield (
        "  scikit-image's loop",
        f"{theirs:.2f} s",
        f"{theirs / ours:.1f}x ours, values {abs(own() - peer()):.0e} apart",
    )
    yield "", "", "goal 1.5x and 1e-6"


def growth_rows() -> Iterator[Row]:
    """Time at one, two and four times the size; linear is 1, 2, 4."""
    once = label_maps((512, 512, 75))
    maps = {n: [np.concatenate([side] * n, axis=2) for side in once] for n in (1, 2, 4)}
    labels = range(1, LABELS + 1)
    yield growth("Dice, 512 x 512 x 75, 150, 300", lambda n: dice_per_label(*maps[n], labels))
    yield growth("NSD and HD95, same", lambda n: surface_per_label(*maps[n], labels, SPACING, TOLERANCE_MM))
    scenes = {n: scene(1000 * n) for n in (1, 2, 4)}
    yield growth("COCO AP50, 1000, 2000, 4000 images", lambda n: coco_ap(*scenes[n], ("a", "b", "c")))
    pairs = {n: volumes(20 * n) for n in (1, 2, 4)}
    yield growth("SSIM, 20, 40, 80 slices", lambda n: ssim(*pairs[n], 4000.0, slice_axis=0))


def growth(what: str, action: Callable[[int], object]) -> Row:
    one, two, four = (fastest(lambda n=n: action(n)) for n in (1, 2, 4))
    return what, f"{one:.3f}, {two:.3f}, {four:.3f} s", f"1 : {two / one:.1f} : {four / one:.1f}"


# --- measuring -------------------------------------------------------------------------------------------------------


def fastest(action: Callable[[], object], repeats: int = 3) -> float:
    """Best wall time of ``action``."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def best(action: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """Best wall time, and megabytes of memory over what was there before, of ``action`` in a fork of this process."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        before = megabytes("VmRSS")
        seconds = fastest(action, repeats)
        there.send((seconds, megabytes("VmHWM") - before))

    process = context.Process(target=run)
    process.start()
    measured = here.recv()
    process.join()
    return measured


def megabytes(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024


def module(name: str) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


# --- peers -----------------------------------------------------------------------------------------------------------


def naive_dice(reference: np.ndarray, prediction: np.ndarray) -> float:
    return 2.0 * np.logical_and(reference, prediction).sum() / (reference.sum() + prediction.sum())


def crops_of(reference: np.ndarray, prediction: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The masks of each label that both maps have, cut to the box that holds them."""
    pairs = zip(ndimage.find_objects(reference), ndimage.find_objects(prediction), strict=False)
    for label, (ours, theirs) in enumerate(pairs, 1):
        if ours and theirs:
            box = tuple(
                slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(ours, theirs, strict=True)
            )
            yield reference[box] == label, prediction[box] == label


def surface_distance(peer: Any, reference: np.ndarray, prediction: np.ndarray) -> None:
    distances = peer.compute_surface_distances(reference, prediction, SPACING)
    peer.compute_surface_dice_at_tolerance(distances, TOLERANCE_MM)
    peer.compute_robust_hausdorff(distances, 95)
    peer.compute_dice_coefficient(reference, prediction)


def full_volume_peers() -> Iterator[tuple[str, Callable[[np.ndarray, np.ndarray], object]]]:
    if module("medpy"):
        binary = importlib.import_module("medpy.metric.binary")
        yield (
            "MedPy, Dice and HD95",
            lambda ref, pred: (binary.dc(pred, ref), binary.hd95(pred, ref, SPACING)),
        )
    if module("monai") and (torch := module("torch")):
        metrics = importlib.import_module("monai.metrics")

        def monai(ref: np.ndarray, pred: np.ndarray) -> None:
            batch = [torch.from_numpy(side)[None, None] for side in (pred, ref)]
            metrics.compute_hausdorff_distance(
                *batch, include_background=True, percentile=95, spacing=SPACING
            )
            metrics.compute_surface_dice(*batch, [TOLERANCE_MM], include_background=True, spacing=SPACING)

        yield "MONAI, NSD and HD95", monai

    def plain(ref: np.ndarray, pred: np.ndarray) -> None:
        for ours, theirs in ((ref, pred), (pred, ref)):
            border = ours & ~ndimage.binary_erosion(ours)
            ndimage.distance_transform_edt(~border, sampling=SPACING)[
                theirs & ~ndimage.binary_erosion(theirs)
            ]

    yield "scipy distance transforms", plain


def coco_peer(name: str, references: References, detections: Detections) -> Callable[[], float] | None:
    """A function that scores AP50 from boxes already loaded, as ours does."""
    if module(name) is None:
        return None
    if name == "hotcoco":
        make, judge = (getattr(module("hotcoco"), part) for part in ("COCO", "COCOeval"))
    else:
        make = importlib.import_module(f"{name}.coco").COCO
        judge = importlib.import_module(f"{name}.cocoeval").COCOeval
    sizes = references.box[:, 2:] - references.box[:, :2]
    dataset = {
        "images": [{"id": i, "width": 512, "height": 512} for i in range(int(references.image.max()) + 1)],
        "categories": [{"id": k + 1, "name": str(k)} for k in range(3)],
        "annotations": [
            {
                "id": n + 1,
                "image_id": int(i),
                "category_id": int(k) + 1,
                "bbox": [*box[:2].tolist(), *size.tolist()],
            }
            | {"area": float(size.prod()), "iscrowd": 0}
            for n, (i, k, box, size) in enumerate(
                zip(references.image, references.label, references.box, sizes, strict=True)
            )
        ],
    }
    found = [
        {
            "image_id": int(i),
            "category_id": int(k) + 1,
            "bbox": [*box[:2].tolist(), *(box[2:] - box[:2]).tolist()],
        }
        | {"score": float(score)}
        for i, k, box, score in zip(
            detections.image, detections.label, detections.box, detections.score, strict=True
        )
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = make(dataset) if name == "hotcoco" else make()
        if name != "hotcoco":
            truth.dataset = dataset
            truth.createIndex()
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


# --- data ------------------------------------------------------------------------------------------------------------


def label_maps(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """117 ellipsoid organs, and the same a little moved and resized; in the memory order of a NIfTI file."""
    generator = np.random.default_rng(7)
    maps = [np.zeros(shape, np.uint8, order="F") for _ in range(2)]
    for label in range(1, LABELS + 1):
        centre = generator.uniform(0.15, 0.85, 3) * shape
        radius = generator.uniform(0.03, 0.11, 3) * shape
        for side, labels in enumerate(maps):
            middle = centre + side * generator.normal(0, 1.5, 3)
            draw(labels, label, middle, radius * (1 + side * generator.normal(0, 0.04, 3)))
    return maps[0], maps[1]


def draw(labels: np.ndarray, label: int, centre: np.ndarray, radius: np.ndarray) -> None:
    low = np.maximum(np.floor(centre - radius), 0).astype(int)
    high = np.minimum(np.ceil(centre + radius) + 1, labels.shape).astype(int)
    box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    grid = np.ogrid[box]
    inside = sum(((axis - c) / r) ** 2 for axis, c, r in zip(grid, centre, radius, strict=True)) <= 1
    labels[box][inside] = label


def volumes(slices: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    reference = generator.normal(0, 400, (slices, 512, 512)).astype(np.float32)
    return reference, reference + generator.normal(0, 100, reference.shape).astype(np.float32)


def scene(images: int) -> tuple[References, Detections]:
    """About 10 references and 18 detections an image: jittered copies, duplicates, wrong classes."""
    generator = np.random.default_rng(0)
    n, m = 10 * images, 37 * images // 2
    corner, size = generator.uniform(0, 400, (n, 2)), generator.uniform(8, 90, (n, 2))
    references = References.of(
        np.repeat(np.arange(images), 10), generator.integers(0, 3, n), np.hstack([corner, corner + size])
    )
    copies = generator.integers(0, n, m)
    boxes = references.box[copies] + generator.normal(0, 1, (m, 4)) * generator.choice([1, 4, 20], (m, 1))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
    labels = np.where(generator.random(m) < 0.8, references.label[copies], generator.integers(0, 3, m))
    return references, Detections.of(references.image[copies], labels, boxes, generator.random(m))


if __name__ == "__main__":
    main()
