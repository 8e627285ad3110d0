"""OmniMedVQA, unpacked: ``QA_information/Open-access/<data set>.json`` and ``Images/<data set>/...``."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.vqa.deck import Dealt, choice_cards, deal
from hf_datasets.phantoms.vqa.endoscopy import Frame, random_polyp
from hf_datasets.phantoms.vqa.histology import Tile
from hf_datasets.phantoms.vqa.scenes import (
    Scene,
    belly_slice,
    brain_slice,
    chest_slice,
    film,
    fundus,
    scope,
    sonogram,
    tissue,
)

KINDS = {
    "modality": "Modality Recognition",
    "organ": "Anatomy Identification",
    "plane": "Anatomy Identification",
    "diagnosis": "Disease Diagnosis",
}
OTHER_KIND = "Other Biological Attributes"
OPTIONS, EACH = 4, 2


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write some thirty questions on seven modalities, one table and one picture folder a data set."""
    rng = rng_for(seed, "omnimedvqa")
    scenes = _scenes(seed)
    names = {id(scene): _save(out, index, scene) for index, scene in enumerate(scenes)}
    tables: dict[str, list[dict[str, str]]] = {}
    for dealt in deal(choice_cards(scenes, EACH, rng), OPTIONS, rng):
        rows = tables.setdefault(_dataset(dealt.scene), [])
        rows.append(_record(_dataset(dealt.scene), len(rows), names[id(dealt.scene)], dealt))
    folder = out / "QA_information" / "Open-access"
    folder.mkdir(parents=True)
    for name, rows in sorted(tables.items()):
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return {}


def _scenes(seed: int) -> list[Scene]:
    def own(*path: str | int) -> Rng:
        return rng_for(seed, "omnimedvqa", *path)

    with_polyp = own("scope")
    return [
        film(own("film", 0), "pneumothorax"),
        film(own("film", 1), "cardiomegaly"),
        chest_slice(own("chest"), effusion=True),
        belly_slice(own("belly", 0), axial=True),
        belly_slice(own("belly", 1), axial=False),
        brain_slice(own("brain", 0), "T2", ("left",)),
        brain_slice(own("brain", 1), "T1", ()),
        sonogram(own("fan", 0), "cyst"),
        sonogram(own("fan", 1), "stone"),
        fundus(own("eye", 0), "right", "exudates"),
        fundus(own("eye", 1), "left", None),
        tissue(own("tissue", 0), Tile("adipose")),
        tissue(own("tissue", 1), Tile("glandular", 2, immunostain=True)),
        scope(with_polyp, Frame((random_polyp(with_polyp),))),
    ]


def _dataset(scene: Scene) -> str:
    return f"Drawn {scene.modality}"


def _save(out: Path, index: int, scene: Scene) -> str:
    path = out / "Images" / _dataset(scene) / f"{index:04d}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(scene.frames[0]).save(path)
    return path.relative_to(out).as_posix()


def _record(dataset: str, index: int, image: str, dealt: Dealt) -> dict[str, str]:
    return {
        "dataset": dataset,
        "question_id": f"{dataset}_{index:04d}",
        "question_type": KINDS.get(dealt.ask.kind, OTHER_KIND),
        "question": dealt.ask.question,
        "gt_answer": dealt.ask.answer,
        "image_path": image,
        **{f"option_{letter}": words for letter, words in dealt.options.items()},
        "modality_type": dealt.scene.modality,
    }
