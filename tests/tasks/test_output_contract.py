"""Every output contract comes with an example that keeps it, and refuses what breaks it."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from tasks.contract import output_example, output_schema
from tasks.registry import all_tasks, load_task
from tasks.schema import LabelOutput, ReportOutput, Task

TASKS = all_tasks()
JSON_TASKS = ("vqa-rad-task", "medframeqa-task", "bccd-det-task", "braintumor-cls-task")


def example_of(task: Task) -> dict[str, Any]:
    (content,) = output_example(task, "a1b2").values()
    value: dict[str, Any] = json.loads(content)
    return value


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_example_names_every_file_of_the_case(task: Task) -> None:
    assert list(output_example(task, "a1b2")) == [f"outputs/a1b2/{name}" for name in task.output.filenames]


@pytest.mark.parametrize("task_id", JSON_TASKS)
def test_json_examples_validate(task_id: str) -> None:
    schema = output_schema(load_task(task_id))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(example_of(load_task(task_id)), schema)


@pytest.mark.parametrize(
    ("task_id", "path", "value"),
    [
        ("vqa-rad-task", ["question_id"], 7),
        ("vqa-rad-task", ["predicted_answer"], ""),
        ("vqa-rad-task", ["predicted_answer"], None),
        ("vqa-rad-task", ["runtime_s"], -1),
        ("medframeqa-task", ["predicted_label"], ""),
        ("medframeqa-task", ["predicted_label"], "b"),
        ("medframeqa-task", ["predicted_label"], "AB"),
        ("medframeqa-task", ["predicted_label"], 2),
        ("bccd-det-task", ["boxes"], None),
        ("bccd-det-task", ["boxes", 0, "class"], "RBC"),
        ("bccd-det-task", ["boxes", 0, "score"], 1.2),
        ("bccd-det-task", ["boxes", 0, "x1"], "12"),
        ("braintumor-cls-task", ["label"], "Glioma"),
        ("braintumor-cls-task", ["label"], 1),
        ("braintumor-cls-task", ["probabilities", "glioma"], 1.2),
        ("braintumor-cls-task", ["probabilities", "astrocytoma"], 0.1),
    ],
)
def test_json_schemas_refuse_what_breaks_them(task_id: str, path: list[str | int], value: Any) -> None:
    task = load_task(task_id)
    broken: Any = copy.deepcopy(example_of(task))
    *parents, last = path
    place = broken
    for part in parents:
        place = place[part]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, output_schema(task))


@pytest.mark.parametrize("task_id", JSON_TASKS)
def test_other_keys_may_stand_beside_as_the_evaluator_ignores_them(task_id: str) -> None:
    task = load_task(task_id)
    example = example_of(task) | {"confidence": 0.5, "notes": ["a"]}
    for box in example.get("boxes", ()):
        box["area"] = 12
    jsonschema.validate(example, output_schema(task))


def test_a_box_may_lack_its_score_and_an_image_its_boxes() -> None:
    task = load_task("bccd-det-task")
    example = example_of(task)
    del example["boxes"][0]["score"]
    jsonschema.validate(example, output_schema(task))
    jsonschema.validate({"boxes": []}, output_schema(task))


@pytest.mark.parametrize(
    ("task_id", "key"),
    [
        ("vqa-rad-task", "question_id"),
        ("vqa-rad-task", "predicted_answer"),
        ("medframeqa-task", "question_id"),
        ("medframeqa-task", "predicted_label"),
    ],
)
def test_an_answer_needs_its_two_keys(task_id: str, key: str) -> None:
    task = load_task(task_id)
    example = example_of(task)
    del example[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(example, output_schema(task))


def test_the_report_example_and_the_template_keep_the_limits() -> None:
    task = load_task("iu-xray-report-task")
    assert isinstance(task.output, ReportOutput)
    assert task.trivial.value is not None
    (example,) = output_example(task, "a1b2").values()
    for text in (example, task.trivial.value):
        assert task.output.min_chars <= len(text) <= task.output.max_chars
        assert sum(character.isalpha() for character in text) >= task.output.min_letters


def test_mask_contracts_name_labels_and_grid() -> None:
    schema = output_schema(load_task("kidney-seg-task"))
    assert schema["organ.nii.gz"]["labels"] == {"0": "background", "1": "kidney, tumour included"}
    assert all("ct.nii.gz" in file["grid"] for file in schema.values())


def test_image_contracts_name_shape_unit_and_range() -> None:
    described = output_schema(load_task("ldct-denoising-task"))["enhanced.npy"]
    assert described["shape"] == "shape of input.npy"
    assert described["unit"] == "HU"
    assert "[-1024, 3000]" in described["values"]


@pytest.mark.parametrize(
    "task", [task for task in TASKS if isinstance(task.output, LabelOutput)], ids=lambda task: task.id
)
def test_the_example_of_a_class_is_what_the_scorer_takes(task: Task) -> None:
    assert isinstance(task.output, LabelOutput)
    example = example_of(task)
    jsonschema.validate(example, output_schema(task))
    assert tuple(example["probabilities"]) == task.output.classes
    assert sum(example["probabilities"].values()) == pytest.approx(1, abs=1e-9)
    assert max(example["probabilities"], key=example["probabilities"].get) == example["label"]
    jsonschema.validate({"label": example["label"]}, output_schema(task))
