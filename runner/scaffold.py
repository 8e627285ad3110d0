"""Lay out a new task's folder: what a program can know is filled in, what only its author knows is marked TODO."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from runner.errors import UsageProblem
from tasks.registry import TASKS_ROOT, load_folder, task_ids
from tasks.schema import Limits, Track

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TODO = "TODO"

Part = dict[str, object]

_IMAGE: Part = {
    "name": "image.png",
    "format": "PNG, 8-bit RGB",
    "description": "TODO: what the picture shows",
}
_VOLUME: Part = {
    "name": "image.nii.gz",
    "format": "NIfTI-1, gzip",
    "description": "TODO: what the volume shows, its unit and spacing",
}
_ARRAY: Part = {
    "name": "input.npy",
    "format": "NumPy float32, (rows, columns)",
    "description": "TODO: what the slice shows and in which unit",
}
_QUESTION: Part = {
    "name": "question.json",
    "format": "JSON, UTF-8",
    "description": "Object with question_id, question and image_paths (relative to the case folder).",
}
_STUDY: Part = {
    "name": "manifest.json",
    "format": "JSON, UTF-8",
    "description": "Object with case_id and image_files (paths below the case folder).",
}
_FILMS: Part = {"name": "images/*.jpg", "format": "JPEG, 8-bit grey", "description": "One file a view."}

PARTS: dict[Track, Part] = {
    Track.SEGMENTATION: {
        "unit": "volume",
        "inputs": [_VOLUME],
        "output": {
            "kind": "mask",
            "files": [
                {
                    "name": "mask.nii.gz",
                    "labels": {0: "background", 1: "TODO structure"},
                    "grid_of": "image.nii.gz",
                }
            ],
            "targets": [{"name": "structure", "file": "mask.nii.gz", "ids": [1]}],
        },
        "references": ["mask.nii.gz"],
        "metric": {"headline": "macro_dice"},
        "trivial": {"kind": "empty_mask"},
    },
    Track.ENHANCEMENT: {
        "unit": "slice",
        "inputs": [_ARRAY],
        "output": {
            "kind": "image",
            "file": "enhanced.npy",
            "shape_of": "input.npy",
            "data_range": [0.0, 1.0],
        },
        "references": ["reference.npy"],
        "metric": {"headline": "ssim_gaussian"},
        "trivial": {"kind": "copied_input"},
    },
    Track.SYNTHESIS: {
        "unit": "volume",
        "inputs": [_VOLUME],
        "output": {
            "kind": "image",
            "file": "synthetic.nii.gz",
            "shape_of": "image.nii.gz",
            "data_range": [-1024.0, 3000.0],
        },
        "references": ["reference.nii.gz"],
        "metric": {"headline": "ssim_gaussian"},
        "trivial": {"kind": "copied_input"},
    },
    Track.VQA: {
        "unit": "question",
        "inputs": [_QUESTION, _IMAGE],
        "output": {"kind": "answer", "file": "answer.json", "mode": "open"},
        "references": ["answer.json"],
        "metric": {"headline": "exact_match_normalised"},
        "trivial": {"kind": "constant_answer", "value": "yes"},
    },
    Track.REPORT: {
        "unit": "study",
        "inputs": [_STUDY, _FILMS],
        "output": {"kind": "report", "file": "report.txt", "sections": ["findings", "impression"]},
        "references": ["report.txt", "labels.json"],
        "metric": {"headline": "report_mean", "sets": ["obs_rouge"]},
        "trivial": {"kind": "template_report", "value": "TODO: a report that says nothing is to be seen."},
    },
    Track.DETECTION: {
        "unit": "image",
        "inputs": [_IMAGE],
        "output": {
            "kind": "boxes",
            "file": "prediction.json",
            "image": "image.png",
            "classes": ["TODO first", "TODO second"],
        },
        "references": ["boxes.json"],
        "metric": {"headline": "map50_coco101"},
        "trivial": {"kind": "no_box"},
    },
    Track.CLASSIFICATION: {
        "unit": "image",
        "inputs": [_IMAGE],
        "output": {"kind": "label", "file": "prediction.json", "classes": ["TODO first", "TODO second"]},
        "references": ["label.json"],
        "metric": {"headline": "accuracy"},
        "trivial": {"kind": "constant_label", "value": "TODO first"},
    },
}
"""What differs between tracks; copied from a task of the track where there is one."""

LITE = """### Hints for S1

TODO: what to look at first. Keep the snippet below, or write one that prints what matters in your data.

```python
from pathlib import Path

for case in sorted(Path("/data/public").iterdir())[:5]:
    print(case.name, sorted(path.name for path in case.iterdir()))
```

### Hints for S2

TODO: how the named model is obtained, loaded and run on one case.

```python title=weights
import torch

print(torch.__version__)
```

### Hints for S3

TODO: the pilot. A snippet that writes the output of the first case and prints what has to be looked at.
"""
STANDARD = """TODO: what the comparison of at least three candidates in `plan.md` should cover for this task.

`plan.png` shows the way of a case from input to delivered file.

TODO: what the pilot check should look at.
"""
REQUIREMENTS = "numpy==2.2.6\npillow==11.3.0\n"


def new_task(task_id: str, track: Track, root: Path = TASKS_ROOT) -> Path:
    """Write ``<root>/<track>/<task_id>/`` with its four files; it loads, and what is left to do is marked.

    Raises
    ------
    UsageProblem
        The id is not of the form, or taken.
    """
    if not _ID.fullmatch(task_id):
        raise UsageProblem(
            f"expected an id of small letters, digits and single hyphens such as spine-seg-task, found {task_id!r}"
        )
    folder = root / track.value / task_id
    if folder.exists() or (root == TASKS_ROOT and task_id in task_ids()):
        raise UsageProblem(f"{task_id} is taken; choose another id or edit {folder}")
    folder.mkdir(parents=True)
    text = yaml.safe_dump(_content(task_id, track), sort_keys=False, allow_unicode=True, width=110)
    (folder / "task.yaml").write_text(text, encoding="utf-8")
    (folder / "lite.md").write_text(LITE, encoding="utf-8")
    (folder / "standard.md").write_text(STANDARD, encoding="utf-8")
    (folder / "requirements.txt").write_text(REQUIREMENTS, encoding="utf-8")
    load_folder(folder)
    return folder


def _content(task_id: str, track: Track) -> Part:
    model = {
        "name": "TODO: name of a model",
        "source": "TODO: where it is, for example huggingface.co/OWNER/NAME",
    }
    other = {"name": "TODO: another model or method", "source": "TODO: where it is"}
    parts = PARTS[track]
    limits = Limits().model_dump(exclude_none=True)
    return {
        "id": task_id,
        "title": "TODO: a few words",
        "track": track.value,
        "modality": "TODO: for example abdominal CT",
        "in_paper": False,
        "background": "TODO: clinical background in three or four sentences of your own.",
        "source": {
            "dataset": "TODO: name of the dataset",
            "url": "https://example.org/TODO",
            "license": "TODO: the licence, in its own words",
            "access": "open",
            "redistribution": "none",
            "acquisition": "TODO: how somebody else obtains the data lawfully, in one or two sentences.",
        },
        **{name: parts[name] for name in ("unit", "inputs", "output", "references", "metric")},
        "limits": limits,
        "repeats": 10,
        "tiers": {"lite": {"model": model}, "standard": {"candidates": [model, other]}},
        "trivial": parts["trivial"],
        "baselines": {"phantom": {"trivial": None, "strong": None, "basis": "measured on phantom seed 0"}},
        "basis": {f"limits.{name}": "ours" for name in limits},
    }
