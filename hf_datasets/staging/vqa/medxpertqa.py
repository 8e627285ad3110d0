"""MedXpertQA's MM subset: ``MM/dev.jsonl``, ``MM/test.jsonl`` and ``images/`` or ``images.zip``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import StagingError, listing
from hf_datasets.staging.vqa.pictures import pictures_named, store_at
from hf_datasets.staging.vqa.question import TEXT_RULE, Question, letter_among, lettered, refuse_repeats, text
from hf_datasets.staging.vqa.tables import read_json_lines

NOTES = {
    "split": "MM/dev.jsonl (5 questions) and MM/test.jsonl (2000), as the published count of 2005 has it",
    "text": f"{TEXT_RULE}; the choices that upstream repeats at the end of a question stay there",
}
TABLES = ("dev.jsonl", "test.jsonl")


def find(source: Path) -> Sequence[Question]:
    """The questions of both parts."""
    tables = [source / "MM" / name for name in TABLES]
    if missing := [path.name for path in tables if not path.is_file()]:
        raise StagingError(
            f"{source / 'MM'}: expected {' and '.join(missing)}, found {listing(source / 'MM')}"
        )
    rows = [(table, row) for table in tables for row in read_json_lines(table)]
    refuse_repeats(source / "MM", (str(row.get("id")) for _, row in rows))
    names = {str(row.get("id")): _names(table, row) for table, row in rows}
    pictures = pictures_named(
        store_at(source, "images", "images.zip"),
        tables[-1],
        (name for each in names.values() for name in each),
    )
    return [
        _question(table, row, tuple(pictures[name] for name in names[str(row.get("id"))]))
        for table, row in rows
    ]


def _question(table: Path, row: dict[str, Any], shown: tuple[Any, ...]) -> Question:
    where = text(table, "a question", "id", row.get("id"))
    options = lettered(table, where, row.get("options"))
    answer = letter_among(table, where, options, row.get("label"))
    return Question(where, text(table, where, "question", row.get("question")), answer, table, shown, options)


def _names(table: Path, row: dict[str, Any]) -> list[str]:
    """The question's pictures; each is named after its question, so that swapped ids are seen."""
    names = row.get("images")
    if not isinstance(names, list) or not names:
        raise StagingError(f"{table}: expected a list of images in {row.get('id')}, found {names!r:.60}")
    if strange := [name for name in names if not str(name).startswith(f"{row.get('id')}-")]:
        raise StagingError(
            f"{table}: expected the images of {row.get('id')} to be named after it, found {strange[0]!r}"
        )
    return [str(name) for name in names]
