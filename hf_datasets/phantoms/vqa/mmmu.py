"""MMMU's medical subjects as the Hub keeps them: ``<Subject>/validation-00000-of-00001.parquet``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.deck import Dealt, choice_cards, deal
from hf_datasets.phantoms.vqa.endoscopy import Frame, random_polyp
from hf_datasets.phantoms.vqa.histology import Tile
from hf_datasets.phantoms.vqa.scenes import (
    Scene,
    brain_slice,
    chest_slice,
    film,
    fundus,
    scope,
    sonogram,
    tissue,
)
from hf_datasets.phantoms.vqa.series import CHANGES, brain_stack, films, odd_one_out
from hf_datasets.phantoms.vqa.tables import encoded, write_parquet

IMAGES = tuple(f"image_{number}" for number in range(1, 8))
OPTIONS, EACH = 5, 2


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write some thirty questions with two to five options, and one without, in five tables."""
    rng = rng_for(seed, "mmmu")
    for subject, painters in SUBJECTS.items():
        scenes = [paint(rng_for(seed, "mmmu", subject, index)) for index, paint in enumerate(painters)]
        dealt = deal(choice_cards(scenes, EACH, rng, least=2), OPTIONS, rng)
        rows = [_row(subject, index + 1, each) for index, each in enumerate(dealt)]
        if subject == "Pharmacy":
            rows.append(
                rows[0]
                | {"id": f"validation_{subject}_{len(rows) + 1}", "question_type": "open", "options": "[]"}
            )
        write_parquet(out / subject / "validation-00000-of-00001.parquet", rows, IMAGES)
    return {}


def _polyp(rng: Rng) -> Scene:
    return scope(rng, Frame((random_polyp(rng),)))


SUBJECTS: dict[str, tuple[Callable[[Rng], Scene], ...]] = {
    "Basic_Medical_Science": (
        lambda rng: tissue(rng, Tile("glandular", 2)),
        lambda rng: tissue(rng, Tile("muscle", vessel=True)),
        lambda rng: brain_slice(rng, "T1", ()),
    ),
    "Clinical_Medicine": (
        lambda rng: film(rng, "pneumothorax"),
        lambda rng: fundus(rng, "left", "haemorrhages"),
        lambda rng: films(rng, "pleural effusion", CHANGES[0]),
    ),
    "Diagnostics_and_Laboratory_Medicine": (
        lambda rng: brain_slice(rng, "T2", ("left",)),
        lambda rng: tissue(rng, Tile("glandular", 3, immunostain=True)),
        lambda rng: odd_one_out(rng, 3, int(rng.integers(3))),
    ),
    "Pharmacy": (
        lambda rng: tissue(rng, Tile("adipose", infiltrate=True)),
        lambda rng: chest_slice(rng, effusion=True),
        lambda rng: sonogram(rng, "stone"),
    ),
    "Public_Health": (
        _polyp,
        lambda rng: film(rng, "consolidation"),
        lambda rng: brain_stack(rng, 3, int(rng.integers(3))),
    ),
}  # fmt: skip


def _row(subject: str, number: int, dealt: Dealt) -> dict[str, Any]:
    frames = dealt.scene.frames
    marks = " ".join(f"<image {place + 1}>" for place in range(len(frames)))
    pictures = {
        name: encoded(frames[place], f"{name}.png") if place < len(frames) else None
        for place, name in enumerate(IMAGES)
    }
    return {
        "id": f"validation_{subject}_{number}",
        "question": f"{marks} {dealt.ask.question}",
        "options": repr(list(dealt.options.values())),
        "explanation": "",
        **pictures,
        "img_type": f"['{dealt.scene.modality}']",
        "answer": dealt.letter,
        "topic_difficulty": "Easy",
        "question_type": "multiple-choice",
        "subfield": dealt.scene.part,
    }
