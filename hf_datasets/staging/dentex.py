"""DENTEX: the part whose teeth carry quadrant, number and disease, a COCO-like JSON beside the folder ``xrays/``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, listing, some
from hf_datasets.staging.boxes import (
    CUT_NOTE,
    Box,
    box_inside,
    numbers,
    refuse_far_box,
    write_detection_case,
)
from hf_datasets.staging.images import read_picture

CLASSES = ("Caries", "Deep Caries", "Periapical Lesion", "Impacted")
TABLE = "train_quadrant_enumeration_disease.json"
NOTES = {
    "part": "training pictures with quadrant, number and disease (category levels 1 to 3); level 3 is the class",
    "boxes": f"upstream's x, y, width and height of the diseased tooth; {CUT_NOTE}",
}
LEVELS = ("category_id_1", "category_id_2", "category_id_3")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class DentexCase:
    """A panoramic film and the records of its diseased teeth."""

    picture: Path
    table: Path
    size: tuple[int, int]
    teeth: tuple[tuple[str, Record], ...]
    image: str = ""

    @property
    def origin(self) -> str:
        return self.picture.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.picture, self.table)

    def write(self, to: CaseFolders) -> None:
        pixels = read_picture(self.picture)
        height, width = pixels.shape[:2]
        if (width, height) != self.size:
            stated = "x".join(str(side) for side in self.size)
            raise StagingError(
                f"{self.picture}: expected the size of {self.table.name}, {stated}, found {width}x{height}"
            )
        write_detection_case(to, pixels, [box for tooth in self.teeth if (box := self._box(*tooth))])

    def _box(self, name: str, tooth: Record) -> Box | None:
        where = f"{self.table}: annotation {tooth.get('id')}"
        box = tooth.get("bbox")
        x, y, wide, high = numbers(where, box if isinstance(box, list) else [box])
        corners = (x, y, x + wide, y + high)
        refuse_far_box(where, corners, *self.size)
        return box_inside(name, corners, *self.size)


def find(source: Path) -> Sequence[DentexCase]:
    """The films of the table, in its order."""
    table = _table(source)
    content = _parsed(table)
    xrays = folder_at(table.parent, "xrays")
    names = {entry["id"]: entry["name"] for entry in content["categories_3"]}
    if set(names.values()) != set(CLASSES):
        raise StagingError(
            f"{table}: expected the diseases {some(CLASSES)}, found {some(map(str, names.values()))}"
        )
    teeth = _teeth(table, content, names)
    cases = [
        DentexCase(xrays / image["file_name"], table, (image["width"], image["height"]), tuple(teeth[image["id"]]))
        for image in content["images"]
    ]  # fmt: skip
    _check_pictures(table, xrays, [case.picture.name for case in cases])
    return cases


def _table(source: Path) -> Path:
    tables = sorted(source.rglob(TABLE))
    if len(tables) != 1:
        found = some(str(path) for path in tables) if tables else listing(source)
        raise StagingError(
            f"{source}: expected one {TABLE} below it, found {found}; unpack training_data.zip"
        )
    return tables[0]


def _parsed(table: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(table.read_bytes())
        for part, keys in (
            ("images", ("id", "file_name", "width", "height")),
            ("annotations", ("image_id", "bbox", *LEVELS)),
            ("categories_3", ("id", "name")),
        ):
            for entry in content[part]:
                _ = [entry[key] for key in keys]
    except ValueError as error:
        raise StagingError(f"{table}: not JSON ({error}); unpack the archive again") from None
    except (KeyError, TypeError) as error:
        raise StagingError(f"{table}: expected a COCO-like table, found no {error}") from None
    return dict(content)


def _teeth(
    table: Path, content: Mapping[str, Any], names: Mapping[int, str]
) -> dict[int, list[tuple[str, Record]]]:
    images = {image["id"] for image in content["images"]}
    teeth: dict[int, list[tuple[str, Record]]] = defaultdict(list)
    for tooth in content["annotations"]:
        where = f"{table}: annotation {tooth.get('id')}"
        if tooth["image_id"] not in images:
            raise StagingError(f"{where}: expected the id of a picture, found {tooth['image_id']!r:.40}")
        if tooth["category_id_3"] not in names:
            raise StagingError(
                f"{where}: expected a disease of categories_3, found {tooth['category_id_3']!r:.40}"
            )
        teeth[tooth["image_id"]].append((names[tooth["category_id_3"]], tooth))
    return teeth


def _check_pictures(table: Path, xrays: Path, listed: list[str]) -> None:
    there = {path.name for path in xrays.iterdir() if not path.name.startswith(".")}
    if len(set(listed)) != len(listed):
        raise StagingError(
            f"{table}: expected each picture once, found {len(listed) - len(set(listed))} again"
        )
    if lost := set(listed) - there:
        raise StagingError(f"{xrays}: expected the pictures of {table.name}, found no {some(lost)}")
    if strange := there - set(listed):
        raise StagingError(f"{xrays}: {table.name} does not list {some(strange)}; remove it or unpack again")
