"""PMC-VQA as its authors ship it: ``test_clean.csv`` and ``images.zip`` with figures of one or two panels."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.deck import Card, Dealt, choice_cards, deal, shuffled
from hf_datasets.phantoms.vqa.endoscopy import Frame, random_polyp
from hf_datasets.phantoms.vqa.histology import Tile
from hf_datasets.phantoms.vqa.scenes import (
    MODALITIES,
    Scene,
    brain_slice,
    chest_slice,
    film,
    fundus,
    scope,
    sonogram,
    tissue,
    which,
)
from hf_datasets.phantoms.vqa.tables import jpeg

COLUMNS = (
    "Figure_path", "Question", "Answer", "Choice A", "Choice B", "Choice C", "Choice D", "Answer_label",
)  # fmt: skip
OPTIONS, EACH, PAIRS = 4, 2, 4
GAP = 8


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write two dozen questions to single pictures and to figures that set two side by side."""
    rng = rng_for(seed, "pmc_vqa")
    scenes = _scenes(seed)
    cards = choice_cards(scenes, EACH, rng) + _pairs(scenes, rng)
    dealt = deal(shuffled(cards, rng), OPTIONS, rng)
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, COLUMNS)
    writer.writeheader()
    written: dict[int, str] = {}
    with ZipFile(out / "images.zip", "w", ZIP_STORED) as archive:
        for each in dealt:
            if id(each.scene) not in written:
                number = int(rng.integers(10**6, 10**7))
                written[id(each.scene)] = f"PMC{number}_Fig{int(rng.integers(1, 9))}_{len(written)}.jpg"
                archive.writestr(ZipInfo(f"images/{written[id(each.scene)]}"), jpeg(each.scene.frames[0]))
            writer.writerow(_row(written[id(each.scene)], each))
    (out / "test_clean.csv").write_text(table.getvalue(), encoding="utf-8", newline="")
    return {}


def _scenes(seed: int) -> list[Scene]:
    def own(*path: str | int) -> Rng:
        return rng_for(seed, "pmc_vqa", *path)

    with_polyp = own("scope")
    return [
        film(own("film"), "pleural effusion"),
        chest_slice(own("chest"), effusion=True),
        brain_slice(own("brain"), "T2", ("right",)),
        sonogram(own("fan"), "two cysts"),
        fundus(own("eye"), "left", "haemorrhages"),
        tissue(own("tissue", 0), Tile("glandular", 3)),
        tissue(own("tissue", 1), Tile("muscle", immunostain=True)),
        tissue(own("tissue", 2), Tile("adipose", infiltrate=True)),
        scope(with_polyp, Frame((random_polyp(with_polyp),), instrument=True)),
        film(own("film", 1), "pacemaker"),
    ]


def _pairs(scenes: list[Scene], rng: Rng) -> list[Card]:
    """Figures of two panels of different modalities, and a question to one of the panels."""
    cards = []
    for turn in range(PAIRS):
        panels = [scenes[index] for index in rng.permutation(len(scenes))]
        left = panels[0]
        right = next(panel for panel in panels if panel.modality != left.modality)
        asked, side = ((left, "left"), (right, "right"))[turn % 2]
        ask = which(
            "modality",
            f"Which imaging modality was used for the panel on the {side}?",
            asked.modality,
            MODALITIES,
        )
        cards.append(Card(Scene((_beside(left.frames[0], right.frames[0]),), "figure", "mixed", (ask,)), ask))
    return cards


def _beside(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Two panels on white paper."""
    panels = [panel if panel.ndim == 3 else np.stack([panel] * 3, axis=-1) for panel in (left, right)]
    paper = np.full(
        (max(panel.shape[0] for panel in panels), sum(panel.shape[1] for panel in panels) + GAP, 3),
        255,
        np.uint8,
    )
    paper[: panels[0].shape[0], : panels[0].shape[1]] = panels[0]
    paper[: panels[1].shape[0], panels[0].shape[1] + GAP :] = panels[1]
    return paper


def _row(figure: str, dealt: Dealt) -> dict[str, str]:
    """Upstream writes the letter before an option's text, with and without a blank."""
    choices = {f"Choice {letter}": f" {letter}:{words} " for letter, words in dealt.options.items()}
    return {
        "Figure_path": figure,
        "Question": dealt.ask.question,
        "Answer": dealt.ask.answer,
        **choices,
        "Answer_label": dealt.letter,
    }
