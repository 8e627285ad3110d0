"""MedXpertQA's MM subset as its authors ship it: ``MM/{dev,test}.jsonl`` and ``images.zip``."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.deck import Dealt, choice_cards, deal
from hf_datasets.phantoms.vqa.endoscopy import Frame, random_polyp
from hf_datasets.phantoms.vqa.histology import Tile
from hf_datasets.phantoms.vqa.scenes import CHEST_FINDINGS, Scene, brain_slice, film, fundus, scope, tissue
from hf_datasets.phantoms.vqa.series import CHANGES, SHIFTED, brain_stack, films, scope_run
from hf_datasets.phantoms.vqa.tables import jpeg

OPTIONS, DEV = 5, 3
REASONS = (
    "comes for a routine examination",
    "is seen before an operation",
    "takes part in a screening programme",
    "is seen at a follow-up visit",
)


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write the pictures in one archive and some thirty questions, each with a history that gives nothing away."""
    rng = rng_for(seed, "medxpertqa")
    dealt = deal(choice_cards(_scenes(seed), 1, rng, least=4), OPTIONS, rng)
    numbers = rng.choice(2000, len(dealt), replace=False).tolist()
    records = []
    with ZipFile(out / "images.zip", "w", ZIP_STORED) as archive:
        for number, each in zip(numbers, dealt, strict=True):
            names = [f"MM-{number}-{'abcdef'[index]}.jpeg" for index in range(len(each.scene.frames))]
            for name, pixels in zip(names, each.scene.frames, strict=True):
                archive.writestr(ZipInfo(f"images/{name}"), jpeg(pixels))
            records.append(_record(f"MM-{number}", names, each, rng))
    (out / "MM").mkdir()
    for table, part in (("dev", records[:DEV]), ("test", records[DEV:])):
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in part)
        (out / "MM" / f"{table}.jsonl").write_text(lines, encoding="utf-8")
    return {}


def _scenes(seed: int) -> list[Scene]:
    def own(*path: str | int) -> Rng:
        return rng_for(seed, "medxpertqa", *path)

    scenes = [film(own("film", index), name) for index, name in enumerate((*CHEST_FINDINGS, None))]
    for index, change in enumerate((*CHANGES, SHIFTED)):
        scenes.append(films(own("films", index), ("pleural effusion", "pneumothorax")[index % 2], change))
    for index, lesions in enumerate(((), ("right",), ("left", "right"), ("left",))):
        scenes.append(brain_slice(own("brain", index), ("T1", "T2")[index % 2], lesions))  # type: ignore[arg-type]
    for index, finding in enumerate(("haemorrhages", "exudates", None)):
        scenes.append(fundus(own("fundus", index), "right", finding))
    for index, tile in enumerate((Tile("glandular", 3), Tile("adipose", infiltrate=True), Tile("muscle"))):
        scenes.append(tissue(own("tissue", index), tile))
    for index in range(3):
        rng = own("scope", index)
        scenes.append(scope(rng, Frame((random_polyp(rng),) * (index != 1), inflamed=index == 1)))
    for index in range(3):
        rng = own("run", index)
        make = (scope_run, brain_stack)[index % 2]
        scenes.append(make(rng, 4, int(rng.integers(4))))
    return scenes


def _record(name: str, images: list[str], dealt: Dealt, rng: Rng) -> dict[str, object]:
    age, sex = int(rng.integers(24, 86)), ("man", "woman")[int(rng.integers(2))]
    reason = REASONS[int(rng.integers(len(REASONS)))]
    shown = "image is" if len(images) == 1 else f"{len(images)} images are"
    choices = " ".join(f"({letter}) {words}" for letter, words in dealt.options.items())
    return {
        "id": name,
        "question": f"A {age}-year-old {sex} {reason}. The {shown} shown. {dealt.ask.question}\n"
        f"Answer Choices: {choices}",
        "options": dealt.options,
        "label": dealt.letter,
        "images": images,
        "medical_task": "Diagnosis",
        "body_system": dealt.scene.part,
        "question_type": "Understanding",
    }
