"""Two submissions that anchor the scale: the references themselves, and the task's do-nothing answer.

Both are written in the form an agent would submit, so that they pass through the same readers and checks.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tasks.manifest import Manifest
from tasks.schema import (
    AnswerOutput,
    BoxOutput,
    ImageOutput,
    LabelOutput,
    MaskFile,
    MaskOutput,
    ReportOutput,
    Task,
)


def write_perfect(task: Task, manifest: Manifest, references: Path, out: Path) -> None:
    """Write what would be submitted by someone who holds the references.

    Parameters
    ----------
    references : Path
        The ``private`` side of the staged data.
    out : Path
        Folder that gets ``<case>/<file>`` for every case of the manifest.
    """
    for case_id in manifest.case_ids():
        _perfect_case(task, case_id, references / case_id, _case_folder(out, case_id))


def write_trivial(task: Task, manifest: Manifest, public: Path, out: Path) -> None:
    """Write the task's declared do-nothing submission, made of public inputs alone.

    Parameters
    ----------
    public : Path
        The ``public`` side of the staged data.
    out : Path
        Folder that gets ``<case>/<file>`` for every case of the manifest.
    """
    for case_id in manifest.case_ids():
        _trivial_case(task, case_id, public / case_id, _case_folder(out, case_id))


def _case_folder(out: Path, case_id: str) -> Path:
    folder = out / case_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _perfect_case(task: Task, case_id: str, references: Path, out: Path) -> None:
    match task.output:
        case MaskOutput(files=files):
            for file in files:
                shutil.copyfile(references / file.name, out / file.name)
        case ImageOutput(file=name) | ReportOutput(file=name):
            shutil.copyfile(references / task.references[0], out / name)
        case AnswerOutput(file=name, mode=mode):
            answer = json.loads((references / task.references[0]).read_bytes())["answer"]
            _write_json(out / name, _answer(case_id, answer, mode))
        case BoxOutput(file=name):
            boxes = json.loads((references / task.references[0]).read_bytes())["boxes"]
            kept = ("class", "x1", "y1", "x2", "y2")
            _write_json(out / name, {"boxes": [{key: box[key] for key in kept} for box in boxes]})
        case LabelOutput(file=name):
            label = json.loads((references / task.references[0]).read_bytes())["label"]
            _write_json(out / name, {"label": label})


def _trivial_case(task: Task, case_id: str, public: Path, out: Path) -> None:
    value = task.trivial.value or ""
    match task.output:
        case MaskOutput(files=files):
            for file in files:
                _write_empty_mask(public, file, out)
        case ImageOutput() as output:
            _write_input_as_output(output, public, out)
        case AnswerOutput(file=name, mode=mode):
            _write_json(out / name, _answer(case_id, value, mode))
        case ReportOutput(file=name):
            (out / name).write_text(value + "\n", encoding="utf-8")
        case BoxOutput(file=name):
            _write_json(out / name, {"boxes": []})
        case LabelOutput(file=name):
            _write_json(out / name, {"label": value})


def _answer(case_id: str, answer: str, mode: str) -> dict[str, str]:
    return {"question_id": case_id, "predicted_label" if mode == "choice" else "predicted_answer": answer}


def _write_empty_mask(public: Path, file: MaskFile, out: Path) -> None:
    import nibabel
    import numpy as np

    grid: Any = nibabel.load(public / file.grid_of)
    nibabel.save(nibabel.Nifti1Image(np.zeros(grid.shape[:3], np.uint8), grid.affine), out / file.name)


def _write_input_as_output(output: ImageOutput, public: Path, out: Path) -> None:
    """The input as it is or, where the output is larger, enlarged by cubic splines."""
    source = public / output.shape_of
    if output.scale == 1:
        shutil.copyfile(source, out / output.file)
        return
    import numpy as np
    from scipy import ndimage

    small = np.load(source, allow_pickle=False).astype(np.float32)
    large = ndimage.zoom(small, output.scale, order=3, mode="nearest", grid_mode=True)
    np.save(out / output.file, large)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")
