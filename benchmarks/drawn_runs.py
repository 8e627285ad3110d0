"""Made-up runs whose submissions are real files on real phantoms, scored by the evaluator: for what draws cases.

``python -m benchmarks.drawn_runs OUT DATA`` writes runs of one task a track: of ``cirrus`` (the reference, a little
spoiled), ``nimbus`` (the do-nothing submission) and ``stratus`` (spoiled more, one case damaged and one missing).
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import nibabel
import numpy as np
from scipy import ndimage

from benchmarks.made_runs import make_run, write_run
from evaluator.errors import detect_errors
from evaluator.files import sha256_file
from evaluator.judge.material import Assignment, material_of
from evaluator.preview import write_previews
from evaluator.reference_submissions import write_perfect, write_trivial
from evaluator.report import dump_report
from evaluator.score import score
from evaluator.stages import agentic, overall, s4, s5
from evaluator.trace import read_trace
from hf_datasets import ensure_phantom
from hf_datasets.records import dump_record
from tasks.manifest import MANIFEST_NAME, Manifest, load_manifest
from tasks.names import Tier
from tasks.registry import load_task
from tasks.schema import Task

ONE_OF_EACH_TRACK = (
    "kidney-seg-task",
    "ldct-denoising-task",
    "vqa-rad-task",
    "iu-xray-report-task",
    "bccd-det-task",
    "skin-lesion-cls-task",
    "synthrad2025-mrct-task",
)


AGENTS = ("cirrus", "nimbus", "stratus")
CASES = 3
"""Of each phantom; drawing takes no more, and scoring is what takes long."""


def write_drawn(out: Path, data: Path, task_id: str, agents: Sequence[str] = AGENTS) -> None:
    """A run folder of each agent."""
    task, staged = load_task(task_id), ensure_phantom(task_id, data)
    manifest = load_manifest(staged)
    manifest = manifest.model_copy(update={"cases": manifest.cases[:CASES]})
    for agent in agents:
        folder = out / task_id / "lite" / agent / "r00"
        made = make_run(task, Tier.LITE, agent, 0)
        write_run(folder, made)
        submission = folder / "submission"
        if agent == "nimbus":
            write_trivial(task, manifest, staged / "public", submission)
        else:
            write_perfect(task, manifest, staged / "private", submission)
            for number, case_id in enumerate(manifest.case_ids()):
                _spoil(task, submission / case_id, number, strength=1 if agent == "cirrus" else 3)
        if agent == "stratus":
            _damage(task, manifest, submission)
        _rescore(folder, task, manifest, staged)


def _rescore(folder: Path, task: Task, manifest: Manifest, staged: Path) -> None:
    """Put the evaluator's own report and totals in place of the made-up ones."""
    public, private, submission = staged / "public", staged / "private", folder / "submission"
    digest = sha256_file(staged / MANIFEST_NAME)
    report = score(task, submission, private, public, manifest, 1, manifest_sha256=digest)
    write_previews(task, manifest, submission, private, public, folder / "previews")
    (folder / "report.json").write_text(dump_report(report))
    record = make_run(task, Tier.LITE, folder.parent.name, 0).record
    assignment = Assignment.of(task, Tier.LITE, report.n_cases)
    material = material_of(assignment, read_trace(folder / "trace.jsonl"), submission)
    codes = detect_errors(material.events, material.evidence, report)
    fourth, fifth = s4(report), s5(report)
    how = agentic(record.s1, record.s2, record.s3, fourth, fifth)
    record = record.model_copy(
        update={
            "task_score": report.task_score,
            "task_score_ungated": report.task_score_ungated,
            "s4": fourth,
            "s5": fifth,
            "agentic": how,
            "overall": overall(how, report.task_score),
            "metric_set": report.metric_set,
            "metrics": dict(report.aggregates),
            "n_cases": report.n_cases,
            "n_scored": report.n_scored,
            "completion": report.completion,
            "error_codes": tuple(sorted({code.name for code in codes})),
            "manifest_sha256": digest,
            "report_sha256": sha256_file(folder / "report.json"),
            "trace_sha256": sha256_file(folder / "trace.jsonl"),
            "judgement_sha256": sha256_file(folder / "judgement.json"),
        }
    )
    (folder / "record.json").write_text(dump_record(record), "utf-8")


def _spoil(task: Task, folder: Path, number: int, strength: int) -> None:
    rng = np.random.default_rng(number)
    for name in task.output.filenames:
        path = folder / name
        match task.output.kind:
            case "mask":
                image = nibabel.load(path)
                moved = ndimage.shift(np.asarray(image.dataobj), (strength, 0, 0), order=0)
                nibabel.save(nibabel.Nifti1Image(moved, image.affine), path)
            case "image" if path.suffix == ".npy":
                np.save(path, _blurred(np.load(path), strength))
            case "image":
                image = nibabel.load(path)
                blurred = _blurred(np.asarray(image.dataobj, np.float32), strength)
                nibabel.save(nibabel.Nifti1Image(blurred, image.affine), path)
            case "boxes":
                path.write_text(
                    json.dumps({"boxes": _jittered(json.loads(path.read_bytes()), rng, strength)})
                )
            case "report":
                words = path.read_text("utf-8").split()
                kept = [word for word in words if rng.random() > 0.08 * strength]
                path.write_text(" ".join(kept) + " No acute findings are seen in this study.\n", "utf-8")
            case "label":
                classes = task.output.classes
                shares = rng.dirichlet(np.full(len(classes), 0.4))
                label = classes[int(shares.argmax())]
                path.write_text(
                    json.dumps({"label": label, "probabilities": dict(zip(classes, shares, strict=True))})
                )
            case "answer" if number % 3 < strength - 1:
                path.write_text(
                    json.dumps(
                        {"predicted_answer": "the upper lobe of the left lung", "question_id": folder.name}
                    )
                )


def _blurred(image: np.ndarray, strength: int) -> np.ndarray:
    return ndimage.gaussian_filter(image.astype(np.float32), 0.7 * strength)


def _jittered(content: dict, rng: np.random.Generator, strength: int) -> list[dict]:
    boxes = []
    for box in content["boxes"]:
        if rng.random() < 0.12 * strength:
            continue
        dx, dy = rng.normal(0, 2.5 * strength, 2)
        moved = {"x1": box["x1"] + dx, "x2": box["x2"] + dx, "y1": box["y1"] + dy, "y2": box["y2"] + dy}
        boxes.append({**box, **moved, "score": round(float(rng.uniform(0.3, 1.0)), 3)})
    extra = (
        {"class": content["boxes"][0]["class"], "x1": 5.0, "y1": 5.0, "x2": 45.0, "y2": 40.0}
        if content["boxes"]
        else None
    )
    return boxes + ([{**extra, "score": 0.21}] if extra else [])


def _damage(task: Task, manifest: Manifest, submission: Path) -> None:
    """The second case is no file of its format, the third is not there."""
    _, second, third = manifest.case_ids()[:3]
    for name in task.output.filenames:
        (submission / second / name).write_bytes(b"<script>window.hacked=1</script>\xff\xfe")
    shutil.rmtree(submission / third)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drawn_runs")
    parser.add_argument("out", type=Path)
    parser.add_argument("data", type=Path, help="folder of staged data; phantoms that it lacks are made")
    parser.add_argument("--tasks", nargs="+", default=ONE_OF_EACH_TRACK)
    parser.add_argument("--agents", nargs="+", default=AGENTS)
    arguments = parser.parse_args()
    for task_id in arguments.tasks:
        write_drawn(arguments.out, arguments.data, task_id, arguments.agents)


if __name__ == "__main__":
    main()
