"""The readers of a case's three sides: the given input, the reference, and an output, with its input or alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.readers.array import read_array
from evaluator.readers.image import read_image
from evaluator.readers.json_file import read_json
from evaluator.readers.nifti import Volume, read_label_map, read_nifti
from evaluator.readers.text_file import read_text
from evaluator.tracks import track_of
from evaluator.tracks.base import CaseFiles, untrusted
from evaluator.tracks.classification import ClassAnswer
from evaluator.tracks.detection import Box
from evaluator.tracks.grids import read_first_channel, read_grid
from evaluator.tracks.vqa import ANSWER, LABEL
from tasks.schema import AnswerOutput, BoxOutput, ImageOutput, LabelOutput, MaskOutput, ReportOutput, Task

MAX_PICTURES = 8
FLAT = (1.0, 1.0, 1.0)


class TooLarge(Exception):
    """More voxels than are shown live."""


@dataclass(frozen=True)
class Pictures:
    """What a question, a study or an image asks about: its pictures by name, and its words."""

    pictures: tuple[tuple[str, Any], ...]
    question: str = ""
    options: tuple[str, ...] = ()


def read_given(task: Task, folder: Path, max_voxels: int) -> Any:
    """The public input: a `Volume`, or `Pictures`. Staged data are ours, so only their size is a matter."""
    match task.output:
        case MaskOutput(files=files):
            return _volume(folder / files[0].grid_of, max_voxels)
        case ImageOutput(shape_of=name):
            return _volume(folder / name, max_voxels)
        case BoxOutput(image=name):
            return Pictures(((name, read_image(folder / name)),))
        case _:
            return _pictures(folder)


def _volume(path: Path, max_voxels: int) -> Volume:
    if path.suffix == ".npy":
        return flat(read_array(path, max_elements=max_voxels))
    voxels = prod(read_grid(path).data.shape)
    if voxels > max_voxels:
        raise TooLarge(f"{path.name} has {voxels:,} voxels, at most {max_voxels:,} are shown live")
    return read_first_channel(path)


def flat(pixels: Any) -> Volume:
    """An array of rows and columns (and slices) as a volume, so that its only plane is seen as it lies."""
    rows = pixels if pixels.ndim == 3 else pixels[..., None]
    turned = np.swapaxes(rows, 0, 1)[::-1, ::-1]
    return Volume(turned, np.eye(4), FLAT, flags=("flat",))


def _pictures(folder: Path) -> Pictures:
    """Of a question or a study, what its JSON names; else every picture in the folder."""
    question = _json(folder / "question.json")
    study = _json(folder / "manifest.json")
    names = question.get("image_paths") or study.get("image_files") or _picture_names(folder)
    pictures = tuple((name, read_image(folder / name)) for name in names[:MAX_PICTURES])
    options = question.get("options") or ()
    listed = [f"{key}. {value}" for key, value in options.items()] if isinstance(options, dict) else options
    return Pictures(pictures, str(question.get("question", "")), tuple(map(str, listed)))


def _picture_names(folder: Path) -> list[str]:
    kinds = (".png", ".jpg", ".jpeg")
    return [path.name for path in sorted(folder.iterdir()) if path.suffix in kinds]


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes())) if path.is_file() else {}


def read_reference(task: Task, folder: Path) -> Any:
    """The reference in the form in which the track gives an output."""
    first = folder / task.references[0]
    match task.output:
        case MaskOutput(files=files):
            return {file.name: read_label_map(folder / file.name, file.labels) for file in files}
        case ImageOutput():
            return flat(read_array(first)) if first.suffix == ".npy" else read_nifti(first)
        case AnswerOutput():
            return str(read_json(first)["answer"])
        case ReportOutput():
            return read_text(first).strip()
        case BoxOutput(classes=classes):
            return [_reference_box(box, classes) for box in read_json(first)["boxes"]]
        case LabelOutput():
            return ClassAnswer(str(read_json(first)["label"]), None)


def _reference_box(box: dict[str, Any], classes: tuple[str, ...]) -> Box:
    corners = (float(box["x1"]), float(box["y1"]), float(box["x2"]), float(box["y2"]))
    return Box(classes.index(box["class"]), corners, 1.0)


def read_output(task: Task, case: CaseFiles, given: Any) -> Any:
    """An output as its track accepts it; a restored image as a volume on the grid of the input.

    Raises
    ------
    CaseFault
        It is missing or damaged.
    """
    output = track_of(task).check(case)
    if not isinstance(task.output, ImageOutput):
        return output
    return flat(output) if task.output.file.endswith(".npy") else Volume(output, given.affine, given.spacing)


def read_output_alone(task: Task, case: CaseFiles, max_voxels: int) -> Any:
    """An output without the input that it belongs to: as the track gives it, but held against no grid.

    Raises
    ------
    CaseFault
        It is missing or damaged.
    """
    match task.output:
        case MaskOutput(files=files):
            paths = [(file, case.output(file.name)) for file in files]
            with untrusted():
                return {
                    file.name: read_label_map(path, file.labels, max_voxels=max_voxels)
                    for file, path in paths
                }
        case ImageOutput(file=name):
            path = case.output(name)
            with untrusted():
                if path.suffix == ".npy":
                    return flat(read_array(path, max_elements=max_voxels))
                return read_nifti(path, max_voxels=max_voxels)
        case AnswerOutput(file=name, mode=mode):
            path = case.output(name)
            with untrusted():
                content = read_json(path)
            key = LABEL if mode == "choice" else ANSWER
            return str(content.get(key, "")) if isinstance(content, dict) else ""
        case _:
            return track_of(task).check(case)
