"""Kvasir-VQA from the Hub: ``data/*.parquet`` (image, source, question, answer, img_id)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hf_datasets.staging.vqa.hub import tables_of
from hf_datasets.staging.vqa.question import CLOSED_RULE, TEXT_RULE, Question, text

NOTES = {"split": "raw, the only one there is", "answer_type": CLOSED_RULE, "text": TEXT_RULE}


def find(source: Path) -> Sequence[Question]:
    """All questions, named by picture and count: upstream numbers pictures, not questions."""
    found, asked = [], Counter[str]()
    for table in tables_of(source, "data", "*.parquet", ("image",)):
        for index, row in enumerate(table.rows(("question", "answer", "img_id"))):
            picture = text(table.path, f"row {index}", "img_id", row["img_id"])
            asked[picture] += 1
            found.append(
                Question(
                    f"{picture}-{asked[picture]}",
                    text(table.path, f"row {index}", "question", row["question"]),
                    text(table.path, f"row {index}", "answer", row["answer"]),
                    table.path,
                    table.shown(index),
                )
            )
    return found
