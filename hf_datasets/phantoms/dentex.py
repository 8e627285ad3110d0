"""DENTEX: panoramic films and a COCO-like JSON with quadrant, tooth and disease.

``training_data/quadrant_enumeration_disease/{train_quadrant_enumeration_disease.json, xrays/train_<n>.png}``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Array, Mask, Rng, blend, ellipse, rng_for, smooth_noise, soft

WIDTH, HEIGHT = 560, 288
FILMS = 8
DISEASES = ("Impacted", "Caries", "Periapical Lesion", "Deep Caries")
WIDTHS = (24.0, 20.0, 23.0, 22.0, 23.0, 33.0, 31.0, 28.0)
"""Width of a crown in pixels, from the middle incisor to the wisdom tooth."""
SPECKLE = 2


@dataclass(frozen=True)
class Tooth:
    """Where a tooth stands. ``down`` is 1 where its root points down (lower jaw) and -1 in the upper jaw."""

    quadrant: int
    number: int
    neck: tuple[float, float]
    width: float
    crown: float
    root: float
    tilt: float
    down: int


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write eight films with two to four diseased teeth, one with none."""
    rng = rng_for(seed, "dentex")
    part = out / "training_data" / "quadrant_enumeration_disease"
    (part / "xrays").mkdir(parents=True)
    numbers = sorted(rng.choice(704, FILMS, replace=False).tolist())
    images: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    for index, number in enumerate(numbers, start=1):
        own = rng_for(seed, "dentex", number)
        film, diseased = _film(own, healthy=index == 4)
        name = f"train_{number}.png"
        Image.fromarray(film).save(part / "xrays" / name)
        images.append({"height": HEIGHT, "width": WIDTH, "id": index, "file_name": name})
        for tooth, disease, extent in diseased:
            annotations.append(_annotation(len(annotations) + 1, index, tooth, disease, extent))
    table: dict[str, Any] = {"images": images, "annotations": annotations}
    table["categories_1"] = _categories("1234")
    table["categories_2"] = _categories("12345678")
    table["categories_3"] = _categories(DISEASES)
    (part / "train_quadrant_enumeration_disease.json").write_text(json.dumps(table), encoding="utf-8")
    return {}


def _categories(names: tuple[str, ...] | str) -> list[dict[str, object]]:
    return [{"id": index, "name": name, "supercategory": name} for index, name in enumerate(names)]


def _annotation(number: int, image: int, tooth: Tooth, disease: str, extent: Mask) -> dict[str, object]:
    rows, columns = np.nonzero(extent)
    x, y = int(columns.min()), int(rows.min())
    wide, high = int(columns.max()) + 1 - x, int(rows.max()) + 1 - y
    return {
        "iscrowd": 0,
        "image_id": image,
        "bbox": [x, y, wide, high],
        "segmentation": [[x, y, x + wide, y, x + wide, y + high, x, y + high]],
        "id": number,
        "area": wide * high,
        "category_id_1": tooth.quadrant - 1,
        "category_id_2": tooth.number - 1,
        "category_id_3": DISEASES.index(disease),
    }


def _film(rng: Rng, healthy: bool) -> tuple[np.ndarray, list[tuple[Tooth, str, Mask]]]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    film = _jaws(x, y, rng)
    bend = rng.uniform(20, 30)
    teeth = [tooth for quadrant in (1, 2, 3, 4) for tooth in _quadrant(quadrant, bend, rng)]
    ill = {} if healthy else _deal(teeth, rng)
    found = []
    for index, tooth in enumerate(teeth):
        near = _window(tooth)
        extent = _draw(film[near], x[near], y[near], tooth, ill.get(index), rng)
        if index in ill:
            whole = np.zeros(film.shape, dtype=bool)
            whole[near] = extent
            found.append((tooth, ill[index], whole))
    film = gaussian_filter(film, 0.8) * (1 + 0.04 * smooth_noise(film.shape, 40, rng))
    film += 0.02 * smooth_noise(film.shape, 1.2, rng)
    grey = np.clip(235 * film, 0, 255)
    return (np.rint(grey / SPECKLE) * SPECKLE).astype(np.uint8), found


def _jaws(x: Array, y: Array, rng: Rng) -> Array:
    """Air, soft tissue, both jaws with spongy bone, the dark gap of the mouth and the sinuses."""
    film = 0.16 + 0.1 * soft(
        ellipse(x, y, (WIDTH / 2, HEIGHT / 2), (WIDTH * 0.5, HEIGHT * 0.62), power=3), 0.3
    )
    u = (x - WIDTH / 2) / (WIDTH / 2)
    sponge = 0.022 * smooth_noise(x.shape, 2.2, rng)
    lower = soft(np.abs(y - (214 - 46 * u**2)) / 58, 0.2) * (np.abs(u) < 0.93)
    upper = soft(np.abs(y - (76 - 26 * u**2)) / 52, 0.3) * (np.abs(u) < 0.9)
    blend(film, lower, 0.42 + sponge)
    blend(film, upper, 0.38 + sponge)
    blend(film, soft(np.abs(y - (272 - 52 * u**2)) / 5, 0.5) * (np.abs(u) < 0.93), 0.62)
    for sign in (-1, 1):
        blend(film, 0.5 * soft(ellipse(u, y, (sign * 0.42, 36), (0.2, 24)), 0.4), 0.25)
    return film


