"""SLAKE's English test questions: ``test.json`` and ``imgs/xmlab<n>/source.jpg`` or ``imgs.zip``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import StagingError, listing
from hf_datasets.staging.vqa.pictures import pictures_named, store_at
from hf_datasets.staging.vqa.question import CLOSED_RULE, TEXT_RULE, Question, refuse_repeats, text
from hf_datasets.staging.vqa.tables import read_json_list

NOTES = {
    "split": "test.json, rows with q_lang en",
    "answer_type": f"{CLOSED_RULE}; upstream's own answer_type also calls other short answers closed",
    "text": TEXT_RULE,
}


def find(source: Path) -> Sequence[Question]:
    """The English questions of the test part."""
    table = source / "test.json"
    if not table.is_file():
        raise StagingError(f"{source}: expected test.json, found {listing(source)}")
    rows = [row for row in read_json_list(table) if row.get("q_lang") == "en"]
    if not rows:
        raise StagingError(f"{table}: expected questions with q_lang en, found none")
    refuse_repeats(table, (_origin(row) for row in rows))
    names = [_picture_name(table, row) for row in rows]
    pictures = pictures_named(store_at(source, "imgs", "imgs.zip", depth=2), table, names)
    return [_question(table, row, pictures[name]) for row, name in zip(rows, names, strict=True)]


def _question(table: Path, row: dict[str, Any], picture: Any) -> Question:
    asked, answer = (text(table, _origin(row), key, row.get(key)) for key in ("question", "answer"))
    return Question(_origin(row), asked, answer, table, (picture,))


def _origin(row: dict[str, Any]) -> str:
    return f"qid-{row.get('qid')}"


def _picture_name(table: Path, row: dict[str, Any]) -> str:
    """``xmlab<img_id>/source.jpg``; the number stands in the row twice, so that swapped rows are seen."""
    name = str(row.get("img_name"))
    if name.split("/")[0] != f"xmlab{row.get('img_id')}":
        raise StagingError(
            f"{table}: expected img_name of {_origin(row)} to agree with img_id {row.get('img_id')}, found {name!r}"
        )
    return name
