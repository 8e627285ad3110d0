"""PMC-VQA's clean test questions: ``test_clean.csv`` and ``images/`` or ``images.zip``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import StagingError, listing
from hf_datasets.staging.vqa.pictures import pictures_named, store_at
from hf_datasets.staging.vqa.question import TEXT_RULE, Question, letter_among, lettered, text
from hf_datasets.staging.vqa.tables import read_csv

TABLE = "test_clean.csv"
CHOICES = {letter: f"Choice {letter}" for letter in "ABCD"}
NOTES = {
    "split": TABLE,
    "options": "a letter and colon before an option's text are cut off",
    "text": TEXT_RULE,
}
_PREFIX = re.compile(r"^\s*([A-D])\s*[:.)]\s*")


def find(source: Path) -> Sequence[Question]:
    """The questions, named by their row: upstream gives them no ids."""
    table = source / TABLE
    if not table.is_file():
        raise StagingError(f"{source}: expected {TABLE}, found {listing(source)}")
    rows = read_csv(table, ("Figure_path", "Question", "Answer_label", *CHOICES.values()))
    if not rows:
        raise StagingError(f"{table}: expected questions, found only a header")
    names = [text(table, f"row {index}", "Figure_path", row["Figure_path"]) for index, row in enumerate(rows)]
    pictures = pictures_named(store_at(source, "images", "images.zip"), table, names)
    return [
        _question(table, index, row, pictures[name])
        for index, (row, name) in enumerate(zip(rows, names, strict=True))
    ]


def _question(table: Path, index: int, row: dict[str, Any], picture: Any) -> Question:
    where = f"row {index}"
    options = lettered(
        table, where, {letter: _words(table, where, letter, row[key]) for letter, key in CHOICES.items()}
    )
    answer = letter_among(table, where, options, row["Answer_label"])
    asked = text(table, where, "Question", row["Question"])
    return Question(f"row-{index}", asked, answer, table, (picture,), options)


def _words(table: Path, where: str, letter: str, choice: str) -> str:
    prefix = _PREFIX.match(choice)
    if prefix and prefix[1] != letter:
        raise StagingError(f"{table}: expected Choice {letter} of {where}, found that of {prefix[1]}")
    return choice[prefix.end() :] if prefix else choice
