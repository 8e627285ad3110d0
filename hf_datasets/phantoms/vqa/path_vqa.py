"""PathVQA as the Hub keeps it: ``data/test-*.parquet`` (image, question, answer), and a shard of another split."""

from __future__ import annotations

from pathlib import Path

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.vqa.deck import open_cards
from hf_datasets.phantoms.vqa.histology import Tile
from hf_datasets.phantoms.vqa.scenes import tissue
from hf_datasets.phantoms.vqa.tables import encoded, write_parquet

TILES = (
    Tile("glandular", 2),
    Tile("adipose"),
    Tile("muscle", vessel=True),
    Tile("glandular", 3, immunostain=True),
    Tile("glandular", 1, infiltrate=True),
    Tile("adipose", vessel=True),
    Tile("muscle", infiltrate=True),
    Tile("muscle", immunostain=True),
    Tile("glandular", 4),
    Tile("adipose", infiltrate=True),
    Tile("glandular", 2, vessel=True),
    Tile("muscle"),
)
EACH, TEST = 2, 22


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write two dozen questions to tiles in two shards of the test split and one of validation."""
    rng = rng_for(seed, "path_vqa")
    scenes = [tissue(rng_for(seed, "path_vqa", index), tile) for index, tile in enumerate(TILES)]
    rows = [
        {
            "image": encoded(card.scene.frames[0], "image.jpg"),
            "question": card.ask.question.lower(),
            "answer": card.ask.answer,
        }
        for card in open_cards(scenes, EACH, rng)
    ]
    for name, part in {
        "validation-00000-of-00001": rows[TEST:],
        "test-00000-of-00002": rows[: TEST // 2],
        "test-00001-of-00002": rows[TEST // 2 : TEST],
    }.items():
        write_parquet(out / "data" / f"{name}.parquet", part, ("image",))
    return {}
