"""MedFrameQA as the Hub keeps it: ``data/test-*.parquet`` with image_1 to image_5 and lettered options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.deck import LETTERS, Dealt, choice_cards, deal
from hf_datasets.phantoms.vqa.scenes import Scene
from hf_datasets.phantoms.vqa.series import (
    CHANGES,
    SHIFTED,
    brain_stack,
    chest_stack,
    films,
    odd_one_out,
    scope_run,
)
from hf_datasets.phantoms.vqa.tables import encoded, write_parquet

FRAMES = tuple(f"image_{number}" for number in range(1, 6))
OPTIONS = 5


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write two dozen questions to series of frames in two shards of the test split."""
    rng = rng_for(seed, "medframeqa")
    dealt = deal(choice_cards(_scenes(seed), 1, rng, least=3), OPTIONS, rng)
    rows = [_row(index, each, rng) for index, each in enumerate(dealt)]
    half = len(rows) // 2
    for name, part in (("test-00000-of-00002", rows[:half]), ("test-00001-of-00002", rows[half:])):
        write_parquet(out / "data" / f"{name}.parquet", part, FRAMES)
    return {}


def _scenes(seed: int) -> list[Scene]:
    def own(*path: str | int) -> Rng:
        return rng_for(seed, "medframeqa", *path)

    courses = [
        ("pleural effusion", CHANGES[0]),
        ("pneumothorax", CHANGES[1]),
        ("pleural effusion", CHANGES[2]),
        ("pneumothorax", CHANGES[3]),
        ("pleural effusion", SHIFTED),
        ("pneumothorax", CHANGES[0]),
        ("pleural effusion", CHANGES[1]),
        ("pneumothorax", SHIFTED),
    ]
    scenes = [films(own("films", index), *course) for index, course in enumerate(courses)]
    for name, make in (
        ("scope", scope_run),
        ("brain", brain_stack),
        ("chest", chest_stack),
        ("odd", odd_one_out),
    ):
        for index in range(4):
            rng = own(name, index)
            number = int(rng.integers(3, 5))
            scenes.append(make(rng, number, int(rng.integers(number))))
    return scenes


def _row(index: int, dealt: Dealt, rng: Rng) -> dict[str, Any]:
    frames = dealt.scene.frames
    pictures = {
        name: encoded(frames[place], f"{name}.jpg") if place < len(frames) else None
        for place, name in enumerate(FRAMES)
    }
    return {
        "question_id": f"{int(rng.integers(16**8)):08x}-{index:04d}",
        **pictures,
        "question": dealt.ask.question,
        "options": [dealt.options[letter] for letter in LETTERS if letter in dealt.options],
        "correct_answer": dealt.letter,
        "modality": dealt.scene.modality,
        "organ": dealt.scene.part,
        "system": "drawn",
        "reasoning_chain": f"Drawn so that the answer is: {dealt.ask.answer}.",
    }