def _quadrant(quadrant: int, bend: float, rng: Rng) -> list[Tooth]:
    """Eight teeth from the middle outwards, along an arch; the patient's right is on the left."""
    side, down = (-1 if quadrant in (1, 4) else 1), (-1 if quadrant in (1, 2) else 1)
    teeth, reach = [], 1.0
    for number, typical in enumerate(WIDTHS, start=1):
        width = typical * (0.85 if down > 0 and number < 4 else 1.0) * rng.uniform(0.96, 1.04)
        across = reach + width / 2
        reach += width + rng.uniform(2.0, 3.2)
        u = across / (WIDTH / 2)
        middle = 144 - bend * u**2
        teeth.append(
            Tooth(
                quadrant,
                number,
                (WIDTH / 2 + side * across, middle + down * (29 + rng.uniform(-1, 1))),
                width,
                crown=24.0,
                root=(50.0 if number < 6 else 42.0) * rng.uniform(0.94, 1.06),
                tilt=side * down * -0.1 * u + rng.uniform(-0.03, 0.03),
                down=down,
            )
        )
    return teeth


def _deal(teeth: list[Tooth], rng: Rng) -> dict[int, str]:
    """Diseases for a few teeth: wisdom teeth alone are impacted, neighbours are never both ill."""
    ill: dict[int, str] = {}
    wisdom = [index for index, tooth in enumerate(teeth) if tooth.number == 8 and tooth.down > 0]
    if rng.random() < 0.6:
        ill[int(rng.choice(wisdom))] = "Impacted"
    for disease in rng.permutation(["Caries", "Periapical Lesion", "Deep Caries"]).tolist():
        free = [
            index
            for index, tooth in enumerate(teeth)
            if 3 <= tooth.number <= 7 and not {index - 1, index, index + 1} & ill.keys()
        ]
        if rng.random() < 0.75:
            ill[int(rng.choice(free))] = disease
    return ill


def _window(tooth: Tooth, reach: int = 84) -> tuple[slice, slice]:
    """Where a tooth and its disease can lie."""
    column, row = (int(place) for place in tooth.neck)
    return slice(max(0, row - reach), row + reach), slice(max(0, column - reach), column + reach)


def _draw(film: Array, x: Array, y: Array, tooth: Tooth, disease: str | None, rng: Rng) -> Mask:
    """Paint one tooth and its disease; the mask of what a reader would frame."""
    if disease == "Impacted":
        side = -1 if tooth.neck[0] < WIDTH / 2 else 1
        place = (tooth.neck[0] + side * 2, tooth.neck[1] + 16)
        lying = side * tooth.down * rng.uniform(0.9, 1.2)
        tooth = Tooth(tooth.quadrant, 8, place, 27, 22, 30, lying, tooth.down)
    along, across = _axes(x, y, tooth)
    taper = np.clip(1 - 0.5 * along / tooth.root, 0.3, 1)
    root = np.maximum(
        np.abs(across) / (0.43 * tooth.width * taper), np.abs(along - tooth.root / 2) / (tooth.root / 2)
    )
    crown = ellipse(across, along, (0, -tooth.crown / 2), (tooth.width / 2, tooth.crown / 2 + 1), power=3.4)
    blend(film, soft(root * 0.94, 0.25), 0.26)
    blend(film, soft(root, 0.12), 0.64)
    blend(film, soft(crown, 0.12), 0.86)
    blend(film, 0.8 * soft(ellipse(across, along, (0, -6), (tooth.width * 0.3, 6.5), power=2.5), 0.3), 0.7)
    pulp = np.maximum(
        np.abs(across) / (0.1 * tooth.width * taper), np.abs(along - 0.35 * tooth.root) / (0.52 * tooth.root)
    )
    blend(film, 0.75 * soft(pulp, 0.5), 0.46)
    beyond = _disease(film, along, across, tooth, disease, rng)
    return np.asarray(beyond | (np.minimum(root, crown) <= 1))


def _axes(x: Array, y: Array, tooth: Tooth) -> tuple[Array, Array]:
    """Pixels towards the tip of the root, counted from the neck, and across the tooth."""
    dx, dy = x - tooth.neck[0], (y - tooth.neck[1]) * tooth.down
    cos, sin = np.float32(np.cos(tooth.tilt)), np.float32(np.sin(tooth.tilt))
    return dy * cos + dx * sin, dx * cos - dy * sin


def _disease(film: Array, along: Array, across: Array, tooth: Tooth, disease: str | None, rng: Rng) -> Mask:
    side = float(rng.choice([-1, 1]))
    if disease == "Caries":
        hole = ellipse(
            across, along, (side * tooth.width * 0.42, -tooth.crown * 0.62), (tooth.width * 0.2, 5.0)
        )
        blend(film, 0.92 * soft(hole, 0.35), 0.3)
    elif disease == "Deep Caries":
        hole = ellipse(
            across, along, (side * tooth.width * 0.22, -tooth.crown * 0.6), (tooth.width * 0.32, 9.5)
        )
        blend(film, 0.95 * soft(hole, 0.3), 0.22)
    elif disease == "Periapical Lesion":
        halo = ellipse(across, along, (0, tooth.root + 2), (tooth.width * 0.42, 10))
        blend(film, 0.9 * soft(halo, 0.35), 0.16)
        return np.asarray(halo <= 1)
    return np.zeros(film.shape, dtype=bool)
