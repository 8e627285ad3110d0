"""A question about pictures as every layout hands it on, and the rules that all layouts share."""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_datasets.staging.base import CaseFolders, StagingError, some
from hf_datasets.staging.images import write_png
from hf_datasets.staging.vqa.pictures import Picture

TEXT_RULE = "white space of questions, options and answers collapsed"
CLOSED_RULE = "closed where the answer is yes or no, else open"
LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Question:
    """One question. ``answer`` is an option's letter where there are options."""

    origin: str
    text: str
    answer: str
    table: Path
    pictures: tuple[Picture, ...]
    options: Mapping[str, str] | None = None

    @property
    def image(self) -> str:
        return self.pictures[0].name

    @property
    def files(self) -> Sequence[Path]:
        return (self.table, *(picture.file for picture in self.pictures))

    def write(self, to: CaseFolders) -> None:
        shown = [pixels for picture in self.pictures if (pixels := picture.pixels()) is not None]
        names = image_names(len(shown))
        for name, pixels in zip(names, shown, strict=True):
            write_png(to.public / name, pixels)
        asked: dict[str, Any] = {"question_id": to.id, "question": self.text, "image_paths": names}
        key: dict[str, Any] = {"question_id": to.id, "answer": self.answer}
        if self.options is None:
            key["answer_type"] = "closed" if self.answer.lower() in ("yes", "no") else "open"
        else:
            asked["options"] = key["options"] = dict(self.options)
        _dump(to.public / "question.json", asked)
        _dump(to.private / "answer.json", key)


def image_names(count: int) -> list[str]:
    """``image.png``, or ``image_1.png`` and so on, in the order in which the question shows them."""
    return ["image.png"] if count == 1 else [f"image_{number}.png" for number in range(1, count + 1)]


def text(table: Path, where: str, key: str, value: Any) -> str:
    """A text without superfluous white space; some upstreams write answers as numbers.

    Raises
    ------
    StagingError
        There is none.
    """
    found = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    if not found:
        raise StagingError(f"{table}: expected a text as {key} of {where}, found {value!r:.60}")
    return found


def lettered(table: Path, where: str, options: Any) -> dict[str, str]:
    """Options as letter -> text, from a mapping of letters, a list of texts, or a list of letters with contents.

    Raises
    ------
    StagingError
        Fewer than two options, or letters that do not run from A on.
    """
    pairs: list[tuple[Any, Any]]
    if isinstance(options, Mapping):
        pairs = [(letter, words) for letter, words in options.items() if words is not None]
    elif isinstance(options, list) and all(isinstance(option, Mapping) for option in options):
        pairs = [(option.get("letter"), option.get("content")) for option in options]
    elif isinstance(options, list):
        pairs = list(zip(LETTERS, options, strict=False))
    else:
        raise StagingError(f"{table}: expected options in {where}, found {options!r:.60}")
    found = {str(letter).strip().upper(): words for letter, words in pairs}
    if len(found) < 2 or len(found) != len(pairs) or sorted(found) != list(LETTERS[: len(found)]):
        raise StagingError(
            f"{table}: expected options A, B, ... in {where}, found {', '.join(sorted(found)) or 'none'}"
        )
    return {letter: text(table, where, f"option {letter}", found[letter]) for letter in sorted(found)}


def letter_among(table: Path, where: str, options: Mapping[str, str], value: Any) -> str:
    """The right option's letter.

    Raises
    ------
    StagingError
        It is no letter of these options.
    """
    letter = str(value).strip().upper()
    if letter not in options:
        raise StagingError(
            f"{table}: expected one of {', '.join(options)} as answer of {where}, found {value!r:.60}"
        )
    return letter


def refuse_repeats(table: Path, origins: Iterable[str]) -> None:
    """Refuse a table that holds a question id twice."""
    repeated = [origin for origin, count in Counter(origins).items() if count > 1]
    if repeated:
        raise StagingError(f"{table}: expected each question id once, found {some(repeated)} again")


def refuse_mostly_broken(table: Path, what: str, good: int, rows: int) -> None:
    """Refuse a source of which more than one question in a hundred lacks ``what``."""
    if not good or (rows - good) * 100 > rows:
        raise StagingError(f"{table}: expected {what} in nearly all {rows} questions, found it in {good}")


def _dump(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
