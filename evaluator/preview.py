"""Small pictures of a submission over its public input. No reference is opened here, so none can be shown."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from evaluator.files import write_atomic
from evaluator.isolation import Budget, map_isolated
from evaluator.score import case_files
from evaluator.tracks import track_of
from evaluator.tracks.base import CaseFault, CaseFiles
from tasks.manifest import Manifest
from tasks.schema import Task

Pixels = NDArray[Any]
DRAWN = ("mask", "image", "boxes")
MAX_CASES = 4
MAX_SIDE = 384
PALETTE = ((230, 75, 53), (77, 187, 213), (0, 160, 135), (243, 155, 127), (145, 209, 194), (126, 97, 72))
SOFT_TISSUE = (-160.0, 240.0)
"""Window of a CT without a range of its own: level 40, width 400."""


def write_previews(
    task: Task, manifest: Manifest, submission: Path, public: Path | None, out: Path, jobs: int | None = None
) -> None:
    """Write ``<case>.webp`` for the first few cases of the manifest that can be drawn."""
    if public is None or task.output.kind not in DRAWN:
        return
    track = track_of(task)

    def draw(case: CaseFiles) -> str:
        try:
            picture = track.preview(case, track.check(case))
        except CaseFault:
            return ""
        return picture.hex() if picture else ""

    cases = case_files(track, manifest, submission, None, public)[:MAX_CASES]
    out.mkdir(parents=True, exist_ok=True)
    for case, answer in zip(cases, map_isolated(draw, cases, Budget(), jobs or 1), strict=True):
        if isinstance(answer, str) and answer:
            write_atomic(out / f"{case.id}.webp", bytes.fromhex(answer))


def contours(image: Path, masks: Sequence[tuple[Pixels, Sequence[int]]]) -> bytes:
    """Outlines of label sets on the axial slice that holds most of them."""
    from evaluator.tracks.grids import read_first_channel

    volume = read_first_channel(image)
    chosen = [np.isin(labels, ids) for labels, ids in masks]
    area = sum(mask.sum(axis=(0, 1), dtype=np.int64) for mask in chosen)
    place = int(np.argmax(area)) if np.any(area) else volume.data.shape[2] // 2
    picture = np.repeat(_grey(_upright(volume.data[:, :, place]), _window(volume.data))[..., None], 3, axis=2)
    for number, mask in enumerate(chosen):
        picture[_outline(_upright(mask[:, :, place]))] = PALETTE[number % len(PALETTE)]
    width, height = volume.spacing[0] * picture.shape[1], volume.spacing[1] * picture.shape[0]
    return _webp(Image.fromarray(picture), (width, height))


def _window(values: Pixels) -> tuple[float, float]:
    """Soft tissue where there is air in Hounsfield units, else what most of the signal spans."""
    low, high = (float(value) for value in np.percentile(values, (0.5, 99.5)))
    return SOFT_TISSUE if low < SOFT_TISSUE[0] else (low, max(high, low + 1))


def beside(image: Path, restored: Pixels, window: tuple[float, float]) -> bytes:
    """The input at the left, the output at the right; of volumes the middle slice."""
    from evaluator.readers.array import read_array

    if image.suffix == ".npy":
        given = read_array(image)
    else:
        from evaluator.readers.nifti import read_nifti

        given = read_nifti(image).data
    panels = [Image.fromarray(_grey(_slice(side), window)) for side in (given, restored)]
    panels = [panel.resize(panels[1].size) for panel in panels]
    width, height = panels[1].size
    picture = Image.new("L", (2 * width, height))
    for place, panel in enumerate(panels):
        picture.paste(panel, (place * width, 0))
    return _webp(picture, picture.size)


def boxes_on(image: Path, boxes: Sequence[tuple[int, tuple[float, float, float, float]]]) -> bytes:
    """Boxes, coloured by class, on the picture they were found in."""
    from evaluator.readers.image import read_image

    pixels = read_image(image)
    if pixels.dtype != np.uint8:
        pixels = _grey(pixels, (float(pixels.min()), float(pixels.max())))
    picture = Image.fromarray(pixels).convert("RGB")
    draw = ImageDraw.Draw(picture)
    for label, corners in boxes:
        x1, y1, x2, y2 = (max(-10_000.0, min(10_000.0, value)) for value in corners)
        draw.rectangle((x1, y1, x2, y2), outline=PALETTE[label % len(PALETTE)], width=2)
    return _webp(picture, picture.size)


def _slice(side: Pixels) -> Pixels:
    return side if side.ndim == 2 else _upright(side[:, :, side.shape[2] // 2])


def _upright(plane: Pixels) -> Pixels:
    """A canonical (right, anterior) plane as radiologists see it: anterior up, the right at the left."""
    return plane.T[::-1, ::-1]


def _grey(plane: Pixels, window: tuple[float, float]) -> NDArray[np.uint8]:
    low, high = window
    scaled = (plane.astype(np.float32) - low) / max(high - low, 1e-6) * 255
    grey: NDArray[np.uint8] = np.clip(scaled, 0, 255).astype(np.uint8)
    return grey


def _outline(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    inner = np.pad(mask, 1)
    inside = inner[:-2, 1:-1] & inner[2:, 1:-1] & inner[1:-1, :-2] & inner[1:-1, 2:]
    return mask & ~inside


def _webp(picture: Image.Image, size: tuple[float, float]) -> bytes:
    """Scaled to at most ``MAX_SIDE`` pixels a side, in the proportions of ``size``."""
    scale = MAX_SIDE / max(size)
    pixels = (max(1, round(size[0] * scale)), max(1, round(size[1] * scale)))
    buffer = io.BytesIO()
    picture.resize(pixels).save(buffer, format="WEBP", quality=80)
    return buffer.getvalue()
