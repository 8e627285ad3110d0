"""BCCD: a stained blood smear in Pascal-VOC form.

``Annotations/*.xml``, ``JPEGImages/*.jpg``, ``ImageSets/Main/{train,val,trainval,test}.txt``; the classes
are spelled ``RBC``, ``WBC`` and ``Platelets`` as upstream spells them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
from PIL import Image

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Array, Rng, blend, ellipse, rng_for, smooth_noise, soft

WIDTH, HEIGHT = 320, 240
TEST, TRAIN = 8, 2


@dataclass(frozen=True)
class Cell:
    """A drawn cell and its box in pixels (half-open, inside the image)."""

    name: str
    box: tuple[int, int, int, int]


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write ten images: eight of the test split, one each of train and val."""
    rng = rng_for(seed, "bccd")
    numbers = sorted(rng.choice(411, TEST + TRAIN, replace=False).tolist())
    names = [f"BloodImage_{number:05d}" for number in numbers]
    for folder in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (out / folder).mkdir(parents=True)
    for name in names:
        pixels, cells = _smear(rng_for(seed, "bccd", name))
        Image.fromarray(pixels).save(out / "JPEGImages" / f"{name}.jpg", quality=92)
        (out / "Annotations" / f"{name}.xml").write_bytes(_annotation(name, cells))
    shuffled = [names[i] for i in rng.permutation(len(names))]
    train, val, test = shuffled[:1], shuffled[1:TRAIN], shuffled[TRAIN:]
    for split, members in {"train": train, "val": val, "trainval": train + val, "test": test}.items():
        text = "".join(f"{name}\n" for name in sorted(members))
        (out / "ImageSets" / "Main" / f"{split}.txt").write_text(text, encoding="utf-8")
    return {}


def _smear(rng: Rng) -> tuple[np.ndarray, list[Cell]]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    light = 1 + rng.uniform(-0.09, 0.09) * (x / WIDTH - 0.5) + rng.uniform(-0.09, 0.09) * (y / HEIGHT - 0.5)
    ground = np.array([226, 214, 219], np.float32) + rng.uniform(-8, 8, 3).astype(np.float32)
    image = np.stack([np.full((HEIGHT, WIDTH), value, np.float32) for value in ground], axis=-1)
    cells: list[Cell] = []
    taken: list[tuple[float, float, float]] = []
    for name, count in (
        ("WBC", int(rng.integers(1, 3))),
        ("RBC", int(rng.integers(11, 19))),
        ("Platelets", int(rng.integers(0, 4))),
    ):
        for _ in range(count):
            cell = _place(image, x, y, name, taken, rng)
            if cell:
                cells.append(cell)
    image *= light[..., None]
    image += 2.2 * rng.standard_normal(image.shape, dtype=np.float32)
    order = rng.permutation(len(cells))
    return np.clip(image, 0, 255).astype(np.uint8), [cells[i] for i in order]


_RADII = {"RBC": (17.0, 21.0), "WBC": (30.0, 38.0), "Platelets": (5.0, 7.5)}
_OVERLAP = {"RBC": 0.82, "WBC": 1.0, "Platelets": 1.05}
_DRAW_MARGIN = 0.55


def _place(
    image: Array, x: Array, y: Array, name: str, taken: list[tuple[float, float, float]], rng: Rng
) -> Cell | None:
    """Draw one cell where it overlaps the others only a little; ``None`` when the field is full."""
    for _ in range(60):
        radius = float(rng.uniform(*_RADII[name]))
        margin = radius * _DRAW_MARGIN
        cx, cy = float(rng.uniform(margin, WIDTH - margin)), float(rng.uniform(margin, HEIGHT - margin))
        if all(np.hypot(cx - ox, cy - oy) > _OVERLAP[name] * (radius + other) for ox, oy, other in taken):
            break
    else:
        return None
    taken.append((cx, cy, radius))
    stretch, angle = rng.uniform(0.9, 1.1), rng.uniform(0, np.pi)
    level = ellipse(x, y, (cx, cy), (radius * stretch, radius / stretch), angle)
    if name == "RBC":
        _red(image, level, rng)
    elif name == "WBC":
        _white(image, level, x, y, (cx, cy, radius), rng)
    else:
        _platelet(image, level, rng)
    rows, columns = np.nonzero(level <= 1)
    return Cell(name, (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1))


def _stain(image: Array, coverage: Array, colour: tuple[float, float, float]) -> None:
    for channel, value in enumerate(colour):
        blend(image[..., channel], coverage, value)


def _red(image: Array, level: Array, rng: Rng) -> None:
    tone = rng.uniform(-8, 8)
    _stain(image, soft(level, 0.14) * 0.86, (208 + tone, 146 + tone, 152 + tone))
    _stain(image, np.clip(1 - level / 0.55, 0, 1) * 0.75, (228 + tone, 198 + tone, 200 + tone))


def _white(image: Array, level: Array, x: Array, y: Array, at: tuple[float, float, float], rng: Rng) -> None:
    cx, cy, radius = at
    _stain(image, soft(level, 0.12) * 0.8, (196, 176, 212))
    grain = smooth_noise(level.shape, 1.2, rng) * 9
    turn = rng.uniform(0, 2 * np.pi)
    for lobe in range(int(rng.integers(2, 5))):
        angle = turn + lobe * 1.7
        centre = (cx + 0.36 * radius * np.cos(angle), cy + 0.36 * radius * np.sin(angle))
        nucleus = ellipse(x, y, centre, (radius * 0.42, radius * 0.34), angle)
        coverage = soft(nucleus, 0.2) * 0.93
        for channel, value in enumerate((98.0, 52.0, 142.0)):
            blend(image[..., channel], coverage, (value + grain).astype(np.float32))


def _platelet(image: Array, level: Array, rng: Rng) -> None:
    rough = level * (1 + 0.08 * smooth_noise(level.shape, 1.0, rng))
    _stain(image, soft(rough, 0.3) * 0.85, (150, 108, 172))
    _stain(image, np.clip(1 - level / 0.6, 0, 1) * 0.6, (118, 72, 150))


def _annotation(name: str, cells: list[Cell]) -> bytes:
    root = Xml.Element("annotation")
    _leaf(root, "folder", "JPEGImages")
    _leaf(root, "filename", f"{name}.jpg")
    size = Xml.SubElement(root, "size")
    for tag, value in (("width", WIDTH), ("height", HEIGHT), ("depth", 3)):
        _leaf(size, tag, value)
    _leaf(root, "segmented", 0)
    for cell in cells:
        item = Xml.SubElement(root, "object")
        for tag, text in (("name", cell.name), ("pose", "Unspecified"), ("truncated", 0), ("difficult", 0)):
            _leaf(item, tag, text)
        box = Xml.SubElement(item, "bndbox")
        for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), cell.box, strict=True):
            _leaf(box, tag, value)
    Xml.indent(root, "\t")
    return Xml.tostring(root) + b"\n"


def _leaf(parent: Xml.Element, tag: str, value: object) -> None:
    Xml.SubElement(parent, tag).text = str(value)
