"""PathCap: ``PathCap.json`` with image and caption, the pictures in ``images/``; captions say what was drawn."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.histology import Tile, Tissue, paint

TABLE, FOLDER = "PathCap.json", "images"
_TISSUES: tuple[Tissue, ...] = ("glandular", "adipose", "glandular", "muscle")
_NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}


@dataclass(frozen=True)
class Captions:
    """So many captioned tiles: glands, fat and muscle, with and without inflammation and vessels."""

    cases: int

    def generate(self, out: Path, seed: int) -> dict[str, RealImage]:
        """Write the tiles and the table that names them."""
        (out / FOLDER).mkdir()
        rng = rng_for(seed, "pathcap", self.cases)
        records = []
        for index, number in enumerate(sorted(rng.choice(10**7, self.cases, replace=False).tolist())):
            own = rng_for(seed, "pathcap", number)
            tile = _deal(index, own)
            name = f"pathcap_{number:07d}.jpg"
            Image.fromarray(paint(tile, own)).save(out / FOLDER / name, quality=92)
            records.append({"image": name, "caption": caption_of(tile, own)})
        (out / TABLE).write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        return {}


TASKS = {"pathology-caption-100-task": Captions(12), "pathology-caption-500-task": Captions(24)}


def for_task(task_id: str) -> Captions:
    """The generator of one of the two tasks, which differ in size alone."""
    return TASKS[task_id]


def _deal(index: int, rng: Rng) -> Tile:
    tissue = _TISSUES[index % len(_TISSUES)]
    infiltrate = index % 3 == 0
    return Tile(
        tissue,
        glands=int(rng.integers(1, 5)) if tissue == "glandular" else 0,
        infiltrate=infiltrate,
        vessel=not infiltrate and bool(rng.random() < 0.4),
        immunostain=tissue != "adipose" and bool(rng.random() < 0.2),
    )


def caption_of(tile: Tile, rng: Rng) -> str:
    """One to three sentences on what the tile shows, in a wording that varies."""
    sentences = [_tissue(tile, rng)]
    if tile.infiltrate:
        sentences.append(
            _one(
                rng,
                "There is a dense infiltrate of lymphocytes.",
                "A focal dense lymphocytic infiltrate is present.",
            )
        )
    if tile.vessel:
        sentences.append(
            _one(
                rng,
                "A blood vessel with red blood cells is seen.",
                "A vessel filled with red blood cells is present.",
            )
        )
    if not tile.infiltrate:
        sentences.append(_one(rng, "No inflammation is seen.", "There is no inflammatory infiltrate."))
    return " ".join(sentences)


def _tissue(tile: Tile, rng: Rng) -> str:
    stain = (
        _one(rng, "Immunohistochemistry with brown DAB staining", "Immunohistochemical DAB stain")
        if tile.immunostain
        else _one(rng, "Hematoxylin and eosin stain", "H&E stained section")
    )
    if tile.tissue == "glandular":
        glands = f"{_NUMBERS[tile.glands]} round gland{'s' if tile.glands > 1 else ''}"
        return f"{stain} of glandular tissue with {glands} lined by columnar epithelium in a loose stroma."
    if tile.tissue == "adipose":
        return f"{stain} of adipose tissue with large empty fat cells and thin walls."
    return f"{stain} of smooth muscle with parallel bundles of spindle cells."


def _one(rng: Rng, *choices: str) -> str:
    return choices[int(rng.integers(len(choices)))]
