"""Small pictures of masks, images and boxes. Arrays in, WebP out: no file is read here and no task is known."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage

Pixels = NDArray[Any]
Mask = NDArray[np.bool_]
Colours = NDArray[np.uint8]
Window = tuple[float, float]
Size = tuple[int, int]
Point = tuple[int, int, int]

MAX_BYTES = 96 << 10
PANEL = 224
MAX_SIDE = 384
MAX_BOXES = 50
MAX_NAMES = 6
LINE = 14
QUALITIES = (80, 60, 40, 20, 5)

SOFT_TISSUE, LUNG, BONE = (-160.0, 240.0), (-1350.0, 150.0), (-500.0, 1300.0)
"""Windows of CT in Hounsfield units: level 40, width 400; level -600, width 1500; level 400, width 1800."""
_LUNG_WORDS = re.compile(r"lung|airway|bronch|pulmonary|thora|chest", re.IGNORECASE)
_BONE_WORDS = re.compile(r"\bbones?\b|vertebra|spine|skelet|fracture|\brib", re.IGNORECASE)
_ENOUGH = 500_000
"""Values that tell what a volume's signal spans as well as all of them."""
_AIR = -300.0
"""Hounsfield units have air in them; no other unit goes as low."""

PALETTE = ((230, 75, 53), (77, 187, 213), (0, 160, 135), (243, 155, 127), (145, 209, 194), (126, 97, 72))
HIT, FALSE, MISSED = (0, 158, 115), (230, 120, 0), (0, 114, 230)
"""True positives, false positives and false negatives, told apart by colour-blind eyes too."""
_WHITE = (255, 255, 255)

Caption = tuple[tuple[str, tuple[int, int, int]], ...]
"""Words, each in its colour."""
_PREDICTION: Caption = (("prediction", _WHITE),)
_REFERENCE: Caption = (("reference", _WHITE),)
_AGREEMENT: Caption = (("hit", HIT), ("false", FALSE), ("missed", MISSED))


@dataclass(frozen=True)
class Structure:
    """One target: the voxels of ``labels`` (x, y, z) whose value is among ``ids``."""

    name: str
    labels: Pixels
    ids: tuple[int, ...]
    lesion: bool = False

    def within(self, labels: Pixels) -> Mask:
        """Which of these label values belong to the target."""
        table = np.zeros(int(np.iinfo(labels.dtype).max) + 1, dtype=bool)
        table[list(self.ids)] = True
        chosen: Mask = table[labels]
        return chosen


@dataclass(frozen=True)
class Mark:
    """A box x1, y1, x2, y2 in pixels of the picture; ``label`` gives its colour."""

    label: int
    corners: tuple[float, float, float, float]
    score: float | None = None


