"""Pictures that scripted agents draw."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


def pipeline(steps: Sequence[str]) -> Image:
    """Boxes with arrows between them, from top to bottom."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (640, 40 + 90 * len(steps)), "white")
    draw = ImageDraw.Draw(image)
    for number, step in enumerate(steps):
        top = 20 + 90 * number
        draw.rectangle((60, top, 580, top + 50), outline="black", width=2)
        draw.text((75, top + 18), f"{number + 1}. {step[:70]}", fill="black")
        if number + 1 < len(steps):
            draw.line((320, top + 50, 320, top + 90), fill="black", width=2)
            draw.polygon(((312, top + 80), (328, top + 80), (320, top + 90)), fill="black")
    return image


def noise(width: int = 200, height: int = 120) -> Image:
    """Grey noise, which shows nothing."""
    from PIL import Image

    return Image.frombytes("L", (width, height), random.Random(width * height).randbytes(width * height))


def plain() -> Image:
    """One colour."""
    from PIL import Image

    return Image.new("RGB", (200, 120), "white")


def words(text: str, shade: int = 0, width: int = 640, height: int = 120) -> Image:
    """Words on white; at shade 253 or so nobody sees them who does not look for them."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((2, 2, width - 3, height - 3), outline="grey")
    draw.multiline_text((15, 15), text, fill=(shade, shade, shade))
    return image
