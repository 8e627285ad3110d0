"""VQA-RAD as its authors ship it: ``VQA_RAD Dataset Public.json`` and ``VQA_RAD Image Folder/synpic<n>.jpg``.

Questions are put to drawn chest radiographs and CT slices, whose answers follow from what was drawn, and to
a few real images that installed packages hold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from hf_datasets.phantoms import abdomen, chest_xray, thorax
from hf_datasets.phantoms.chest_xray import Findings
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.real_images import shipped_images
from hf_datasets.phantoms.shapes import Array, Rng, rng_for

DATASET = "VQA_RAD Dataset Public.json"
FOLDER = "VQA_RAD Image Folder"
CHESTS, ABDOMENS, CHEST_CTS = 5, 3, 2
TRAIN_EVERY = 12
"""Every so many questions one is put into the training part, as upstream mixes both parts in one file."""


Question = tuple[str, str, str]
"""Upstream's question type, the question, the answer."""


Drawing = tuple[str, np.ndarray, list[Question], int]
"""Upstream's organ, the picture, what can be asked about it, and how much is."""


@dataclass(frozen=True)
class Asked:
    """A question about an image. ``kind`` is the upstream's question type."""

    image: str
    organ: str
    kind: str
    question: str
    answer: str


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write the images and about two dozen questions, in random order."""
    folder = out / FOLDER
    folder.mkdir()
    rng = rng_for(seed, "vqa_rad")
    names = iter(f"synpic{number}.jpg" for number in (100 + rng.choice(68_000, 32, replace=False)).tolist())
    asked: list[Asked] = []
    used: Counter[str] = Counter()
    for turn, (organ, pixels, questions, count) in enumerate(_drawings(seed, rng)):
        name = next(names)
        Image.fromarray(pixels).save(folder / name, quality=92)
        chosen = _choose(questions, count, turn, used, rng)
        asked += [Asked(name, organ, kind, question, answer) for kind, question, answer in chosen]
    real: dict[str, RealImage] = {}
    for item, pixels, origin in shipped_images():
        name = next(names)
        Image.fromarray(pixels).save(folder / name, quality=92)
        real[name] = origin.model_copy(update={"file": name})
        asked += [Asked(name, item.organ, "OTHER", question, answer) for question, answer in item.questions]
    shuffled = [asked[i] for i in rng.permutation(len(asked))]
    records = [_record(index, each, rng) for index, each in enumerate(shuffled)]
    (out / DATASET).write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return real


def _drawings(seed: int, rng: Rng) -> Iterator[Drawing]:
    for index, found in enumerate(chest_xray.deal(rng, CHESTS)):
        own = rng_for(seed, "vqa_rad", "chest", index)
        yield "CHEST", chest_xray.frontal(found, own), _chest_questions(found), 3
    for index in range(ABDOMENS):
        own = rng_for(seed, "vqa_rad", "abdomen", index)
        yield "ABD", *_abdomen(own, lesion=index == 0, horizontal=index != 1), 2
    for index in range(CHEST_CTS):
        own = rng_for(seed, "vqa_rad", "chest ct", index)
        yield "CHEST", *_chest_ct(own, effusion=index == 0), 2


def _choose(questions: list[Question], count: int, turn: int, used: Counter[str], rng: Rng) -> list[Question]:
    """``count`` of the questions: open, yes and no in turn, of the kinds asked least so far."""
    order = [questions[index] for index in rng.permutation(len(questions))]
    chosen: list[Question] = []
    for step in range(count):
        wanted = ("open", "yes", "no")[(turn + step) % 3]
        left = [each for each in order if each not in chosen]
        fitting = [each for each in left if _sort(each[2]) == wanted] or left
        chosen.append(min(fitting, key=lambda each: used[each[0]]))
        used[chosen[-1][0]] += 1
    return chosen


def _sort(answer: str) -> str:
    return answer if answer in ("yes", "no") else "open"


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _chest_questions(found: Findings) -> list[Question]:
    asked = [
        ("PRES", "Is there a pleural effusion?", _yes(found.effusion)),
        ("PRES", "Is a pneumothorax present?", _yes(found.pneumothorax)),
        ("PRES", "Is there evidence of consolidation?", _yes(found.consolidation)),
        ("SIZE", "Is the heart enlarged?", _yes(found.cardiomegaly)),
        ("PRES", "Is a pacemaker seen in this image?", _yes(found.pacemaker)),
        ("ABN", "Is this chest x-ray normal?", _yes(found.normal)),
        ("MODALITY", "What type of imaging is this?", "x-ray"),
        ("ORGAN", "What part of the body is shown?", "chest"),
        ("COUNT", "How many lungs are seen?", "2"),
    ]
    for name, side in (("pleural effusion", found.effusion), ("pneumothorax", found.pneumothorax)):
        if side:
            asked += [
                ("POS", f"On which side is the {name}?", side),
                ("POS", f"Is the {name} on the right side?", _yes(side == "right")),
            ]
    if found.consolidation:
        asked.append(("POS", "Which lung shows the consolidation?", f"{found.consolidation[0]} lung"))
    if found.nodule:
        asked.append(("POS", "Which lung contains the calcified nodule?", f"{found.nodule[0]} lung"))
    return asked


def _abdomen(rng: Rng, *, lesion: bool, horizontal: bool) -> tuple[np.ndarray, list[Question]]:
    pixel = 1.3
    plan = abdomen.random_abdomen(rng, 256 * pixel * 0.98, lesions=1 if lesion else 0)
    if horizontal:
        volume = abdomen.paint(plan, (3, 224, 256), (4.0, pixel, pixel), rng)
        plane, masked = volume.hu[1], volume.tumour[1]
    else:
        volume = abdomen.paint(plan, (60, 72, 128), (4.0, 2 * pixel, 2 * pixel), rng)
        row = int(np.argmax(volume.kidney.sum(axis=(0, 2))))
        plane, masked = volume.hu[:, row], volume.tumour[:, row]
    asked = [
        ("MODALITY", "What imaging modality is used to acquire this image?", "CT"),
        ("PLANE", "In what plane was this image taken?", "axial" if horizontal else "coronal"),
        ("PLANE", "Is this an axial image?", _yes(horizontal)),
        ("ORGAN", "Are the kidneys visible in this image?", "yes"),
        ("MODALITY", "Was this image taken by MRI?", "no"),
        ("COUNT", "How many kidneys are seen?", "2"),
        ("ORGAN", "Which solid organ takes up most of the left side of the image?", "liver"),
    ]
    if masked.sum() > 40 or not lesion:
        asked.append(("PRES", "Is there a mass in one of the kidneys?", _yes(lesion)))
    return _window(plane, -160, 260, stretch=1 if horizontal else 4.0 / (2 * pixel)), asked


def _chest_ct(rng: Rng, *, effusion: bool) -> tuple[np.ndarray, list[Question]]:
    pixel = 1.3
    side = int(rng.choice([-1, 1]))
    plan = thorax.random_chest(rng, 256 * pixel, effusion=side if effusion else None)
    plane = thorax.paint(plan, (1, 224, 256), (4.0, pixel, pixel), rng)[0]
    asked = [
        ("MODALITY", "What is the imaging modality?", "CT"),
        ("PLANE", "What plane is this image in?", "axial"),
        ("PRES", "Is there a pleural effusion?", _yes(effusion)),
        ("ORGAN", "Is the heart visible in this image?", "yes"),
        ("ORGAN", "Is the liver shown in this image?", "no"),
    ]
    if effusion:
        asked.append(("POS", "On which side is the effusion?", "right" if side < 0 else "left"))
    return _window(plane, -400, 400), asked


def _window(plane: Array, low: float, high: float, stretch: float = 1.0) -> np.ndarray:
    grey = (np.clip((plane - low) / (high - low), 0, 1) * 255).astype(np.uint8)
    picture = Image.fromarray(grey)
    if stretch != 1.0:
        picture = picture.resize(
            (256, round(256 * plane.shape[0] * stretch / plane.shape[1])), Image.Resampling.BICUBIC
        )
    return np.asarray(picture)


def _record(index: int, asked: Asked, rng: Rng) -> dict[str, object]:
    closed = asked.answer in ("yes", "no")
    train = index % TRAIN_EVERY == TRAIN_EVERY - 1
    return {
        "qid": index + 1,
        "phrase_type": "freeform" if train else ("test_freeform", "test_para")[int(rng.random() < 0.33)],
        "qid_linked_id": f"{index + 1:04d}FS",
        "image_case_url": "",
        "image_name": asked.image,
        "image_organ": asked.organ,
        "evaluation": "not evaluated",
        "question": asked.question,
        "question_rephrase": "NULL",
        "question_relation": "NULL",
        "question_frame": "NULL",
        "question_type": asked.kind,
        "answer": asked.answer.capitalize() if closed else asked.answer,
        "answer_type": "CLOSED" if closed else "OPEN",
    }
