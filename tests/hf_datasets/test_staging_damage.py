"""Every damage is one named, one-line StagingError, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image

from hf_datasets.staging import stage


def kits_small(raw: Path) -> None:
    for folder in sorted(raw.glob("case_*"))[3:]:
        shutil.rmtree(folder)


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def swap(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def rewrite(path: Path, change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
    image = nibabel.load(path)
    data, affine = change(np.asarray(image.dataobj).copy(), image.affine.copy())
    nibabel.save(nibabel.Nifti1Image(data, affine), path)


def shrink(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return data[:-1], affine


def widen(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    affine[:3, :3] *= 1.02
    return data, affine


def third_label(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    data[0, 0, 0] = 3
    return data, affine


def nothing_labelled(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(data), affine


def conflicting_header(path: Path) -> None:
    image = nibabel.load(path)
    image.header["pixdim"][1] *= 2
    image.header["sform_code"] = 1
    nibabel.save(image, path)


KITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing label": (
        lambda raw: (raw / "case_00001/segmentation.nii.gz").unlink(),
        "case_00001: expected segmentation",
    ),
    "missing image": (lambda raw: (raw / "case_00001/imaging.nii.gz").unlink(), "expected imaging.nii.gz"),
    "extra file": (
        lambda raw: (raw / "case_00000/prediction.nii.gz").write_bytes(b"x"),
        "unexpected prediction.nii.gz",
    ),
    "other shape": (lambda raw: rewrite(raw / "case_00000/segmentation.nii.gz", shrink), "expected shape"),
    "other spacing": (
        lambda raw: rewrite(raw / "case_00000/segmentation.nii.gz", widen),
        "expected the grid of",
    ),
    "swapped labels": (
        lambda raw: swap(raw / "case_00000/segmentation.nii.gz", raw / "case_00002/segmentation.nii.gz"),
        "expected the grid of",
    ),
    "swapped cases": (lambda raw: swap(raw / "case_00000", raw / "case_00001"), "expected a pixel width of"),
    "truncated image": (lambda raw: cut(raw / "case_00002/imaging.nii.gz"), "not a complete NIfTI"),
    "unknown label": (
        lambda raw: rewrite(raw / "case_00002/segmentation.nii.gz", third_label),
        "labels 0, 1, 2, found",
    ),
    "no kidney": (
        lambda raw: rewrite(raw / "case_00002/segmentation.nii.gz", nothing_labelled),
        "background only",
    ),
    "header against affine": (
        lambda raw: conflicting_header(raw / "case_00001/imaging.nii.gz"),
        "header's voxel sizes",
    ),
    "misnamed case": (lambda raw: (raw / "case_00001").rename(raw / "case_1"), "expected a name such as"),
    "unlisted case": (
        lambda raw: (raw / "case_00001").rename(raw / "case_00100"),
        "expected an entry for case_00100",
    ),
    "no cases": (
        lambda raw: [shutil.rmtree(folder) for folder in raw.glob("case_*")],
        "expected folders case_00000",
    ),
    "index cut short": (lambda raw: cut(raw / "kits.json"), "expected a JSON list"),
}

ORG = "SimNICT-AMOS-Sample/test_nii_files/org"


def four_dimensional(path: Path) -> None:
    image = nibabel.load(path)
    nibabel.save(nibabel.Nifti1Image(np.stack([np.asarray(image.dataobj)] * 2, axis=-1), image.affine), path)


SIMNICT: dict[str, tuple[Callable[[Path], object], str]] = {
    "no org folder": (lambda raw: (raw / ORG).rename(raw / "LDCT_High"), "expected a folder org/"),
    "empty folder": (lambda raw: [path.unlink() for path in (raw / ORG).iterdir()], "found an empty folder"),
    "extra file": (lambda raw: (raw / ORG / "volumes.zip").write_bytes(b"x"), "unexpected volumes.zip"),
    "other shape": (
        lambda raw: rewrite(raw / ORG / "2.nii.gz", lambda d, a: (d[:-9], a)),
        "square axial slices",
    ),
    "four dimensions": (lambda raw: four_dimensional(raw / ORG / "3.nii.gz"), "expected a 3-D volume"),
    "shifted units": (
        lambda raw: rewrite(raw / ORG / "4.nii.gz", lambda d, a: (d + 1024, a)),
        "Hounsfield units",
    ),
    "one volume twice": (
        lambda raw: shutil.copy(raw / ORG / "1.nii.gz", raw / ORG / "9.nii.gz"),
        "the same volume as",
    ),
    "truncated volume": (lambda raw: cut(raw / ORG / "5.nii.gz"), "not a complete NIfTI"),
}

QUESTIONS, PICTURES = "VQA_RAD Dataset Public.json", "VQA_RAD Image Folder"


def edit_questions(raw: Path, change: Callable[[list[dict[str, object]]], object]) -> None:
    records = json.loads((raw / QUESTIONS).read_text())
    change(records)
    (raw / QUESTIONS).write_text(json.dumps(records))


def first_picture(raw: Path) -> Path:
    tested = [r for r in json.loads((raw / QUESTIONS).read_text()) if r["phrase_type"].startswith("test")]
    return raw / PICTURES / tested[0]["image_name"]


VQA: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing picture": (lambda raw: first_picture(raw).unlink(), "expected the pictures that questions name"),
    "missing folder": (lambda raw: shutil.rmtree(raw / PICTURES), "expected the pictures here"),
    "extra file": (lambda raw: (raw / PICTURES / "answers.csv").write_text("x"), "unexpected answers.csv"),
    "truncated list": (lambda raw: cut(raw / QUESTIONS), "not complete JSON"),
    "repeated id": (
        lambda raw: edit_questions(raw, lambda rs: [r.update(qid=7) for r in rs]),
        "each question id once",
    ),
    "no answer": (
        lambda raw: edit_questions(raw, lambda rs: [r.update(answer=" ") for r in rs]),
        "expected a text as answer",
    ),
    "truncated picture": (lambda raw: cut(first_picture(raw)), "not a complete picture"),
    "no test part": (
        lambda raw: edit_questions(raw, lambda rs: [r.update(phrase_type="freeform") for r in rs]),
        "expected questions with phrase_type",
    ),
    "nothing of it": (lambda raw: (raw / QUESTIONS).unlink(), "expected 'VQA_RAD Dataset Public.json' or"),
}


def reports(raw: Path) -> list[Path]:
    return sorted((raw / "ecgen-radiology").iterdir())


def pictures(raw: Path) -> list[Path]:
    return sorted((raw / "NLMCXR_png").iterdir())


def steal_image(raw: Path) -> None:
    first, second = reports(raw)[:2]
    text = first.read_text()
    foreign = second.read_text().split('parentImage id="')[1].split('"')[0]
    own = text.split('parentImage id="')[1].split('"')[0]
    first.write_text(text.replace(own, foreign))


OPENI: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing picture": (lambda raw: pictures(raw)[0].unlink(), "names image"),
    "missing folder": (lambda raw: shutil.rmtree(raw / "NLMCXR_png"), "expected NLMCXR_png/"),
    "extra file": (
        lambda raw: (raw / "ecgen-radiology" / "index.html").write_text("x"),
        "unexpected index.html",
    ),
    "truncated report": (lambda raw: cut(reports(raw)[2]), "not well-formed XML"),
    "swapped reports": (lambda raw: swap(*reports(raw)[:2]), "is the file misnamed"),
    "another study's image": (steal_image, "expected images named"),
    "truncated picture": (lambda raw: cut(pictures(raw)[3]), "not a complete picture"),
    "no reports": (lambda raw: [path.unlink() for path in reports(raw)], "found none in 0 files"),
}


def in_test_split(raw: Path) -> str:
    return (raw / "ImageSets/Main/test.txt").read_text().split()[0]


def edit_annotation(raw: Path, old: str, new: str) -> None:
    path = raw / "Annotations" / f"{in_test_split(raw)}.xml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def swap_annotations(raw: Path) -> None:
    first, second = (raw / "ImageSets/Main/test.txt").read_text().split()[:2]
    swap(raw / "Annotations" / f"{first}.xml", raw / "Annotations" / f"{second}.xml")


def halve_picture(raw: Path) -> None:
    path = raw / "JPEGImages" / f"{in_test_split(raw)}.jpg"
    with Image.open(path) as image:
        image.resize((160, 120)).save(path)


BCCD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing label": (
        lambda raw: (raw / "Annotations" / f"{in_test_split(raw)}.xml").unlink(),
        "found only one of the two for",
    ),
    "extra picture": (
        lambda raw: (raw / "JPEGImages" / "extra.jpg").write_bytes(b"x"),
        "only one of the two for extra",
    ),
    "wrong size": (halve_picture, "expected the size of"),
    "swapped ids": (swap_annotations, "expected filename"),
    "truncated picture": (
        lambda raw: cut(raw / "JPEGImages" / f"{in_test_split(raw)}.jpg", 0.3),
        "not a complete picture",
    ),
    "truncated annotation": (
        lambda raw: cut(raw / "Annotations" / f"{in_test_split(raw)}.xml"),
        "not well-formed XML",
    ),
    "unknown class": (
        lambda raw: edit_annotation(raw, "<name>RBC", "<name>Parasite"),
        "found class 'Parasite'",
    ),
    "box without a side": (lambda raw: edit_annotation(raw, "xmax>", "right>"), "expected four numbers"),
    "no split": (
        lambda raw: (raw / "ImageSets/Main/test.txt").unlink(),
        "expected the list of the test split",
    ),
    "unknown name in split": (
        lambda raw: (raw / "ImageSets/Main/test.txt").write_text("BloodImage_99999\n"),
        "not there",
    ),
}

DAMAGES = [
    pytest.param(task_id, damage, words, id=f"{task_id.split('-')[0]}: {name}")
    for task_id, damages in (
        ("kidney-seg-task", KITS),
        ("ldct-denoising-task", SIMNICT),
        ("vqa-rad-task", VQA),
        ("iu-xray-report-task", OPENI),
        ("bccd-det-task", BCCD),
    )
    for name, (damage, words) in damages.items()
]


@pytest.mark.parametrize(("task_id", "damage", "words"), DAMAGES)
def test_damaged_source(task_id, damage, words, raw_copy, tmp_path, staging_refusal):
    raw = raw_copy(task_id)
    if task_id == "kidney-seg-task":
        kits_small(raw)
    damage(raw)
    assert words in staging_refusal(task_id, raw, tmp_path / "data")
    assert [
        path.name for path in (tmp_path / "data").glob("phantom/*") if not path.name.endswith(".lock")
    ] == []


def test_unlabelled_test_part_of_kits_is_passed_over(raw_copy, tmp_path):
    raw = raw_copy("kidney-seg-task")
    kits_small(raw)
    (raw / "case_00210").mkdir()
    shutil.copy(raw / "case_00000/imaging.nii.gz", raw / "case_00210/imaging.nii.gz")
    manifest = stage("kidney-seg-task", raw, tmp_path / "data", release="phantom")
    assert sorted(case.origin for case in manifest.cases) == ["case_00000", "case_00001", "case_00002"]


def test_studies_without_image_or_text_are_left_out(raw_copy, tmp_path):
    raw = raw_copy("iu-xray-report-task")
    first, second = reports(raw)[:2]
    first.write_text(first.read_text().replace("parentImage", "otherImage"))
    second.write_text(second.read_text().replace('"FINDINGS"', '"OTHER"').replace('"IMPRESSION"', '"NOTE"'))
    manifest = stage("iu-xray-report-task", raw, tmp_path / "data", release="phantom")
    assert len(manifest.cases) == 6
    assert not {f"CXR{first.stem}", f"CXR{second.stem}"} & {case.origin for case in manifest.cases}
