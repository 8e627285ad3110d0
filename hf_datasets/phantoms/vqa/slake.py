"""SLAKE as its authors ship it: ``test.json`` in two languages and ``imgs/xmlab<n>/{source.jpg,...}``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.deck import Card, open_cards
from hf_datasets.phantoms.vqa.scenes import NO, YES, Scene, belly_slice, brain_slice, chest_slice, film

EACH, CHINESE_EVERY = 3, 7
CONTENT = {
    "modality": "Modality",
    "organ": "Organ",
    "plane": "Plane",
    "position": "Position",
    "quantity": "Quantity",
    "presence": "Abnormality",
    "diagnosis": "Abnormality",
    "attribute": "Color",
}
CHINESE = ("图像是什么模态？", "图像中有异常吗？", "图像显示哪个部位？")
LOCATIONS = {"brain": "Head", "abdomen": "Abdomen", "chest": "Lung"}


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write the pictures, two dozen English questions and a few Chinese ones."""
    rng = rng_for(seed, "slake")
    scenes = _scenes(seed)
    numbers = sorted(rng.choice(641, len(scenes), replace=False).tolist())
    for number, scene in zip(numbers, scenes, strict=True):
        folder = out / "imgs" / f"xmlab{number}"
        folder.mkdir(parents=True)
        Image.fromarray(scene.frames[0]).save(folder / "source.jpg", quality=92)
    number_of = {id(scene): number for number, scene in zip(numbers, scenes, strict=True)}
    records: list[dict[str, object]] = []
    for index, card in enumerate(open_cards(scenes, EACH, rng)):
        if index % CHINESE_EVERY == 0:
            records.append(_chinese(len(records), number_of[id(card.scene)], card, rng))
        records.append(_record(len(records), number_of[id(card.scene)], card))
    (out / "test.json").write_text(json.dumps(records, ensure_ascii=False) + "\n", encoding="utf-8")
    return {}


def _scenes(seed: int) -> list[Scene]:
    painters: tuple[Callable[[Rng], Scene], ...] = (
        lambda rng: brain_slice(rng, "T2", ("right",)),
        lambda rng: chest_slice(rng, effusion=True),
        lambda rng: film(rng, "pneumothorax"),
        lambda rng: belly_slice(rng, axial=True),
        lambda rng: brain_slice(rng, "T1", ("left", "right")),
        lambda rng: film(rng, "pleural effusion"),
        lambda rng: brain_slice(rng, "T1", ()),
        lambda rng: belly_slice(rng, axial=False),
        lambda rng: film(rng, "cardiomegaly"),
        lambda rng: film(rng, None),
    )
    return [paint(rng_for(seed, "slake", index)) for index, paint in enumerate(painters)]


def _record(qid: int, number: int, card: Card) -> dict[str, object]:
    answer = card.ask.answer
    return {
        "img_id": number,
        "img_name": f"xmlab{number}/source.jpg",
        "question": card.ask.question,
        "answer": answer.capitalize() if answer in (YES, NO) else answer,
        "q_lang": "en",
        "location": LOCATIONS[card.scene.part],
        "modality": card.scene.modality,
        "answer_type": "CLOSED" if answer in (YES, NO) or len(card.ask.others) == 1 else "OPEN",
        "base_type": "vqa",
        "content_type": CONTENT[card.ask.kind],
        "triple": ["vhead", "_", "_"],
        "qid": 11934 + qid,
    }


def _chinese(qid: int, number: int, card: Card, rng: Rng) -> dict[str, object]:
    """A question that the English part leaves out; its answer is of no account."""
    words = {"question": CHINESE[int(rng.integers(len(CHINESE)))], "answer": "是", "q_lang": "zh"}
    return _record(qid, number, card) | words
