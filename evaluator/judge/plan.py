"""What became of the plan's two files. Both come from a stranger: opened without following links, bounded,
decoded before they count.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path

PLAN_TEXT = "plan.md"
PLAN_PICTURE = "plan.png"

MIN_CHARS = 100
MIN_SIDE = 64
MAX_PIXELS = 25_000_000
MAX_TEXT_BYTES = 1 << 20
MAX_PICTURE_BYTES = 16 << 20


@dataclass(frozen=True)
class PlanText:
    """``plan.md`` at the end of the run. ``problem`` says why it does not count; None when it does."""

    problem: str | None
    chars: int = 0
    sha256: str = ""


@dataclass(frozen=True)
class PlanPicture:
    """``plan.png`` at the end of the run. ``problem`` says why it does not count; None when it does."""

    problem: str | None
    width: int = 0
    height: int = 0
    sha256: str = ""


MAX_SHOWN_SIDE = 1024


class _Unusable(Exception):
    """Why a file does not count."""


def plan_text(folder: Path) -> str | None:
    """The words of ``plan.md``, or None where it is no text at all."""
    try:
        return _read(folder / PLAN_TEXT, MAX_TEXT_BYTES).decode("utf-8-sig")
    except (_Unusable, UnicodeDecodeError):
        return None


def shown_picture(folder: Path) -> bytes | None:
    """``plan.png`` decoded and encoded anew: its pixels on white, at most ``MAX_SHOWN_SIDE`` a side, and nothing
    else of the file. None where it does not decode.
    """
    from PIL import Image

    try:
        data = _read(folder / PLAN_PICTURE, MAX_PICTURE_BYTES)
        _decode_png(data)
    except _Unusable:
        return None
    with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
        pixels = image.convert("RGBA")
    shown = Image.new("RGB", pixels.size, "white")
    shown.paste(pixels, mask=pixels.getchannel("A"))
    shown.thumbnail((MAX_SHOWN_SIDE, MAX_SHOWN_SIDE))
    buffer = io.BytesIO()
    shown.save(buffer, "PNG")
    return buffer.getvalue()


def read_plan_text(folder: Path) -> PlanText:
    """Check that ``plan.md`` is a regular file of UTF-8 text with at least ``MIN_CHARS`` visible characters.
    What it says is not judged.
    """
    try:
        data = _read(folder / PLAN_TEXT, MAX_TEXT_BYTES)
        chars = _visible_characters(data)
    except _Unusable as unusable:
        return PlanText(str(unusable))
    short = f"{chars} visible characters, at least {MIN_CHARS} are a plan" if chars < MIN_CHARS else None
    return PlanText(short, chars, hashlib.sha256(data).hexdigest())


def read_plan_picture(folder: Path) -> PlanPicture:
    """Check that ``plan.png`` decodes as a PNG of at least ``MIN_SIDE`` pixels a side that is not of one
    colour.
    """
    try:
        data = _read(folder / PLAN_PICTURE, MAX_PICTURE_BYTES)
        width, height, plain = _decode_png(data)
    except _Unusable as unusable:
        return PlanPicture(str(unusable))
    problem = None
    if min(width, height) < MIN_SIDE:
        problem = f"{width} x {height} pixels, expected at least {MIN_SIDE} a side"
    elif plain:
        problem = "a single colour"
    return PlanPicture(problem, width, height, hashlib.sha256(data).hexdigest())


def _read(path: Path, limit: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _Unusable("no such file") from None
    except OSError:
        raise _Unusable("not a regular file") from None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise _Unusable("not a regular file")
        if info.st_size > limit:
            raise _Unusable(f"{info.st_size} bytes, at most {limit} are read")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def _visible_characters(data: bytes) -> int:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Unusable("not UTF-8 text") from None
    if "\0" in text:
        raise _Unusable("holds NUL bytes, so it is not text")
    return sum(character.isprintable() and not character.isspace() for character in text)


def _decode_png(data: bytes) -> tuple[int, int, bool]:
    """Width, height and whether all pixels are equal. The size is checked in the header, before any pixel is
    decoded.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise _Unusable(f"{width} x {height} pixels, at most {MAX_PIXELS} are decoded")
            image.load()
            shown = image.convert("RGBA") if image.mode == "P" else image
            extrema = shown.getextrema()
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise _Unusable(f"does not decode as PNG ({type(error).__name__})") from None
    bands = extrema if isinstance(extrema[0], tuple) else (extrema,)
    return width, height, all(low == high for low, high in bands)
