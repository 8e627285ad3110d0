"""Time and memory of the metrics, beside other libraries where they are installed (``.ci/peers``), in the same run.

Times are the best of a few, since the rest is what else the machine does. Each peer is measured in a process of its
own, in the interpreter that has it, on the same arrays.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from skimage.metrics import structural_similarity

from benchmarks.evaluator_peers import SPACING, TOLERANCE_MM
from benchmarks.figures import PEERS, table
from evaluator.metrics.boxes import Detections, References, coco_ap
from evaluator.metrics.image import ssim
from evaluator.metrics.segmentation import SurfaceTooLarge, dice_per_label, surface_per_label
from evaluator.score import score
from tasks.manifest import Case, Manifest
from tasks.registry import load_task
from tasks.schema import Redistribution, Release

Row = tuple[str, str, str]

SHAPE = (512, 512, 300)
LABELS = 117
SLICES = 200
IMAGES = 2000
PEER_SCRIPT = Path(__file__).with_name("evaluator_peers.py")
PEER_SECONDS = 1800


def main() -> None:
    reference, prediction = label_maps(SHAPE)
    with tempfile.TemporaryDirectory() as folder:
        for side, labels in (("reference", reference), ("prediction", prediction)):
            np.save(Path(folder) / f"{side}.npy", labels)
        for rows in (
            dice_rows(reference, prediction, Path(folder)),
            surface_rows(reference, prediction, Path(folder)),
            noise_rows(reference),
            coco_rows(Path(folder)),
            ssim_rows(),
            growth_rows(),
        ):
            table(rows)
            print(flush=True)


def dice_rows(reference: np.ndarray, prediction: np.ndarray, folder: Path) -> Iterator[Row]:
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
    yield peer_row("  SimpleITK", "SimpleITK", folder, ours)


def surface_rows(reference: np.ndarray, prediction: np.ndarray, folder: Path) -> Iterator[Row]:
    labels = list(range(1, LABELS + 1))

    def everything() -> None:
        dice_per_label(reference, prediction, labels)
        surface_per_label(reference, prediction, labels, SPACING, TOLERANCE_MM)

    ours, memory = best(everything, 2)
    yield f"Dice, NSD, HD95 of {LABELS} labels", f"{ours:.2f} s, +{memory:.0f} MB", "goal +1000 MB"
    yield peer_row("  surface-distance on crops", "surface_distance", folder, ours, goal="goal 5x")
    for name, what in FULL_VOLUME.items():
        told = f"{what}, one label of a full volume"
        yield peer_row(f"  {told}", name, folder, ours, times=LABELS, goal=f"goal 10x, times {LABELS}")


FULL_VOLUME = {"medpy": "MedPy, Dice and HD95", "monai": "MONAI, NSD and HD95", "scipy": "scipy, distances"}


def noise_rows(reference: np.ndarray) -> Iterator[Row]:
    noise = np.random.default_rng(0).integers(0, LABELS + 1, SHAPE, dtype=np.uint8)

    def guarded() -> None:
        with contextlib.suppress(SurfaceTooLarge):
            surface_per_label(reference, noise, range(1, LABELS + 1), SPACING, TOLERANCE_MM)

    seconds, memory = best(guarded, 1)
    yield f"noise mask of {LABELS} labels, refused", f"{seconds:.2f} s, +{memory:.0f} MB", "goal <= 60 s"


def coco_rows(folder: Path) -> Iterator[Row]:
    references, detections = scene(IMAGES)
    save_boxes(folder, references, detections)
    classes = ("a", "b", "c")
    value = float(coco_ap(references, detections, classes).mean or 0.0)
    ours = fastest(lambda: coco_ap(references, detections, classes), 7)
    yield f"COCO AP50, {IMAGES} images, {detections.score.size} detections", f"{ours * 1e3:.0f} ms", ""
    yield peer_row("  pycocotools", "pycocotools", folder, ours, value=value, goal="goal 20x and 1e-9")
    yield peer_row("  hotcoco", "hotcoco", folder, ours, value=value)


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
    with tempfile.TemporaryDirectory() as folder:
        staged = {n: questions(Path(folder) / str(n), 60 * n) for n in (1, 2, 4)}
        yield growth("whole reports of 60, 120, 240 questions", lambda n: score_questions(*staged[n]))


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


# --- peers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """What another library took; ``value`` where it gave one to compare."""

    seconds: float
    megabytes: float
    value: float | None


def peer_row(
    what: str,
    name: str,
    folder: Path,
    ours: float,
    *,
    times: int = 1,
    value: float | None = None,
    goal: str = "",
) -> Row:
    """A peer's line: its time and memory, and how many times ours that is (``times`` over, for one label of many)."""
    found = measured(name, folder)
    if isinstance(found, str):
        return what, found, goal
    ratio = f"{found.seconds * times / ours:.{0 if found.seconds * times > 10 * ours else 1}f}x ours"
    apart = "" if value is None or found.value is None else f"values {abs(found.value - value):.0e} apart"
    told = f"{found.seconds:.2f} s, +{found.megabytes:.0f} MB"
    return what, told, ", ".join(filter(None, (ratio, apart, goal)))


def measured(name: str, folder: Path) -> Peer | str:
    """A peer's figures, or why there are none."""
    python = interpreter_with(name)
    if python is None:
        return "not installed"
    command = [python, str(PEER_SCRIPT), name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PEER_SECONDS)
    if done.returncode != 0:
        return f"failed: {done.stderr.strip().splitlines()[-1]:.60}"
    return Peer(**json.loads(done.stdout.splitlines()[-1]))


@cache
def interpreter_with(module: str) -> str | None:
    """The peers' environment if it has the module, else our own if that has it."""
    for python in (PEERS / "bin" / "python", Path(sys.executable)):
        command = [str(python), "-c", f"import {module}"]
        if python.is_file() and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return str(python)
    return None


def save_boxes(folder: Path, references: References, detections: Detections) -> None:
    truth, found = (
        np.column_stack([boxes.image, boxes.label, boxes.box]) for boxes in (references, detections)
    )
    found = np.column_stack([found, detections.score])
    images = int(references.image.max()) + 1
    np.savez(folder / "boxes.npz", references=truth, detections=found, images=images)


def naive_dice(reference: np.ndarray, prediction: np.ndarray) -> float:
    return 2.0 * np.logical_and(reference, prediction).sum() / (reference.sum() + prediction.sum())


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


def questions(folder: Path, cases: int) -> tuple[Path, Manifest]:
    """Staged questions, and an answer to each."""
    for number in range(cases):
        case = f"case-{number:04d}"
        for side, name, content in (
            ("public", "question.json", {"question_id": case, "question": "?"}),
            ("private", "answer.json", {"answer": "left lower lobe"}),
            ("submission", "answer.json", {"question_id": case, "predicted_answer": "the left lobe"}),
        ):
            path = folder / side / case / name
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(content))
    staged = tuple(
        Case(id=f"case-{number:04d}", public=(), private=(), origin="bench") for number in range(cases)
    )
    terms = {"source": "made here", "license": "MIT", "redistribution": Redistribution.ALLOWED}
    return folder, Manifest(
        task="vqa-rad-task", release=Release.PHANTOM, seed=0, generator="bench", cases=staged, **terms
    )


def score_questions(folder: Path, manifest: Manifest) -> None:
    task = load_task(manifest.task)
    score(task, folder / "submission", folder / "private", folder / "public", manifest)


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
