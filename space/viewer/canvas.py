"""Arrays become pictures inside the page: cut, windowed, coloured, scaled and encoded. No file is read here."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from evaluator.pictures import BONE, LUNG, SOFT_TISSUE, Window
from space.markup import el
from space.palette import PALETTE

Pixels = NDArray[Any]
Mask = NDArray[np.bool_]
Colours = NDArray[np.uint8]
Size = tuple[int, int]
Point = tuple[int, int, int]
Colour = tuple[int, int, int]

Plane = Literal["axial", "coronal", "sagittal"]
PLANES: tuple[Plane, ...] = ("axial", "coronal", "sagittal")
AXIS: dict[Plane, int] = {"axial": 2, "coronal": 1, "sagittal": 0}
"""The axis of an (x, y, z) volume that the slices of a plane are counted along."""

WINDOWS: dict[str, Window | None] = {
    "automatic": None,
    "soft tissue": SOFT_TISSUE,
    "lung": LUNG,
    "bone": BONE,
    "full range": None,
}
"""What may be chosen; those with numbers are Hounsfield units."""


def rgb(colour: str) -> Colour:
    """``#0072b2`` as three numbers."""
    red, green, blue = (int(pair, 16) for pair in re.findall("[0-9a-f]{2}", colour.lower()))
    return red, green, blue


HIT, FALSE, MISSED = (
    rgb(PALETTE.true_positive),
    rgb(PALETTE.false_positive),
    rgb(PALETTE.false_negative),
)


def window_of(values: Pixels, automatic: Window, choice: str) -> Window:
    """The range of values that is shown from black to white; ``automatic`` is the one that suits them."""
    if choice == "full range":
        return float(values.min()), max(float(values.max()), float(values.min()) + 1e-6)
    return WINDOWS.get(choice) or automatic


def cut(volume: Pixels, plane: Plane, place: int) -> Pixels:
    """A slice of a canonical (x, y, z) volume as radiologists see it: head or front up, the patient's right at the
    left.
    """
    axis = AXIS[plane]
    inside = min(max(0, place), volume.shape[axis] - 1)
    shown: Pixels = np.take(volume, inside, axis=axis).T[::-1, ::-1]
    return shown


def panel_size(shape: Sequence[int], spacing: Sequence[float], plane: Plane, longest: int) -> Size:
    """Width and height in pixels of a slice, true to its millimetres."""
    first, second = (axis for axis in (0, 1, 2) if axis != AXIS[plane])
    wide, high = shape[first] * spacing[first], shape[second] * spacing[second]
    scale = longest / max(wide, high)
    return max(1, round(wide * scale)), max(1, round(high * scale))


def grey(plane: Pixels, window: Window) -> NDArray[np.uint8]:
    """Values inside the window as 0 to 255."""
    low, high = window
    scaled = (plane.astype(np.float32) - low) * (255 / max(high - low, 1e-6))
    shown: NDArray[np.uint8] = np.clip(scaled, 0, 255).astype(np.uint8)
    return shown


def resized(pixels: Colours, size: Size) -> Colours:
    return np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).resize(size, Image.Resampling.BILINEAR))


def scaled(mask: Mask, size: Size) -> Mask:
    """A mask in the panel's pixels."""
    picture = Image.fromarray(np.ascontiguousarray(mask).astype(np.uint8))
    chosen: Mask = np.asarray(picture.resize(size, Image.Resampling.NEAREST)).astype(bool)
    return chosen


def colour_of(index: int) -> Colour:
    return rgb(PALETTE.of(index))


@dataclass(frozen=True)
class Layer:
    """A mask in the panel's pixels, and its colour."""

    mask: Mask
    colour: Colour


def in_colour(scan: NDArray[np.uint8]) -> Colours:
    return np.repeat(scan[..., None], 3, axis=2) if scan.ndim == 2 else scan


def filled(scan: Colours, layers: Sequence[Layer], opacity: float) -> Colours:
    """The layers over the scan, see-through by ``opacity`` in [0, 1]."""
    picture = scan.astype(np.float32)
    for layer in layers:
        colour = np.array(layer.colour, np.float32)
        picture[layer.mask] = (1 - opacity) * picture[layer.mask] + opacity * colour
    return picture.astype(np.uint8)


def outlined(scan: Colours, layers: Sequence[Layer], opacity: float, width: int = 2) -> Colours:
    """The borders of the layers, inside of them, ``width`` pixels wide."""
    return filled(scan, [Layer(_border(layer.mask, width), layer.colour) for layer in layers], opacity)


def _border(mask: Mask, width: int) -> Mask:
    inside = mask
    for _ in range(width):
        padded = np.pad(inside, 1)
        inside = inside & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    border: Mask = mask & ~inside
    return border


def agreement(ours: Mask, theirs: Mask) -> list[Layer]:
    """Hits, false and missed, against ``theirs``."""
    return [Layer(ours & theirs, HIT), Layer(ours & ~theirs, FALSE), Layer(theirs & ~ours, MISSED)]


def difference(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> Colours:
    """White where equal, orange where brighter, blue where darker; full colour at half the window."""
    apart = np.clip((ours.astype(np.float32) - theirs) / 127.5, -1, 1)[..., None]
    end = np.where(apart > 0, np.array(FALSE, np.float32), np.array(rgb(PALETTE.of(0)), np.float32))
    shown: Colours = (255 + np.abs(apart) * (end - 255)).astype(np.uint8)
    return shown


def picture(pixels: Colours, alt: str, *, exact: bool = False, class_: str | None = None) -> Markup:
    """An ``img`` that holds its own data. ``exact``: as PNG, every value kept."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    buffer = io.BytesIO()
    if exact:
        image.save(buffer, format="PNG", compress_level=1)
    else:
        image.save(buffer, format="JPEG", quality=90, subsampling=0)
    kind = "png" if exact else "jpeg"
    source = f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return el(
        "img",
        src=source,
        alt=alt,
        width=image.width,
        height=image.height,
        class_=class_,
        draggable="false",
    )


def legend(entries: Sequence[tuple[str, Colour]]) -> Markup:
    """Names beside their colours."""
    return el(
        "ul",
        [
            el(
                "li",
                el("span", class_="amb-swatch", style=f"background:rgb{colour}", aria_hidden="true"),
                name,
            )
            for name, colour in entries
        ],
        class_="amb-legend",
    )
