"""OmniMedVQA's open part, unpacked: ``QA_information/Open-access/*.json`` and ``Images/``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import StagingError, listing, refuse_strangers
from hf_datasets.staging.vqa.pictures import Folder, pictures_named
from hf_datasets.staging.vqa.question import (
    LETTERS,
    TEXT_RULE,
    Question,
    lettered,
    refuse_mostly_broken,
    text,
)
from hf_datasets.staging.vqa.tables import read_json_list

TABLES = "QA_information/Open-access"
NOTES = {
    "split": f"{TABLES}; the restricted part has terms of its own",
    "answer": "the letter of the option that equals gt_answer",
    "left_out": "questions whose gt_answer equals none of their options or two; refused above 1 in 100",
    "text": TEXT_RULE,
}


def find(source: Path) -> Sequence[Question]:
    """The questions of all open data sets, named by data set and row: upstream's ids are not relied on."""
    root = source / "OmniMedVQA" if (source / "OmniMedVQA").is_dir() else source
    place = root / TABLES
    tables = sorted(place.glob("*.json"))
    if not tables:
        raise StagingError(f"{root}: expected {TABLES}/*.json, found {listing(place)}")
    refuse_strangers(place, (path.name for path in place.iterdir()), (path.name for path in tables))
    rows = [(table, index, row) for table in tables for index, row in enumerate(read_json_list(table))]
    names = [_picture_name(table, index, row) for table, index, row in rows]
    pictures = pictures_named(Folder(root / "Images"), place, names)
    found = [
        question
        for (table, index, row), name in zip(rows, names, strict=True)
        if (question := _question(table, index, row, pictures[name])) is not None
    ]
    refuse_mostly_broken(place, "gt_answer among its options", len(found), len(rows))
    return found


def _question(table: Path, index: int, row: dict[str, Any], picture: Any) -> Question | None:
    where = f"row {index}"
    given = {letter: row.get(f"option_{letter}") for letter in LETTERS if row.get(f"option_{letter}")}
    options = lettered(table, where, given)
    answer = text(table, where, "gt_answer", row.get("gt_answer"))
    right = [letter for letter, words in options.items() if words == answer]
    if len(right) != 1:
        return None
    asked = text(table, where, "question", row.get("question"))
    return Question(f"{table.stem}-{index}", asked, right[0], table, (picture,), options)


def _picture_name(table: Path, index: int, row: dict[str, Any]) -> str:
    """Path below ``Images``."""
    path = text(table, f"row {index}", "image_path", row.get("image_path"))
    if not path.startswith("Images/"):
        raise StagingError(f"{table}: expected image_path of row {index} below Images/, found {path!r:.80}")
    return path.removeprefix("Images/")
