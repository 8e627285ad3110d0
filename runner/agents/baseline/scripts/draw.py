"""Draw the pipeline as boxes joined by arrows, with the rejected candidates in grey beside the chosen one."""

import textwrap

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, GAP, MARGIN, TOP = 330, 76, 30, 28, 70
INK, STEP, CHOSEN, REJECTED = "#1d2733", "#dbe7f5", "#cfe8d5", "#ececec"


def draw_pipeline(path, title, boxes, chosen, rejected):
    """``boxes`` are texts in order, ``chosen`` is the index of the method's box, ``rejected`` the others."""
    width = 2 * MARGIN + WIDTH + len(rejected) * (WIDTH + GAP)
    image = Image.new("RGB", (width, TOP + len(boxes) * (HEIGHT + GAP)), "white")
    pen = ImageDraw.Draw(image)
    pen.text((MARGIN, MARGIN - 8), title, fill=INK, font=ImageFont.load_default(size=20))
    for row, text in enumerate(boxes):
        top = TOP + row * (HEIGHT + GAP)
        box(pen, MARGIN, top, text, CHOSEN if row == chosen else STEP)
        if row:
            arrow(pen, MARGIN + WIDTH // 2, top - GAP, top)
    for column, text in enumerate(rejected, 1):
        box(pen, MARGIN + column * (WIDTH + GAP), TOP + chosen * (HEIGHT + GAP), text, REJECTED)
    image.save(path)
    print(path, image.size)


def box(pen, left, top, text, colour):
    pen.rounded_rectangle(
        (left, top, left + WIDTH, top + HEIGHT), radius=10, fill=colour, outline=INK, width=2
    )
    lines = textwrap.wrap(text, 42)[:4]
    for number, line in enumerate(lines):
        y = top + HEIGHT // 2 + (number - len(lines) / 2) * 17
        pen.text((left + 12, y), line, fill=INK, font=ImageFont.load_default(size=14))


def arrow(pen, x, start, end):
    pen.line((x, start, x, end - 2), fill=INK, width=2)
    pen.polygon(((x - 6, end - 10), (x + 6, end - 10), (x, end - 1)), fill=INK)
