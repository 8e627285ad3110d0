"""Find, load and validate the task folders ``tasks/<track>/<task-id>/``."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tasks.consistency import inconsistencies
from tasks.schema import Task, Track

TASKS_ROOT = Path(__file__).parent
TASK_FILES = ("task.yaml", "lite.md", "standard.md", "requirements.txt")


class TaskError(Exception):
    """A task is unknown or its folder cannot be used; one line that says what to change."""


def load_task(task_id: str) -> Task:
    """The task of this id.

    Raises
    ------
    TaskError
        No such task, or its folder is not valid.
    """
    return _load(task_folder(task_id))


def all_tasks() -> list[Task]:
    """Every task, sorted by id. Raises ``TaskError`` at the first folder that is not valid."""
    return [_load(folder) for _, folder in sorted(_folders().items())]


def task_ids() -> list[str]:
    """The ids of all task folders, sorted, whether they are valid or not."""
    return sorted(_folders())


def task_folder(task_id: str) -> Path:
    """The folder that holds the task's four files. Raises ``TaskError`` for an unknown id."""
    folders = _folders()
    if task_id not in folders:
        hint = _suggestion(task_id, folders) or f"; the tasks are: {', '.join(sorted(folders))}"
        raise TaskError(f"unknown task '{task_id}'{hint}")
    return folders[task_id]


def task_digest(task_id: str) -> str:
    """SHA-256 over the names and bytes of the files in the task's folder, sorted, hidden ones left out."""
    return folder_digest(task_folder(task_id))


def folder_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(".") and "/." not in name:
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def load_folder(folder: Path) -> Task:
    """Read and check one task folder, wherever it lies.

    Raises
    ------
    TaskError
        A file is missing, or ``task.yaml`` breaks the schema, contradicts itself or lies in the wrong folder.
    """
    for name in TASK_FILES:
        if not (folder / name).is_file():
            raise TaskError(f"{folder} lacks {name}; a task folder holds {', '.join(TASK_FILES)}")
    path = folder / "task.yaml"
    task = _validated(path, _read_yaml(path))
    if task.id != folder.name:
        raise TaskError(f"{path}: id is '{task.id}' but its folder is named '{folder.name}'")
    if task.track != folder.parent.name:
        raise TaskError(f"{path}: track is '{task.track}' but its folder lies in '{folder.parent.name}'")
    for problem in inconsistencies(task):
        raise TaskError(f"{path}: {problem}")
    return task


@cache
def _folders() -> dict[str, Path]:
    found = (TASKS_ROOT.glob(f"{track}/*/task.yaml") for track in Track)
    return {path.parent.name: path.parent for paths in found for path in paths}


_load = cache(load_folder)


# --- reading ---


NOT_YAML = (yaml.YAMLError, ValueError, RecursionError)
"""What reading a YAML file may raise: a date that there is not, and digits or brackets without an end, among others."""


class _UniqueKeyLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, except that a key that stands twice in one mapping is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise TaskError(f"line {line}: key '{key}' stands twice; keep one of them")
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.load(path.read_bytes(), _UniqueKeyLoader)  # a safe loader: builds plain values only
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from None
    except NOT_YAML as error:
        raise TaskError(f"{path} is not YAML: {' '.join(str(error).split())}") from None


def _validated(path: Path, data: Any) -> Task:
    try:
        return Task.model_validate(data)
    except ValidationError as error:
        raise TaskError(f"{path}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    """The first finding in words; an unknown key is named before what is missing because of it."""
    findings = error.errors()
    finding = next((one for one in findings if one["type"] == "extra_forbidden"), findings[0])
    where = ".".join(str(part) for part in finding["loc"]) or "the file"
    if finding["type"] == "extra_forbidden":
        *parents, key = finding["loc"]
        return f"unknown key '{where}'{_suggestion(str(key), _known_keys(parents))}"
    found = "" if finding["type"] == "missing" else f", found {finding['input']!r:.80}"
    return f"{where}: {finding['msg']}{found}"


def _known_keys(location: Iterable[str | int]) -> list[str]:
    """The keys that the schema knows at a pydantic error location (unions contribute their tag to it)."""
    schema = Task.model_json_schema()
    definitions = schema["$defs"]
    node: dict[str, Any] = schema
    for part in location:
        if isinstance(part, int):
            node = node["items"]
        elif "discriminator" in node:
            node = {"$ref": node["discriminator"]["mapping"][part]}
        elif part in node.get("properties", {}):
            node = node["properties"][part]
        else:
            node = node["additionalProperties"]
        if "$ref" in node:
            node = definitions[node["$ref"].rsplit("/", 1)[1]]
    return list(node.get("properties", {}))


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""
