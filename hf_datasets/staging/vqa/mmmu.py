"""MMMU's five medical subjects: ``<Subject>/validation-*.parquet``, the part whose answers are public."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import StagingError
from hf_datasets.staging.vqa.hub import tables_of
from hf_datasets.staging.vqa.question import TEXT_RULE, Question, letter_among, lettered, refuse_repeats, text
from hf_datasets.staging.vqa.tables import ParquetTable

SUBJECTS = (
    "Basic_Medical_Science",
    "Clinical_Medicine",
    "Diagnostics_and_Laboratory_Medicine",
    "Pharmacy",
    "Public_Health",
)
IMAGES = tuple(f"image_{number}" for number in range(1, 8))
COLUMNS = ("id", "question", "options", "answer", "question_type")
NOTES = {
    "split": f"validation of {', '.join(SUBJECTS)}",
    "left_out": "questions without options (question_type open), and explanations",
    "images": "image_1 to image_7 in this order, empty ones left out; marks such as <image 2> count from one",
    "text": TEXT_RULE,
}


def find(source: Path) -> Sequence[Question]:
    """The multiple-choice questions of all five subjects."""
    found = [
        _question(table, index, row)
        for subject in SUBJECTS
        for table in tables_of(source, subject, "validation-*.parquet", IMAGES)
        for index, row in enumerate(table.rows(COLUMNS))
        if row["question_type"] == "multiple-choice"
    ]
    refuse_repeats(source, (question.origin for question in found))
    return found


def _question(table: ParquetTable, index: int, row: dict[str, Any]) -> Question:
    where = text(table.path, f"row {index}", "id", row["id"])
    options = lettered(table.path, where, _list(table.path, where, row["options"]))
    answer = letter_among(table.path, where, options, row["answer"])
    asked = text(table.path, where, "question", row["question"])
    return Question(where, asked, answer, table.path, table.shown(index), options)


def _list(table: Path, where: str, options: Any) -> Any:
    """Upstream writes the list of options as text in Python's notation."""
    try:
        return ast.literal_eval(options)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise StagingError(f"{table}: expected a list of options in {where}, found {options!r:.60}") from None
