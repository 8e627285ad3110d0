"""MedFrameQA from the Hub: ``data/test-*.parquet``, two to five frames a question and its lettered options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hf_datasets.staging.vqa.hub import tables_of
from hf_datasets.staging.vqa.question import TEXT_RULE, Question, letter_among, lettered, refuse_repeats, text

NOTES = {
    "split": "test",
    "frames": "image_1 to image_5 in this order, empty ones left out",
    "left_out": "captions, reasoning and video columns, which would give answers away",
    "text": TEXT_RULE,
}
FRAMES = tuple(f"image_{number}" for number in range(1, 6))
COLUMNS = ("question_id", "question", "options", "correct_answer")


def find(source: Path) -> Sequence[Question]:
    """The questions of the test part."""
    found = []
    for table in tables_of(source, "data", "test-*.parquet", FRAMES):
        for index, row in enumerate(table.rows(COLUMNS)):
            where = text(table.path, f"row {index}", "question_id", row["question_id"])
            options = lettered(table.path, where, row["options"])
            found.append(
                Question(
                    where,
                    text(table.path, where, "question", row["question"]),
                    letter_among(table.path, where, options, row["correct_answer"]),
                    table.path,
                    table.shown(index),
                    options,
                )
            )
    refuse_repeats(found[0].table.parent if found else source, (question.origin for question in found))
    return found
