"""Tiny staged tasks of every track, written by the test itself, so that nothing else must be installed or right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from PIL import Image

from evaluator.reference_submissions import write_perfect
from evaluator.report import CaseResult, TaskReport
from evaluator.score import score
from tasks.manifest import Case, FileEntry, Manifest, dump_manifest
from tasks.schema import Baseline, Release, Task

AFFINE = np.diag([-1.0, -1.5, 3.0, 1.0])
SHAPE = (20, 24, 10)


@dataclass(frozen=True)
class Staged:
    """A task with its data under ``root`` and a perfect submission to spoil."""

    task: Task
    manifest: Manifest
    root: Path

    @property
    def submission(self) -> Path:
        return self.root / "submission"

    @property
    def public(self) -> Path:
        return self.root / "public"

    @property
    def private(self) -> Path:
        return self.root / "private"

    @property
    def cases(self) -> list[str]:
        return self.manifest.case_ids()

    def output(self, case: str, name: str | None = None) -> Path:
        return self.submission / case / (name or self.task.output.filenames[0])

    def score(self, jobs: int = 1, submission: Path | None = None) -> TaskReport:
        return score(self.task, submission or self.submission, self.private, self.public, self.manifest, jobs)

    def case(self, name: str, jobs: int = 1) -> CaseResult:
        return {case.case_id: case for case in self.score(jobs).cases}[name]


def make_task(track: str, output: dict[str, Any], **fields: Any) -> Task:
    """A valid task with as little in it as the schema allows."""
    model = {"name": "m", "source": "s"}
    metric = fields.pop("metric", {"headline": "headline"})
    return Task.model_validate(
        {
            "id": f"tiny-{track}-task",
            "title": "t",
            "track": track,
            "modality": "m",
            "in_paper": False,
            "background": "b",
            "source": {
                "dataset": "d",
                "url": "https://example.org",
                "license": "l",
                "access": "open",
                "acquisition": "a",
            },
            "inputs": [],
            "output": output,
            "metric": metric,
            "tiers": {"lite": {"model": model}, "standard": {"candidates": [model, model]}},
            **fields,
        }
    )


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Staged]:
    """``stage("detection")``: three staged cases of a track and the perfect submission."""

    def staged(track: str, **options: Any) -> Staged:
        task = _TASKS[track](**options)
        for number in (1, 2, 3):
            public, private = tmp_path / "public" / f"c{number}", tmp_path / "private" / f"c{number}"
            public.mkdir(parents=True)
            private.mkdir(parents=True)
            _WRITERS[track](public, private, number)
        manifest = _manifest(task, tmp_path)
        write_perfect(task, manifest, tmp_path / "private", tmp_path / "submission")
        return Staged(task, manifest, tmp_path)

    return staged


def _manifest(task: Task, root: Path) -> Manifest:
    cases = tuple(
        Case(id=f"c{n}", public=_entries(root / "public" / f"c{n}"), private=(), origin="o")
        for n in (1, 2, 3)
    )
    manifest = Manifest(
        task=task.id,
        release=Release.PHANTOM,
        seed=0,
        source="s",
        license="l",
        redistribution="none",
        generator="test",
        cases=cases,
    )
    (root / "manifest.json").write_text(dump_manifest(manifest))
    return manifest


def _entries(folder: Path) -> tuple[FileEntry, ...]:
    return tuple(FileEntry(path=path.name, sha256="0", bytes=1) for path in sorted(folder.iterdir()))


# --- tasks ---


def _segmentation(**options: Any) -> Task:
    files = [
        {"name": "organ.nii.gz", "labels": {0: "background", 1: "organ"}, "grid_of": "ct.nii.gz"},
        {"name": "lesion.nii.gz", "labels": {0: "background", 1: "lesion"}, "grid_of": "ct.nii.gz"},
    ]
    targets = [
        {"name": "organ", "file": "organ.nii.gz", "ids": [1]},
        {"name": "lesion", "file": "lesion.nii.gz", "ids": [1], "lesion": True},
    ]
    return make_task(
        "segmentation",
        {"kind": "mask", "files": files, "targets": targets},
        references=("organ.nii.gz", "lesion.nii.gz"),
        trivial={"kind": "empty_mask"},
        baselines={Release.PHANTOM: Baseline(trivial=0.25)},
        **options,
    )


def _labelmap(**options: Any) -> Task:
    labels = {0: "background", 1: "a", 2: "b", 7: "c"}
    targets = [
        {"name": "a", "file": "dseg.nii.gz", "ids": [1]},
        {"name": "b", "file": "dseg.nii.gz", "ids": [2]},
        {"name": "c", "file": "dseg.nii.gz", "ids": [7]},
        {"name": "whole", "file": "dseg.nii.gz", "ids": [1, 2]},
    ]
    files = [{"name": "dseg.nii.gz", "labels": labels, "grid_of": "ct.nii.gz"}]
    return make_task(
        "segmentation",
        {"kind": "mask", "files": files, "targets": targets},
        references=("dseg.nii.gz",),
        trivial={"kind": "empty_mask"},
        **options,
    )


def _enhancement(**options: Any) -> Task:
    output = {"kind": "image", "file": "enhanced.npy", "shape_of": "input.npy", "data_range": [-1000, 1000]}
    return make_task(
        "enhancement",
        output | options,
        references=("reference.npy",),
        trivial={"kind": "copied_input"},
    )


def _vqa(**options: Any) -> Task:
    output = {"kind": "answer", "file": "answer.json"} | options
    trivial = {"kind": "constant_answer", "value": "no"}
    return make_task("vqa", output, references=("answer.json",), trivial=trivial)


def _report(sets: tuple[str, ...] = ("mlrg7", "obs_rouge"), **options: Any) -> Task:
    return make_task(
        "report",
        {"kind": "report", "file": "report.txt"} | options,
        references=("report.txt",),
        metric={"headline": "report_mean", "secondary": ["meteor", "rouge_l"], "sets": sets},
        trivial={
            "kind": "template_report",
            "value": "The heart is normal and the lungs are clear without effusion.",
        },
    )


def _detection(**options: Any) -> Task:
    output = {
        "kind": "boxes",
        "file": "prediction.json",
        "image": "image.png",
        "classes": ["cell", "dot", "ghost"],
    }
    return make_task("detection", output | options, references=("boxes.json",), trivial={"kind": "no_box"})


def _classification(**options: Any) -> Task:
    output = {"kind": "label", "file": "prediction.json", "classes": ["good", "bad"]}
    trivial = {"kind": "constant_label", "value": "good"}
    return make_task("classification", output, references=("label.json",), trivial=trivial, **options)


def _synthesis(**options: Any) -> Task:
    output = {"kind": "image", "file": "sct.nii.gz", "shape_of": "mr.nii.gz", "data_range": [-1024, 3071]}
    return make_task(
        "synthesis", output, references=("ct.nii.gz",), trivial={"kind": "copied_input"}, **options
    )


_TASKS: dict[str, Callable[..., Task]] = {
    "segmentation": _segmentation,
    "labelmap": _labelmap,
    "enhancement": _enhancement,
    "vqa": _vqa,
    "report": _report,
    "detection": _detection,
    "classification": _classification,
    "synthesis": _synthesis,
}


# --- data; in the third case the lesion is truly absent, the image holds no box ---


def save_nifti(path: Path, data: np.ndarray, affine: np.ndarray = AFFINE) -> None:
    nibabel.save(nibabel.Nifti1Image(data, affine), path)


def _write_segmentation(public: Path, private: Path, number: int) -> None:
    organ = np.zeros(SHAPE, np.uint8)
    organ[4:12, 5:15, 2:8] = 1
    lesion = np.zeros(SHAPE, np.uint8)
    if number != 3:
        lesion[6:10, 7 : 9 + number, 3:6] = 1
    save_nifti(public / "ct.nii.gz", (organ * 100).astype(np.int16))
    save_nifti(private / "organ.nii.gz", organ)
    save_nifti(private / "lesion.nii.gz", lesion)


def _write_labelmap(public: Path, private: Path, number: int) -> None:
    labels = np.zeros(SHAPE, np.uint8)
    labels[2:8, 2:10, 2:8] = 1
    labels[10:16, 2:10, 2:8] = 2
    if number == 1:
        labels[2:8, 12:20, 2:8] = 7
    save_nifti(public / "ct.nii.gz", labels.astype(np.int16))
    save_nifti(private / "dseg.nii.gz", labels)


def _write_enhancement(public: Path, private: Path, number: int) -> None:
    rng = np.random.default_rng(number)
    rows, columns = np.mgrid[0:40, 0:36]
    clean = (300 * np.sin(rows / 5) + 200 * np.cos(columns / (3 + number))).astype(np.float32)
    np.save(private / "reference.npy", clean)
    np.save(public / "input.npy", clean + rng.normal(0, 80, clean.shape).astype(np.float32))


def _write_synthesis(public: Path, private: Path, number: int) -> None:
    rng = np.random.default_rng(number)
    ct = rng.normal(0, 300, (20, 24, 4)).astype(np.float32)
    save_nifti(public / "mr.nii.gz", (ct * 0.5).astype(np.float32))
    save_nifti(private / "ct.nii.gz", ct)


def _write_vqa(public: Path, private: Path, number: int) -> None:
    answer = {1: "No", 2: "left lower lobe", 3: "yes"}[number]
    question = {
        "question_id": f"c{number}",
        "question": "?",
        "image_paths": [],
        "options": ["lung", "heart", "liver"],
    }
    (public / "question.json").write_text(json.dumps(question))
    (private / "answer.json").write_text(json.dumps({"answer": answer}))


def _write_report(public: Path, private: Path, number: int) -> None:
    (public / "manifest.json").write_text("{}")
    finding = {
        1: "There is a left pleural effusion.",
        2: "The heart is enlarged.",
        3: "No pneumothorax is seen.",
    }[number]
    (private / "report.txt").write_text(f"Findings: {finding} The bones are intact and unremarkable.\n")


def _write_detection(public: Path, private: Path, number: int) -> None:
    Image.new("RGB", (64, 48), (200, 190, 190)).save(public / "image.png")
    boxes = [
        {"class": "cell", "x1": 4.0, "y1": 4.0, "x2": 20.0 + number, "y2": 20.0},
        {"class": "dot", "x1": 30.0, "y1": 30.0, "x2": 36.0, "y2": 36.0},
    ]
    (private / "boxes.json").write_text(json.dumps({"boxes": [] if number == 3 else boxes}))


def _write_classification(public: Path, private: Path, number: int) -> None:
    (public / "image.png").write_bytes(b"")
    (private / "label.json").write_text(json.dumps({"label": "bad" if number == 3 else "good"}))


_WRITERS: dict[str, Callable[[Path, Path, int], None]] = {
    "segmentation": _write_segmentation,
    "labelmap": _write_labelmap,
    "enhancement": _write_enhancement,
    "vqa": _write_vqa,
    "report": _write_report,
    "detection": _write_detection,
    "classification": _write_classification,
    "synthesis": _write_synthesis,
}
