"""What the schema cannot see: parts of one task that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from tasks.schema import AnswerOutput, BoxOutput, ImageOutput, LabelOutput, MaskOutput, Task, Track

KIND_OF_TRACK = {
    Track.SEGMENTATION: "mask",
    Track.ENHANCEMENT: "image",
    Track.SYNTHESIS: "image",
    Track.VQA: "answer",
    Track.REPORT: "report",
    Track.DETECTION: "boxes",
    Track.CLASSIFICATION: "label",
}
TRIVIALS_OF_KIND = {
    "mask": {"empty_mask"},
    "image": {"copied_input", "upsampled_input"},
    "answer": {"constant_answer"},
    "report": {"template_report"},
    "boxes": {"no_box"},
    "label": {"constant_label"},
}
HEADLINE_OF_MODE = {"open": "exact_match_normalised", "choice": "option_accuracy"}
TRIVIALS_WITH_VALUE = {"constant_answer", "template_report", "constant_label"}


def inconsistencies(task: Task) -> Iterator[str]:
    """Yield one sentence for each contradiction inside a task."""
    kind = task.output.kind
    if kind != KIND_OF_TRACK[task.track]:
        yield f"output.kind is '{kind}' but the {task.track} track delivers '{KIND_OF_TRACK[task.track]}'"
    if task.trivial.kind not in TRIVIALS_OF_KIND[kind]:
        fitting = " or ".join(sorted(TRIVIALS_OF_KIND[kind]))
        yield f"trivial.kind '{task.trivial.kind}' does not fit output.kind '{kind}'; use {fitting}"
    if (task.trivial.value is not None) != (task.trivial.kind in TRIVIALS_WITH_VALUE):
        kinds = ", ".join(sorted(TRIVIALS_WITH_VALUE))
        yield f"trivial.value must be given for {kinds} and for no other kind"
    yield from _unsafe_names(task)
    yield from _output(task)
    for field in task.basis:
        if not _exists(task.model_dump(), field.split(".")):
            yield f"basis names '{field}', which the task does not have"


def _unsafe_names(task: Task) -> Iterator[str]:
    for name in (*(file.name for file in task.inputs), *task.output.filenames, *task.references):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            yield f"file name '{name}' must be relative and stay inside the case folder"


def _output(task: Task) -> Iterator[str]:
    match task.output:
        case MaskOutput():
            yield from _masks(task, task.output)
        case ImageOutput(shape_of=name, data_range=(low, high)):
            yield from _public(task, "output.shape_of", name)
            if not low < high:
                yield f"output.data_range [{low}, {high}] must rise"
        case AnswerOutput(mode=mode):
            yield from _answers(task, mode)
        case BoxOutput(image=name, classes=classes):
            yield from _public(task, "output.image", name)
            yield from _distinct("output.classes", classes)
        case LabelOutput(classes=classes):
            yield from _distinct("output.classes", classes)
            if len(classes) < 2:
                yield f"output.classes must list at least two classes, found {list(classes)}"
            if task.trivial.value not in classes:
                yield f"trivial.value '{task.trivial.value}' is none of output.classes"


def _answers(task: Task, mode: str) -> Iterator[str]:
    headline = HEADLINE_OF_MODE[mode]
    if task.metric.headline != headline:
        yield f"metric.headline is '{task.metric.headline}' but output.mode '{mode}' is scored by '{headline}'"
    value = task.trivial.value or ""
    if mode == "choice" and not (len(value) == 1 and value.isupper()):
        yield f"trivial.value must be one option's letter where output.mode is choice, found '{value}'"


def _masks(task: Task, output: MaskOutput) -> Iterator[str]:
    labels = {file.name: file.labels for file in output.files}
    yield from _distinct("output.files", output.filenames)
    yield from _distinct("output.targets", tuple(target.name for target in output.targets))
    for file in output.files:
        yield from _public(task, "output.files.grid_of", file.grid_of)
        if 0 not in file.labels:
            yield f"output file '{file.name}' lists no label 0 for the background"
    for target in output.targets:
        unknown = set(target.ids) - set(labels.get(target.file, {}))
        if target.file not in labels:
            yield f"target '{target.name}' lies in '{target.file}', which is no output file"
        elif unknown:
            yield f"target '{target.name}' uses ids {sorted(unknown)}, which '{target.file}' does not list"


def _public(task: Task, field: str, name: str) -> Iterator[str]:
    names = [file.name for file in task.inputs]
    if name not in names:
        yield f"{field} is '{name}', which is no input file; the inputs are {', '.join(names)}"


def _distinct(field: str, names: tuple[str, ...]) -> Iterator[str]:
    if not names or len(set(names)) != len(names):
        yield f"{field} must list at least one name and none twice, found {list(names)}"


def _exists(value: Any, parts: list[str]) -> bool:
    if not parts:
        return True
    if isinstance(value, list | tuple):
        return any(_exists(item, parts) for item in value)
    return isinstance(value, dict) and parts[0] in value and _exists(value[parts[0]], parts[1:])
