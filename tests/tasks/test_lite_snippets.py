"""The Lite tier's snippets run on data of the task's form; blocks that need weights are only compiled."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import numpy.fft
import pytest
import scipy.interpolate
import scipy.ndimage
from PIL import Image

from tasks.brief import render
from tasks.contract import output_example
from tasks.registry import all_tasks, load_task
from tasks.schema import Release, Task, Tier

CASES = ("k3f9", "w7q2")
LOADED_FOR_GOOD = (numpy.fft, scipy.interpolate, scipy.ndimage)
"""A test puts `sys.modules` back, but these hold extensions that load only once a process."""


def blocks(task: Task) -> list[tuple[str, str]]:
    """(fence line, code) of every Python block of the Lite brief."""
    text = render(task, Tier.LITE, release=Release.PHANTOM, n_cases=len(CASES)).text
    return re.findall(r"^```(python[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def ct(folder: Path, rng: np.random.Generator) -> None:
    volume = rng.normal(40, 20, (16, 18, 6)).astype(np.int16)
    nib.save(nib.Nifti1Image(volume, np.diag([-0.8, 0.8, 5.0, 1.0])), folder / "ct.nii.gz")


def cardiac_mr(folder: Path, rng: np.random.Generator) -> None:
    volume = rng.gamma(2, 90, (16, 18, 6)).astype(np.int16)
    nib.save(nib.Nifti1Image(volume, np.diag([1.25, 1.25, 1.4, 1.0])), folder / "mri.nii.gz")


def prostate_mr(folder: Path, rng: np.random.Generator) -> None:
    both = rng.gamma(2, 90, (16, 18, 6, 2)).astype(np.int16)
    nib.save(nib.Nifti1Image(both, np.diag([0.6, 0.6, 3.6, 1.0])), folder / "mri.nii.gz")


def fetal_mr(folder: Path, rng: np.random.Generator) -> None:
    volume = rng.normal(400, 90, (14, 15, 13)).astype(np.float32)
    nib.save(nib.Nifti1Image(volume, np.diag([0.8, 0.8, 0.8, 1.0])), folder / "t2w.nii.gz")


def abdominal_mr(folder: Path, rng: np.random.Generator) -> None:
    volume = rng.integers(0, 900, (16, 14, 6)).astype(np.int16)
    nib.save(nib.Nifti1Image(volume, np.diag([-1.2, -1.2, 3.0, 1.0])), folder / "mri.nii.gz")


def slice_of_ct(folder: Path, rng: np.random.Generator) -> None:
    np.save(folder / "input.npy", rng.normal(40, 60, (64, 64)).astype(np.float32))


def question(folder: Path, rng: np.random.Generator) -> None:
    Image.fromarray(rng.integers(0, 255, (32, 32), dtype=np.uint8)).save(folder / "image.jpg")
    asked = {"question_id": folder.name, "question": "Which plane is this?", "image_paths": ["image.jpg"]}
    (folder / "question.json").write_text(json.dumps(asked))


def choice(folder: Path, rng: np.random.Generator) -> None:
    names = ["image_1.png", "image_2.png"]
    for name in names:
        Image.fromarray(rng.integers(0, 255, (32, 32), dtype=np.uint8)).save(folder / name)
    asked = {"question_id": folder.name, "question": "Which plane is this?", "image_paths": names}
    (folder / "question.json").write_text(json.dumps(asked | {"options": {"A": "coronal", "B": "axial"}}))


def study(folder: Path, rng: np.random.Generator) -> None:
    (folder / "images").mkdir()
    Image.fromarray(rng.integers(0, 255, (32, 32), dtype=np.uint8)).save(folder / "images/01.jpg")
    (folder / "manifest.json").write_text(
        json.dumps({"case_id": folder.name, "image_files": ["images/01.jpg"]})
    )


def smear(folder: Path, rng: np.random.Generator) -> None:
    Image.fromarray(rng.integers(0, 255, (180, 260, 3), dtype=np.uint8)).save(folder / "image.png")


def unit_slice(folder: Path, rng: np.random.Generator) -> None:
    np.save(folder / "input.npy", rng.normal(0.4, 0.1, (48, 40)).astype(np.float32))


def thick_ct(folder: Path, rng: np.random.Generator) -> None:
    volume = rng.normal(40, 20, (16, 18, 16)).astype(np.int16)
    nib.save(nib.Nifti1Image(volume, np.diag([-0.8, 0.8, 5.0, 1.0])), folder / "ct.nii.gz")


def head_mr(folder: Path, rng: np.random.Generator) -> None:
    affine = np.diag([-1.0, -1.0, 3.0, 1.0])
    mask = np.zeros((20, 22, 8), np.uint8)
    mask[4:-4, 4:-4] = 1
    signal = rng.gamma(2, 150, mask.shape) * mask
    nib.save(nib.Nifti1Image(signal.astype(np.int16), affine), folder / "mr.nii.gz")
    nib.save(nib.Nifti1Image(mask, affine), folder / "mask.nii.gz")


def single_picture(folder: Path, rng: np.random.Generator) -> None:
    Image.fromarray(rng.integers(0, 255, (96, 96, 3), dtype=np.uint8)).save(folder / "image.jpg")


INPUTS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "kidney-seg-task": ct,
    "aeropath-seg-task": ct,
    "tsg-multiorgan-seg-task": ct,
    "feta-seg-task": fetal_mr,
    "panther-t1-seg-task": abdominal_mr,
    "panther-t2-seg-task": abdominal_mr,
    "pancreas-seg-task": ct,
    "pancreas-oar-seg-task": ct,
    "liver-seg-task": ct,
    "colon-seg-task": ct,
    "hepaticvessel-seg-task": ct,
    "spleen-seg-task": ct,
    "heart-seg-task": cardiac_mr,
    "prostate-seg-task": prostate_mr,
    "ldct-denoising-task": slice_of_ct,
    "lidc-idri-denoising-task": unit_slice,
    "deeplesion-denoising-task": unit_slice,
    "mri-sr-task": unit_slice,
    "brats-t1c-sr-task": unit_slice,
    "ixi-t1-sr-task": unit_slice,
    "nih-cxr-sr-task": unit_slice,
    "synthrad2025-mrct-task": head_mr,
    "ctorg-ctsr-task": thick_ct,
    "msd-pancreas-ctsr-task": thick_ct,
    "totalsegmentator-ctsr-task": thick_ct,
    "vqa-rad-task": question,
    "pathvqa-task": question,
    "slake-task": question,
    "vqa-kvasir-task": question,
    "medframeqa-task": choice,
    "medxpertqa-mm-task": choice,
    "vqa-omnimedvqa-task": choice,
    "vqa-pmc-vqa-task": choice,
    "vqa-mmmu-medical-task": choice,
    "braintumor-cls-task": single_picture,
    "crc-histology-cls-task": single_picture,
    "patchcamelyon-cls-task": single_picture,
    "chest-xray-pneumonia-cls-task": single_picture,
    "skin-lesion-cls-task": single_picture,
    "iu-xray-report-task": study,
    "mimic-cxr-report-task": study,
    "chexpert-plus-cxr-task": study,
    "pathology-caption-100-task": study,
    "pathology-caption-500-task": study,
    "bccd-det-task": smear,
    "vindr-cxr-det-task": smear,
    "dentex-det-task": smear,
    "grazpedwri-det-task": smear,
}


@pytest.mark.parametrize("task_id", INPUTS)
def test_snippets_run(
    task_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = load_task(task_id)
    public, workspace = tmp_path / "public", tmp_path / "workspace"
    rng = np.random.default_rng(7)
    for case in CASES:
        (public / case).mkdir(parents=True)
        INPUTS[task_id](public / case, rng)
        for path, content in output_example(task, case).items():
            if path.endswith((".json", ".txt")):
                (workspace / path).parent.mkdir(parents=True)
                (workspace / path).write_text(content)
    workspace.mkdir(exist_ok=True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    plain = [code for fence, code in blocks(task) if fence == "python"]
    assert len(plain) >= 2
    for code in plain:
        exec(
            compile(
                code.replace("/data/public", str(public)).replace("/workspace", str(workspace)),
                task_id,
                "exec",
            ),
            {"__name__": "__main__"},
        )
        assert capsys.readouterr().out.strip(), "a snippet shows what it found"
    pilot = workspace / "outputs" / CASES[0]
    assert all((pilot / name).is_file() for name in task.output.filenames)


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.id)
def test_weight_blocks_stand_apart_and_compile(task: Task) -> None:
    weights = [code for fence, code in blocks(task) if fence != "python"]
    assert {fence for fence, _ in blocks(task)} == {"python", "python title=weights"}
    for code in weights:
        compile(code, task.id, "exec")
    for fence, code in blocks(task):
        assert ("torch" in code or "ultralytics" in code) == (fence == "python title=weights")


def test_a_check_finds_a_broken_output(tmp_path: Path) -> None:
    task = load_task("bccd-det-task")
    smear_folder = tmp_path / "public" / CASES[0]
    smear_folder.mkdir(parents=True)
    smear(smear_folder, np.random.default_rng(1))
    output = tmp_path / "workspace/outputs" / CASES[0] / "prediction.json"
    output.parent.mkdir(parents=True)
    output.write_text(json.dumps({"boxes": [{"class": "RBC", "x1": 0, "y1": 0, "x2": 5, "y2": 5}]}))
    check = (
        blocks(task)[-1][1]
        .replace("/data/public", str(tmp_path / "public"))
        .replace("/workspace", str(tmp_path / "workspace"))
    )
    with pytest.raises(AssertionError):
        exec(compile(check, task.id, "exec"), {"__name__": "__main__"})
