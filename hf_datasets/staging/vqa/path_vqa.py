"""PathVQA's test questions from the Hub: ``data/test-*.parquet`` (image, question, answer)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hf_datasets.staging.vqa.hub import tables_of
from hf_datasets.staging.vqa.question import CLOSED_RULE, TEXT_RULE, Question, text

NOTES = {"split": "test", "answer_type": CLOSED_RULE, "text": TEXT_RULE}


def find(source: Path) -> Sequence[Question]:
    """The questions of the test part, named by file and row: upstream gives them no ids."""
    return [
        Question(
            f"{table.path.stem}-row-{index}",
            text(table.path, f"row {index}", "question", row["question"]),
            text(table.path, f"row {index}", "answer", row["answer"]),
            table.path,
            table.shown(index),
        )
        for table in tables_of(source, "data", "test-*.parquet", ("image",))
        for index, row in enumerate(table.rows(("question", "answer")))
    ]
