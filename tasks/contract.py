"""The output contract of a task: what each file holds, as a schema and as a worked example.

For JSON outputs the schema is a JSON Schema (draft 2020-12) of the file, and the example keeps it.
Masks, images and texts get a description in the same spirit: file, format, type, grid, values.
"""

from __future__ import annotations

import json
from typing import Any

from tasks.schema import (
    OUTPUT_ROOT,
    AnswerOutput,
    BoxOutput,
    ImageOutput,
    LabelOutput,
    MaskFile,
    MaskOutput,
    ReportOutput,
    Task,
)

JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
OTHER_KEYS = {"description": "other keys may stand beside these; they are ignored"}


def output_schema(task: Task) -> dict[str, Any]:
    """The contract of one case's outputs, ready for ``json.dumps``."""
    match task.output:
        case MaskOutput(files=files):
            return {file.name: _mask_schema(file) for file in files}
        case ImageOutput() as output:
            return {output.file: _image_schema(output)}
        case AnswerOutput() as output:
            return _answer_schema(output)
        case ReportOutput() as output:
            return {output.file: _report_schema(output)}
        case BoxOutput() as output:
            return _box_schema(output)
        case LabelOutput() as output:
            return _label_schema(output)


def output_example(task: Task, case_id: str) -> dict[str, str]:
    """Workspace path -> what lies there for one case; for JSON and text, the exact content of a valid file."""
    folder = f"{OUTPUT_ROOT}/{case_id}"
    match task.output:
        case MaskOutput(files=files):
            return {f"{folder}/{file.name}": _mask_example(file) for file in files}
        case ImageOutput(file=name, unit=unit) as output:
            what = "array" if name.endswith(".npy") else "volume"
            return {f"{folder}/{name}": f"float32 {what}, {_shape(output)}, finite values in {unit}"}
        case AnswerOutput(file=name, mode=mode):
            return {f"{folder}/{name}": _json(_answer_example(case_id, mode))}
        case ReportOutput(file=name, sections=sections):
            return {f"{folder}/{name}": _report_example(sections)}
        case BoxOutput(file=name, classes=classes):
            return {f"{folder}/{name}": _json(_box_example(classes))}
        case LabelOutput(file=name, classes=classes):
            return {f"{folder}/{name}": _json(_label_example(classes))}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


# --- masks and images ---


def _mask_schema(file: MaskFile) -> dict[str, Any]:
    return {
        "format": "NIfTI-1, gzip",
        "dtype": "uint8 (other integer types are read too)",
        "grid": f"shape and affine of {file.grid_of}",
        "labels": {str(value): meaning for value, meaning in sorted(file.labels.items())},
        "values": "only the labels above; finite",
    }


def _mask_example(file: MaskFile) -> str:
    values = ", ".join(str(value) for value in sorted(file.labels))
    return f"uint8 volume on the grid of {file.grid_of}, voxel values {values}"


def _image_schema(output: ImageOutput) -> dict[str, Any]:
    low, high = output.data_range
    return {
        "format": "NumPy .npy, no pickle" if output.file.endswith(".npy") else "NIfTI-1, gzip",
        "dtype": "float32",
        "shape": _shape(output),
        "unit": output.unit,
        "values": f"finite; the metric clips to [{low:g}, {high:g}]",
    }


def _shape(output: ImageOutput) -> str:
    times = "" if output.scale == 1 else f", {output.scale} times as large along each axis"
    grid = "shape" if output.file.endswith(".npy") else "shape and affine"
    return f"{grid} of {output.shape_of}{times}"


# --- answers and reports ---


def _answer_schema(output: AnswerOutput) -> dict[str, Any]:
    scored, companion = _OPEN_KEYS if output.mode == "open" else _CHOICE_KEYS
    return {
        "$schema": JSON_SCHEMA,
        "title": output.file,
        "type": "object",
        **OTHER_KEYS,
        "required": ["question_id", *scored],
        "properties": {
            "question_id": {
                "type": "string",
                "description": "question_id of question.json, the name of the case folder",
            },
            **scored,
            **companion,
            "raw_model_output": {"type": "string", "description": "what the model wrote, unshortened"},
            "model_name": {"type": "string"},
            "runtime_s": {"type": "number", "minimum": 0},
        },
    }


