"""The agent's plan: its words as they are, never as markup of ours, and its picture, decoded and encoded again."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from PIL import Image

from evaluator.readers.errors import ReadError
from evaluator.readers.image import read_image
from evaluator.untrusted import MEGABYTE, Refused, read_bytes
from space.markup import el, join, note, section
from space.rundetail.parts import why_missing
from space.snapshot import RunDetail
from space.viewer.canvas import grey, in_colour, picture

MAX_TEXT = MEGABYTE
MAX_SHOWN = 60_000
MAX_SIDE = 1400
MAX_PIXELS = 16_000_000


def plan(run: RunDetail) -> Markup:
    """Text and picture, or why there is none."""
    return el("div", section("plan.md", _words(run)), section("plan.png", _picture(run)))


def _words(run: RunDetail) -> Markup:
    path = run.plan
    if path is None:
        return note(why_missing(run, "plan.md"), "warning")
    try:
        text = read_bytes(path, MAX_TEXT).decode("utf-8", "replace")
    except Refused as refused:
        return note(f"It cannot be shown: {refused.message}", "bad")
    cut = (
        f" Only the first {MAX_SHOWN:,} of {len(text):,} characters are shown."
        if len(text) > MAX_SHOWN
        else ""
    )
    remark = el("p", f"As the agent wrote it; nothing in it is rendered.{cut}", class_="amb-hint")
    return join([remark, _headed(text[:MAX_SHOWN])])


def _headed(text: str) -> Markup:
    """Lines as they are; those that Markdown takes for headings stand out."""
    lines = [el("strong", line) if line.lstrip().startswith("#") else line for line in text.splitlines()]
    return el("pre", join(lines, "\n"), class_="amb-plan", tabindex="0")


def _picture(run: RunDetail) -> Markup:
    path = run.plan_picture
    if path is None:
        return note(why_missing(run, "plan.png"), "warning")
    try:
        pixels = read_image(path, max_pixels=MAX_PIXELS)
    except ReadError as error:
        return note(f"It cannot be shown: {error.message}", "bad")
    if pixels.dtype != np.uint8:
        pixels = grey(pixels, (float(pixels.min()), float(pixels.max())))
    image = Image.fromarray(in_colour(pixels))
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    return picture(
        np.asarray(image), "The agent's picture of its plan", exact=True, class_="amb-plan-picture"
    )
