"""Kvasir-VQA as the Hub keeps it: ``data/00000.parquet`` and so on (image, source, question, answer, img_id)."""

from __future__ import annotations

from pathlib import Path

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.vqa.deck import open_cards
from hf_datasets.phantoms.vqa.endoscopy import Frame, Polyp, random_polyp
from hf_datasets.phantoms.vqa.scenes import Scene, scope
from hf_datasets.phantoms.vqa.tables import encoded, write_parquet

FRAMES, EACH = 12, 2


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write two dozen questions to endoscopic frames in two tables."""
    rng = rng_for(seed, "kvasir_vqa")
    scenes = [_scene(seed, index) for index in range(FRAMES)]
    ids = {id(scene): f"cl{int(rng.integers(36**6)):08d}" for scene in scenes}
    rows = [
        {
            "image": encoded(card.scene.frames[0], f"{ids[id(card.scene)]}.jpg"),
            "source": "Kvasir-Instrument",
            "question": card.ask.question,
            "answer": card.ask.answer,
            "img_id": ids[id(card.scene)],
        }
        for card in open_cards(scenes, EACH, rng)
    ]
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        write_parquet(out / "data" / f"{number:05d}.parquet", part, ("image",))
    return {}


def _scene(seed: int, index: int) -> Scene:
    """One, two or no polyps in turn; some frames with an instrument, some with the processor's box."""
    rng = rng_for(seed, "kvasir_vqa", index)
    instrument, green_box, above = index % 3 == 1, index % 5 in (0, 3), index % 2 == 0
    taken = {row for row, covered in ((2, green_box), (0 if above else 2, instrument)) if covered}
    polyps: tuple[Polyp, ...] = ()
    for _ in range((1, 0, 2, 1)[index % 4]):
        polyps += (random_polyp(rng, polyps, tuple(row for row in range(3) if row not in taken)),)
    inflamed = not polyps and index % 8 == 1
    return scope(rng, Frame(polyps, instrument, green_box, inflamed, above))
