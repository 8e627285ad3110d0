"""What is asked: task definitions, texts and the brief. No network, no other room.

The public names are loaded when they are first used, so that importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.brief import Brief, BriefError, render
    from tasks.contract import output_example, output_schema
    from tasks.manifest import Manifest, ManifestError, load_manifest
    from tasks.registry import TaskError, all_tasks, load_task, task_digest, task_folder
    from tasks.schema import Limits, Release, Task, Tier, Track

_HOME = {
    "Brief": "tasks.brief",
    "BriefError": "tasks.brief",
    "render": "tasks.brief",
    "output_example": "tasks.contract",
    "output_schema": "tasks.contract",
    "Manifest": "tasks.manifest",
    "ManifestError": "tasks.manifest",
    "load_manifest": "tasks.manifest",
    "TaskError": "tasks.registry",
    "all_tasks": "tasks.registry",
    "load_task": "tasks.registry",
    "task_digest": "tasks.registry",
    "task_folder": "tasks.registry",
    "Limits": "tasks.schema",
    "Release": "tasks.schema",
    "Task": "tasks.schema",
    "Tier": "tasks.schema",
    "Track": "tasks.schema",
}

__all__ = [
    "Brief",
    "BriefError",
    "Limits",
    "Manifest",
    "ManifestError",
    "Release",
    "Task",
    "TaskError",
    "Tier",
    "Track",
    "all_tasks",
    "load_manifest",
    "load_task",
    "output_example",
    "output_schema",
    "render",
    "task_digest",
    "task_folder",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tasks' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
