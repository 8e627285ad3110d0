"""What the report upstreams have in common: a study of pictures on one side, its text and labels on the other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders
from hf_datasets.staging.images import write_jpeg
from tasks.registry import load_task
from tasks.schema import ReportOutput

SHORT_NOTE = "reports shorter than the task's output may be, so that no reference breaks the contract"
IMAGES_NOTE = "8-bit JPEG, quality 95, named by their place in the study"

_MARK = re.compile(r"\bX{2,}(?:-\w+)*\b|_{2,}(?:-\w+)*")
_SPACE_BEFORE = re.compile(r"\s+([.,;:])")
_REPEATED = re.compile(r"([.,;:])(?:\s*[.,;:])+")


@dataclass(frozen=True)
class Section:
    """One named part of a report."""

    name: str
    text: str


def write_study(
    to: CaseFolders,
    pictures: Sequence[NDArray[np.uint8]],
    sections: Sequence[Section],
    labels: Mapping[str, Any],
) -> None:
    """Write ``manifest.json`` and ``images/<n>.jpg``, and in private ``report.txt`` and ``labels.json``.

    Parameters
    ----------
    pictures
        uint8 pixels, grey (2-D) or RGB (3-D), in the order of the manifest.
    sections
        The parts of the report; ``report.txt`` has one line a part.
    labels
        What ``labels.json`` holds beside the sections.
    """
    (to.public / "images").mkdir()
    names = [f"images/{index}.jpg" for index in range(len(pictures))]
    for name, pixels in zip(names, pictures, strict=True):
        write_jpeg(to.public / name, pixels)
    _dump(to.public / "manifest.json", {"case_id": to.id, "image_files": names})
    (to.private / "report.txt").write_text(text_of(sections) + "\n", encoding="utf-8")
    parts = {section.name: section.text for section in sections}
    _dump(to.private / "labels.json", {**labels, "sections": parts})


def text_of(sections: Sequence[Section]) -> str:
    """The report: one line a section, without headings."""
    return "\n".join(section.text for section in sections)


def is_deliverable(task_id: str, sections: Sequence[Section]) -> bool:
    """Whether the report itself would be a valid output of the task."""
    output, text = load_task(task_id).output, text_of(sections)
    if not isinstance(output, ReportOutput):
        raise TypeError(f"task {task_id} delivers {output.kind}, expected report")
    letters = sum(letter.isalpha() for letter in text)
    return output.min_chars <= len(text) <= output.max_chars and letters >= output.min_letters


def without_marks(text: str) -> str:
    """The text on one line with tidy punctuation, without what de-identification left (XXXX, ___)."""
    bare = " ".join(_MARK.sub(" ", text).split())
    tidy = _REPEATED.sub(r"\1", _SPACE_BEFORE.sub(r"\1", bare))
    return tidy.strip(" ,;:") if any(letter.isalpha() for letter in tidy) else ""


def _dump(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