def window_for(values: Pixels, words: str) -> Window:
    """The range to show: of Hounsfield units the preset that ``words`` ask for, else what most of the signal spans."""
    some = values.ravel(order="K")[:: max(1, values.size // _ENOUGH)]
    low, high = (float(value) for value in np.percentile(some, (0.5, 99.5)))
    if low > _AIR:
        return low, max(high, low + 1e-6)
    if _LUNG_WORDS.search(words):
        return LUNG
    return BONE if _BONE_WORDS.search(words) else SOFT_TISSUE


# --- masks ---


def mask_picture(
    image: Pixels,
    spacing: tuple[float, float, float],
    window: Window,
    prediction: Sequence[Structure],
    reference: Sequence[Structure] | None,
) -> bytes:
    """Three orthogonal slices with every target outlined.

    Parameters
    ----------
    image : array (x, y, z)
        In canonical (RAS+) orientation, as are the label maps.
    spacing : tuple of float
        mm along each axis.
    prediction, reference : sequences of Structure
        The same targets in the same order. With a reference, two rows more: its outlines, and the map of hits, false
        and missed voxels. The slices then go through its largest lesion first.
    """
    place = _focus([reference or (), prediction], image.shape)
    sizes = _panel_sizes(image.shape, spacing)
    scans = [
        np.repeat(_resized(_grey(cut, window), size)[..., None], 3, axis=2)
        for cut, size in zip(_cuts(image, place), sizes, strict=True)
    ]
    found = _sections(prediction, place, sizes)
    rows = [(_PREDICTION, [_outlined(*pair) for pair in zip(scans, found, strict=True)])]
    if reference is not None:
        true = _sections(reference, place, sizes)
        rows.append((_REFERENCE, [_outlined(*pair) for pair in zip(scans, true, strict=True)]))
        rows.append((_AGREEMENT, [_agreement(*each) for each in zip(scans, found, true, strict=True)]))
    return _webp(_tiled(rows, [structure.name for structure in prediction]))


def _focus(sides: Sequence[Sequence[Structure]], shape: tuple[int, ...]) -> Point:
    """Where each axis cuts most of the largest lesion, else of the largest target; the first side goes first."""
    lesions = [[structure for structure in side if structure.lesion] for side in sides]
    chosen = next(filter(None, map(_largest, (*lesions, *sides))), None)
    if chosen is None:
        return shape[0] // 2, shape[1] // 2, shape[2] // 2
    mask = chosen.within(chosen.labels)
    if chosen.lesion:
        mask = _largest_component(mask)
    x, y, z = (int(np.argmax(mask.sum(axis=others, dtype=np.int64))) for others in ((1, 2), (0, 2), (0, 1)))
    return x, y, z


def _largest(structures: Sequence[Structure]) -> Structure | None:
    maps = {id(structure.labels): structure.labels for structure in structures}
    counts = {name: _counts(labels) for name, labels in maps.items()}
    sizes = [int(counts[id(structure.labels)][list(structure.ids)].sum()) for structure in structures]
    return structures[int(np.argmax(sizes))] if any(sizes) else None


def _counts(labels: Pixels) -> NDArray[np.int64]:
    """Voxels of each label, plane by plane: the counting works on 64-bit copies."""
    size = int(np.iinfo(labels.dtype).max) + 1
    counts = np.zeros(size, dtype=np.int64)
    for place in range(labels.shape[2]):
        counts += np.bincount(labels[:, :, place].ravel(), minlength=size)
    return counts


def _largest_component(mask: Mask) -> Mask:
    parts, _ = ndimage.label(mask, structure=np.ones((3, 3, 3), dtype=bool))
    sizes = np.bincount(parts.ravel(order="K"))
    sizes[0] = 0
    largest: Mask = parts == int(np.argmax(sizes))
    return largest


def _cuts(volume: Pixels, place: Point) -> tuple[Pixels, Pixels, Pixels]:
    """Axial, coronal and sagittal plane, each as radiologists see it: head and front up, the right at the left."""
    x, y, z = place
    axial, coronal, sagittal = (
        plane.T[::-1, ::-1] for plane in (volume[:, :, z], volume[:, y, :], volume[x, :, :])
    )
    return axial, coronal, sagittal


def _panel_sizes(shape: tuple[int, ...], spacing: tuple[float, float, float]) -> list[Size]:
    """Pixels (width, height) of the three planes, in one scale of mm."""
    x, y, z = (count * step for count, step in zip(shape, spacing, strict=True))
    scale = PANEL / max(x, y, z)
    return [(max(1, round(a * scale)), max(1, round(b * scale))) for a, b in ((x, y), (x, z), (y, z))]


def _sections(structures: Sequence[Structure], place: Point, sizes: Sequence[Size]) -> list[list[Mask]]:
    """For each plane the masks of all structures in it."""
    return [
        [_shrunk(structure.within(_cuts(structure.labels, place)[plane]), size) for structure in structures]
        for plane, size in enumerate(sizes)
    ]


def _outlined(scan: Colours, masks: Sequence[Mask]) -> Colours:
    picture = scan.copy()
    for number, mask in enumerate(masks):
        inner = np.pad(mask, 1)
        inside = inner[:-2, 1:-1] & inner[2:, 1:-1] & inner[1:-1, :-2] & inner[1:-1, 2:]
        picture[mask & ~inside] = PALETTE[number % len(PALETTE)]
    return picture


def _agreement(scan: Colours, found: Sequence[Mask], true: Sequence[Mask]) -> Colours:
    picture = scan.astype(np.float32)
    for ours, theirs in zip(found, true, strict=True):
        for colour, where in ((HIT, ours & theirs), (MISSED, theirs & ~ours), (FALSE, ours & ~theirs)):
            picture[where] = 0.4 * scan[where] + 0.6 * np.array(colour, np.float32)
    return picture.astype(np.uint8)


# --- images ---


def image_picture(
    given: Pixels,
    restored: Pixels,
    reference: Pixels | None,
    windows: tuple[Window, Window],
    proportions: tuple[float, float] | None = None,
) -> bytes:
    """Input, output and what tells them apart; with a reference, it too, and the difference is that from it.

    Parameters
    ----------
    given, restored, reference : arrays (rows, columns)
        ``given`` may be smaller.
    windows : tuple of Window
        Of the input; of the output and the reference.
    proportions : tuple of float, optional
        Width and height of the picture in mm; that of its pixels by default.
    """
    width, height = proportions or (restored.shape[1], restored.shape[0])
    scale = PANEL / max(width, height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    of_input, of_output = windows
    panels = {
        "input": _resized(_grey(given, of_input), size),
        "output": _resized(_grey(restored, of_output), size),
    }
    if reference is None:
        difference = "output - input", _difference(panels["output"], panels["input"])
    else:
        panels["reference"] = _resized(_grey(reference, of_output), size)
        difference = "output - reference", _difference(panels["output"], panels["reference"])
    columns = [(name, np.repeat(panel[..., None], 3, axis=2)) for name, panel in panels.items()] + [
        difference
    ]
    picture = Image.new("RGB", (size[0] * len(columns), size[1]))
    draw = ImageDraw.Draw(picture)
    for place, (name, panel) in enumerate(columns):
        picture.paste(Image.fromarray(panel), (place * size[0], 0))
        _write(draw, (place * size[0] + 3, 1), name, _WHITE)
    return _webp(picture)


def _difference(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> Colours:
    """White where equal, red where brighter, blue where darker; full colour at half the window."""
    apart = np.clip((ours.astype(np.float32) - theirs) / 127.5, -1, 1)
    fading = 255 * (1 - np.abs(apart))
    red, blue = np.where(apart > 0, 255, fading), np.where(apart < 0, 255, fading)
    return np.stack([red, fading, blue], axis=2).astype(np.uint8)


# --- boxes ---


def box_picture(pixels: Pixels, found: Sequence[Mark], expected: Sequence[Mark] | None) -> bytes:
    """The best boxes with their scores, coloured by class; references, if given, in white below them.

    Parameters
    ----------
    pixels : array (rows, columns) or (rows, columns, 3)
    found : sequence of Mark
        Best first.
    """
    if pixels.dtype != np.uint8:
        pixels = _grey(pixels, (float(pixels.min()), float(pixels.max())))
    height, width = pixels.shape[:2]
    scale = MAX_SIDE / max(width, height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture = Image.fromarray(pixels).convert("RGB").resize(size)
    draw = ImageDraw.Draw(picture)
    for mark in (expected or ())[:MAX_BOXES]:
        draw.rectangle(_placed(mark, scale), outline=_WHITE, width=3)
    for mark in reversed(found[:MAX_BOXES]):
        corners, colour = _placed(mark, scale), PALETTE[mark.label % len(PALETTE)]
        draw.rectangle(corners, outline=colour, width=1)
        if mark.score is not None:
            _write(draw, (corners[0] + 2, corners[1]), f"{mark.score:.2f}", colour)
    return _webp(picture)


def _placed(mark: Mark, scale: float) -> tuple[float, float, float, float]:
    """Corners on the scaled picture; a corner far outside is as good as one just outside."""
    x1, y1, x2, y2 = (max(-10.0, min(MAX_SIDE + 10.0, value * scale)) for value in mark.corners)
    return x1, y1, x2, y2


# --- drawing ---


def _grey(plane: Pixels, window: Window) -> NDArray[np.uint8]:
    low, high = window
    scaled = (plane.astype(np.float32) - low) / max(high - low, 1e-6) * 255
    grey: NDArray[np.uint8] = np.clip(scaled, 0, 255).astype(np.uint8)
    return grey


def _resized(grey: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(grey).resize(size))


def _shrunk(mask: Mask, size: Size) -> Mask:
    """The mask in panel pixels; one that would vanish between them stays visible."""
    cover = np.asarray(Image.fromarray(mask.astype(np.uint8) * 255).resize(size, Image.Resampling.BOX))
    shrunk: Mask = cover >= 128
    return shrunk if shrunk.any() else cover > 0


def _tiled(rows: Sequence[tuple[Caption, list[Colours]]], names: Sequence[str]) -> Image.Image:
    """Rows of panels, each with its caption, and below them the names of the targets in their colours."""
    heights = [max(panel.shape[0] for panel in panels) for _, panels in rows]
    width = sum(panel.shape[1] for panel in rows[0][1])
    picture = Image.new("RGB", (width, sum(heights) + LINE))
    draw = ImageDraw.Draw(picture)
    top = 0
    for (caption, panels), height in zip(rows, heights, strict=True):
        left = 0
        for panel in panels:
            picture.paste(Image.fromarray(panel), (left, top))
            left += panel.shape[1]
        _write_all(draw, top, caption)
        top += height
    if len(names) <= MAX_NAMES:
        _write_all(draw, top, tuple(zip(names, PALETTE, strict=False)))
    return picture


def _write_all(draw: ImageDraw.ImageDraw, top: int, caption: Caption) -> None:
    left = 3
    for word, colour in caption:
        _write(draw, (left, top + 1), word, colour)
        left += round(draw.textlength(word)) + 10


def _write(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, colour: tuple[int, int, int]
) -> None:
    draw.text(at, text, fill=colour, stroke_width=1, stroke_fill=(0, 0, 0))


def _webp(picture: Image.Image) -> bytes:
    """As good as fits into ``MAX_BYTES``; noise that never fits is made smaller."""
    while True:
        for quality in QUALITIES:
            buffer = io.BytesIO()
            picture.save(buffer, format="WEBP", quality=quality)
            if buffer.tell() <= MAX_BYTES:
                return buffer.getvalue()
        picture = picture.resize((max(1, picture.width // 2), max(1, picture.height // 2)))
