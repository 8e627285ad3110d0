"""VQA-RAD's test questions, from either form it is published in.

- The authors' own (OSF): ``VQA_RAD Dataset Public.json``, ``VQA_RAD Image Folder/``.
- The Hub's copy: ``data/test-*.parquet`` (image, question, answer).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import StagingError, listing, some
from hf_datasets.staging.vqa import path_vqa
from hf_datasets.staging.vqa.pictures import FilePicture
from hf_datasets.staging.vqa.question import CLOSED_RULE, TEXT_RULE, Question, refuse_repeats, text
from hf_datasets.staging.vqa.tables import read_json_list

NOTES = {
    "split": "test: phrase_type test_freeform and test_para of the authors' file, or data/test-*.parquet",
    "answer_type": f"{CLOSED_RULE}; upstream's own answer_type is not used",
    "text": TEXT_RULE,
}
DATASET, FOLDER = "VQA_RAD Dataset Public.json", "VQA_RAD Image Folder"
TEST = ("test_freeform", "test_para")


def find(source: Path) -> Sequence[Question]:
    """The questions of the test part; the Hub's copy has the columns of PathVQA."""
    if (source / DATASET).is_file():
        return _from_json(source)
    if any(source.glob("data/test-*.parquet")):
        return path_vqa.find(source)
    raise StagingError(f"{source}: expected '{DATASET}' or data/test-*.parquet, found {listing(source)}")


def _from_json(source: Path) -> list[Question]:
    path = source / DATASET
    records = read_json_list(path)
    _check_pictures(source, {str(record.get("image_name")) for record in records})
    cases = [
        _question(path, index, record)
        for index, record in enumerate(records)
        if _in_test(path, index, record)
    ]
    if not cases:
        raise StagingError(f"{path}: expected questions with phrase_type {' or '.join(TEST)}, found none")
    refuse_repeats(path, (case.origin for case in cases))
    return cases


def _check_pictures(source: Path, wanted: set[str]) -> None:
    folder = source / FOLDER
    if not folder.is_dir():
        raise StagingError(f"{folder}: expected the pictures here, found {listing(source)}")
    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    if missing := wanted - there:
        raise StagingError(
            f"{folder}: expected the pictures that questions name, found none of {some(missing)}"
        )
    strange = {name for name in there if not name.lower().endswith((".jpg", ".jpeg", ".png"))}
    if strange:
        raise StagingError(f"{folder}: unexpected {some(strange)}; expected pictures only")


def _in_test(path: Path, index: int, record: dict[str, Any]) -> bool:
    if "phrase_type" not in record:
        raise StagingError(f"{path}: expected phrase_type in every question, not in number {index + 1}")
    return record["phrase_type"] in TEST


def _question(path: Path, index: int, record: dict[str, Any]) -> Question:
    asked, answer = (
        text(path, f"number {index + 1}", key, record.get(key)) for key in ("question", "answer")
    )
    picture = FilePicture(path.parent / FOLDER / str(record["image_name"]))
    return Question(f"qid-{record.get('qid', index + 1)}", asked, answer, path, (picture,))
