"""VQA-RAD's test questions, from either form it is published in.

- The authors' own (OSF): ``VQA_RAD Dataset Public.json``, ``VQA_RAD Image Folder/``; needs no extra.
- The Hub's copy: ``data/test-*.parquet`` (image, question, answer); needs the ``hub`` extra for pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import CaseFolders, StagingError, listing, some
from hf_datasets.staging.images import read_picture, write_png

NOTES = {
    "split": "test: phrase_type test_freeform and test_para of the authors' file, or data/test-*.parquet",
    "answer_type": "closed where the answer is yes or no, else open; upstream's own answer_type is not used",
    "text": "white space of questions and answers collapsed",
}
DATASET, FOLDER = "VQA_RAD Dataset Public.json", "VQA_RAD Image Folder"
TEST = ("test_freeform", "test_para")
IMAGE = "image.png"


@dataclass(frozen=True)
class VqaCase:
    """One question. ``content`` holds the picture where it comes out of a parquet file."""

    origin: str
    question: str
    answer: str
    table: Path
    picture: Path
    content: bytes | None = None

    @property
    def image(self) -> str:
        return self.picture.name

    @property
    def files(self) -> Sequence[Path]:
        return (self.table, self.picture)

    def write(self, to: CaseFolders) -> None:
        write_png(to.public / IMAGE, read_picture(self.picture, self.content))
        asked = {"question_id": to.id, "question": self.question, "image_paths": [IMAGE]}
        kind = "closed" if self.answer.lower() in ("yes", "no") else "open"
        _dump(to.public / "question.json", asked)
        _dump(to.private / "answer.json", {"question_id": to.id, "answer": self.answer, "answer_type": kind})


def find(source: Path) -> Sequence[VqaCase]:
    """The questions of the test part."""
    if (source / DATASET).is_file():
        return _from_json(source)
    tables = sorted(source.glob("data/test-*.parquet"))
    if tables:
        return [case for table in tables for case in _from_parquet(table)]
    raise StagingError(f"{source}: expected '{DATASET}' or data/test-*.parquet, found {listing(source)}")


def _from_json(source: Path) -> list[VqaCase]:
    path = source / DATASET
    try:
        records: Any = json.loads(path.read_bytes())
    except ValueError as error:
        raise StagingError(f"{path}: not complete JSON ({error}); download it again") from None
    if not isinstance(records, list):
        raise StagingError(f"{path}: expected a list of questions, found {type(records).__name__}")
    _check_pictures(source, {str(record.get("image_name")) for record in records if isinstance(record, dict)})
    cases = [
        _case(path, index, record) for index, record in enumerate(records) if _in_test(path, index, record)
    ]
    if not cases:
        raise StagingError(f"{path}: expected questions with phrase_type {' or '.join(TEST)}, found none")
    _refuse_repeats(path, [case.origin for case in cases])
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


def _in_test(path: Path, index: int, record: Any) -> bool:
    if not isinstance(record, dict) or "phrase_type" not in record:
        raise StagingError(f"{path}: expected phrase_type in every question, not in number {index + 1}")
    return record["phrase_type"] in TEST


def _case(path: Path, index: int, record: dict[str, Any]) -> VqaCase:
    question, answer = (
        _text(path, f"number {index + 1}", key, record.get(key)) for key in ("question", "answer")
    )
    return VqaCase(
        f"qid-{record.get('qid', index + 1)}",
        question,
        answer,
        path,
        path.parent / FOLDER / str(record["image_name"]),
    )


def _text(path: Path, where: str, key: str, value: Any) -> str:
    """Upstream writes some answers as numbers."""
    text = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    if not text:
        raise StagingError(f"{path}: expected a text as {key} of {where}, found {value!r}")
    return text


def _refuse_repeats(path: Path, origins: list[str]) -> None:
    repeated = {origin for origin in origins if origins.count(origin) > 1}
    if repeated:
        raise StagingError(f"{path}: expected each question id once, found {some(repeated)} again")


def _from_parquet(table: Path) -> list[VqaCase]:
    try:
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise StagingError(
            f"{table}: reading parquet needs pyarrow; pip install 'automedbench[hub]', "
            "or use the authors' files from OSF"
        ) from None
    try:
        rows = parquet.read_table(table).to_pylist()
    except Exception as error:
        raise StagingError(
            f"{table}: not a complete parquet file ({' '.join(str(error).split())[:120]})"
        ) from None
    cases = []
    for index, row in enumerate(rows):
        content = row.get("image", {}).get("bytes") if isinstance(row.get("image"), dict) else None
        if not content:
            raise StagingError(f"{table}: expected image bytes in row {index}, found columns {some(row)}")
        question, answer = (_text(table, f"row {index}", key, row.get(key)) for key in ("question", "answer"))
        cases.append(VqaCase(f"{table.stem}-row-{index}", question, answer, table, table, content))
    return cases


def _dump(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