_OPEN_KEYS: tuple[dict[str, Any], dict[str, Any]] = (
    {
        "predicted_answer": {
            "type": "string",
            "minLength": 1,
            "description": "the short answer that is scored",
        }
    },
    {"predicted_label": {"type": "string", "description": "not used in open questions; may be empty"}},
)
_CHOICE_KEYS: tuple[dict[str, Any], dict[str, Any]] = (
    {
        "predicted_label": {
            "type": "string",
            "pattern": "^[A-Z]$",
            "description": "the letter that is scored, one of those in options of question.json",
        }
    },
    {"predicted_answer": {"type": "string", "description": "the text of that option; not scored"}},
)
"""What is scored, and what may stand beside it."""


def _answer_example(case_id: str, mode: str) -> dict[str, Any]:
    scored = (
        {"predicted_answer": "axial", "raw_model_output": "The image is an axial slice."}
        if mode == "open"
        else {
            "predicted_label": "B",
            "predicted_answer": "axial",
            "raw_model_output": "The answer is B: axial.",
        }
    )
    return {
        "question_id": case_id,
        **scored,
        "model_name": "the model that was used",
        "runtime_s": 1.4,
    }


def _report_schema(output: ReportOutput) -> dict[str, Any]:
    return {
        "format": "plain text, UTF-8, no control characters other than line breaks and tabs",
        "characters": {"minimum": output.min_chars, "maximum": output.max_chars},
        "letters": {"minimum": output.min_letters},
        "sections": list(output.sections),
    }


def _report_example(sections: tuple[str, ...]) -> str:
    lines = [
        f"{name.capitalize()}: whole sentences about what this study shows, {name} only." for name in sections
    ]
    return "\n".join(lines or ["Whole sentences about what the images show, and nothing else."]) + "\n"


# --- boxes ---


def _box_schema(output: BoxOutput) -> dict[str, Any]:
    pixel = {"type": "number", "description": f"pixels of {output.image}, origin at its upper left corner"}
    return {
        "$schema": JSON_SCHEMA,
        "title": output.file,
        "type": "object",
        **OTHER_KEYS,
        "required": ["boxes"],
        "properties": {
            "boxes": {
                "type": "array",
                "description": f"the {output.max_detections} of highest score count; [] for nothing found",
                "items": {
                    "type": "object",
                    "required": ["class", "x1", "y1", "x2", "y2"],
                    "properties": {
                        "class": {"enum": list(output.classes)},
                        "score": {"type": "number", "minimum": 0, "maximum": 1, "default": 1.0},
                        "x1": pixel,
                        "y1": pixel,
                        "x2": pixel | {"description": "greater than x1"},
                        "y2": pixel | {"description": "greater than y1"},
                    },
                },
            }
        },
    }


def _box_example(classes: tuple[str, ...]) -> dict[str, Any]:
    corners = [(12.0, 8.5, 96.0, 90.0), (210.5, 134.0, 251.0, 171.5)]
    return {
        "boxes": [
            {"class": name, "score": round(0.9 - 0.2 * rank, 1), "x1": x1, "y1": y1, "x2": x2, "y2": y2}
            for rank, (name, (x1, y1, x2, y2)) in enumerate(zip(classes, corners, strict=False))
        ]
    }


# --- labels ---


def _label_schema(output: LabelOutput) -> dict[str, Any]:
    classes = list(output.classes)
    return {
        "$schema": JSON_SCHEMA,
        "title": output.file,
        "type": "object",
        **OTHER_KEYS,
        "required": ["label"],
        "properties": {
            "label": {"enum": classes, "description": "the class that is scored"},
            "probabilities": {
                "type": "object",
                "description": "optional; one number for each class, adding up to 1",
                "propertyNames": {"enum": classes},
                "minProperties": len(classes),
                "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
            },
        },
    }


def _label_example(classes: tuple[str, ...]) -> dict[str, Any]:
    """A file that chooses the second class, so that nobody takes the first one for a default."""
    rest = round(0.4 / (len(classes) - 1), 4)
    shares = {name: rest for name in classes}
    shares[classes[1]] = round(1 - rest * (len(classes) - 1), 4)
    return {"label": classes[1], "probabilities": shares}
