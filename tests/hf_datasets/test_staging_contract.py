from __future__ import annotations

import gzip
import hashlib
import json

import nibabel
import numpy as np
import pytest
from PIL import Image

from hf_datasets.families import FAMILIES
from hf_datasets.folders import EPOCH
from hf_datasets.staging import plan, stage
from tasks.registry import load_task

CASES = {
    "mimic-cxr-report-task": 8,
    "chexpert-plus-cxr-task": 8,
    "pathology-caption-100-task": 12,
    "pathology-caption-500-task": 24,
    "braintumor-cls-task": 22,
    "crc-histology-cls-task": 28,
    "chest-xray-pneumonia-cls-task": 18,
    "patchcamelyon-cls-task": 22,
    "skin-lesion-cls-task": 26,
    "kidney-seg-task": 6,
    "pancreas-seg-task": 6,
    "pancreas-oar-seg-task": 5,
    "liver-seg-task": 6,
    "colon-seg-task": 5,
    "hepaticvessel-seg-task": 5,
    "spleen-seg-task": 6,
    "heart-seg-task": 5,
    "prostate-seg-task": 6,
    "ldct-denoising-task": 6,
    "mri-sr-task": 6,
    "brats-t1c-sr-task": 6,
    "ixi-t1-sr-task": 6,
    "nih-cxr-sr-task": 7,
    "lidc-idri-denoising-task": 6,
    "deeplesion-denoising-task": 6,
    "synthrad2025-mrct-task": 5,
    "ctorg-ctsr-task": 5,
    "msd-pancreas-ctsr-task": 6,
    "totalsegmentator-ctsr-task": 5,
    "vqa-rad-task": 31,
    "pathvqa-task": 22,
    "slake-task": 30,
    "medframeqa-task": 24,
    "medxpertqa-mm-task": 27,
    "vqa-kvasir-task": 24,
    "vqa-omnimedvqa-task": 28,
    "vqa-pmc-vqa-task": 24,
    "vqa-mmmu-medical-task": 29,
    "iu-xray-report-task": 8,
    "bccd-det-task": 8,
    "vindr-cxr-det-task": 9,
    "dentex-det-task": 8,
    "grazpedwri-det-task": 8,
    "aeropath-seg-task": 5,
    "tsg-multiorgan-seg-task": 5,
    "feta-seg-task": 6,
    "panther-t1-seg-task": 6,
    "panther-t2-seg-task": 6,
}


@pytest.mark.parametrize("task_id", FAMILIES)
def test_manifest_describes_every_file_truly(task_id, staged_root, manifest_of):
    folder, manifest = staged_root / task_id, manifest_of(task_id)
    assert len(manifest.cases) == CASES[task_id]
    listed = set()
    for case in manifest.cases:
        for side, entries in (("public", case.public), ("private", case.private)):
            for entry in entries:
                content = (folder / side / entry.path).read_bytes()
                assert entry.path.startswith(f"{case.id}/")
                assert entry.bytes == len(content)
                assert entry.sha256 == hashlib.sha256(content).hexdigest()
                assert (entry.shape is None) == entry.path.endswith((".json", ".txt"))
                listed.add(f"{side}/{entry.path}")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == listed | {"manifest.json"}


@pytest.mark.parametrize("task_id", FAMILIES)
def test_every_case_has_the_files_the_task_declares(task_id, staged_root, manifest_of):
    task = load_task(task_id)
    for case in manifest_of(task_id).cases:
        for declared in task.inputs:
            if task_id == "vqa-rad-task" and declared.name not in ("question.json", "image.png"):
                continue
            assert list((staged_root / task_id / "public" / case.id).glob(declared.name)), declared.name
        for reference in task.references:
            assert (staged_root / task_id / "private" / case.id / reference).is_file()


@pytest.mark.parametrize("task_id", FAMILIES)
def test_terms_of_a_phantom_are_the_projects_own(task_id, manifest_of):
    manifest = manifest_of(task_id)
    assert manifest.license.startswith("MIT")
    assert manifest.redistribution == "allowed"
    assert manifest.source.startswith("phantom in the layout of")
    assert manifest.provenance["phantom_seed"] == "0"
    assert len(manifest.provenance["source_digest"]) == 64


@pytest.mark.parametrize("task_id", FAMILIES)
def test_modes_and_times_tell_nothing(task_id, staged_root):
    for path in (staged_root / task_id).rglob("*"):
        status = path.stat()
        assert oct(status.st_mode & 0o777) == ("0o755" if path.is_dir() else "0o644")
        assert status.st_mtime == EPOCH


@pytest.mark.parametrize("task_id", FAMILIES)
def test_ids_are_random_and_carry_no_order(task_id, raw_phantoms, tmp_path):
    orders = []
    for seed in range(4):
        chosen = plan(task_id, raw_phantoms / task_id, tmp_path, release="phantom", seed=seed)
        ids = [case_id for case_id, _ in chosen.cases]
        assert ids == sorted(set(ids))
        assert all(len(case_id) == 13 and case_id.startswith("case-") for case_id in ids)
        orders.append([case.origin for _, case in chosen.cases])
    assert len({tuple(order) for order in orders}) == 4
    assert sorted(orders[0]) not in orders
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task_id", FAMILIES)
def test_upstream_ids_do_not_reach_the_public_side(task_id, staged_root, manifest_of):
    for case in manifest_of(task_id).cases:
        stem = case.origin.rsplit("/", 1)[-1]
        for path in (staged_root / task_id / "public" / case.id).rglob("*.json"):
            assert len(stem) < 3 or stem not in path.read_text()


def test_pictures_carry_pixels_only(staged_root):
    for path in [*staged_root.rglob("*.png"), *staged_root.rglob("*.jpg")]:
        with Image.open(path) as image:
            allowed = (
                {"jfif", "jfif_version", "jfif_unit", "jfif_density"} if path.suffix == ".jpg" else set()
            )
            assert set(image.info) <= allowed
            assert not image.getexif()


def test_nifti_headers_are_clean(staged_root):
    for path in staged_root.rglob("*.nii.gz"):
        image = nibabel.load(path)
        for field in ("descrip", "aux_file", "intent_name", "db_name"):
            assert bytes(image.header[field]).strip(b"\0") == b"", field
        assert len(image.header.extensions) == 0
        assert (int(image.header["sform_code"]), int(image.header["qform_code"])) == (1, 1)
        assert np.allclose(image.get_qform(), image.get_sform(), atol=1e-3)
        with gzip.open(path) as stream:
            stream.read(1)
            assert stream.mtime == 0


def test_kidney_masks(raw_phantoms, staged_root, manifest_of):
    for case in manifest_of("kidney-seg-task").cases:
        raw = raw_phantoms / "kidney-seg-task" / case.origin
        scan = nibabel.load(staged_root / "kidney-seg-task" / "public" / case.id / "ct.nii.gz")
        upstream = nibabel.load(raw / "imaging.nii.gz")
        labels = np.asarray(nibabel.load(raw / "segmentation.nii.gz").dataobj)
        assert np.array_equal(scan.dataobj, upstream.dataobj)
        assert np.allclose(scan.affine, upstream.affine, atol=1e-4)
        for name, truth in (("organ", labels > 0), ("lesion", labels == 2)):
            mask = nibabel.load(staged_root / "kidney-seg-task" / "private" / case.id / f"{name}.nii.gz")
            assert mask.get_data_dtype() == np.uint8
            assert np.array_equal(np.asarray(mask.dataobj), truth.astype(np.uint8))
            assert np.allclose(mask.affine, scan.affine)


def test_ldct_pairs(staged_root, manifest_of):
    for case in manifest_of("ldct-denoising-task").cases:
        given = np.load(staged_root / "ldct-denoising-task" / "public" / case.id / "input.npy")
        truth = np.load(staged_root / "ldct-denoising-task" / "private" / case.id / "reference.npy")
        assert given.dtype == truth.dtype == np.float32
        assert given.shape == truth.shape == (256, 256)
        assert truth.min() >= -1024
        assert 30 < np.std(given - truth) < 120
        assert abs(np.mean(given - truth)) < 8


def test_vqa_answers_and_real_images(staged_root, manifest_of):
    manifest = manifest_of("vqa-rad-task")
    kinds = set()
    for case in manifest.cases:
        public, private = (staged_root / "vqa-rad-task" / side / case.id for side in ("public", "private"))
        asked, answered = (
            json.loads((public / "question.json").read_text()),
            json.loads((private / "answer.json").read_text()),
        )
        assert set(asked) == {"question_id", "question", "image_paths"}
        assert asked["question_id"] == answered["question_id"] == case.id
        assert (public / asked["image_paths"][0]).is_file()
        assert (answered["answer_type"] == "closed") == (answered["answer"].lower() in ("yes", "no"))
        kinds.add(answered["answer_type"])
    assert kinds == {"open", "closed"}
    assert 4 <= sum(case.real for case in manifest.cases) < len(manifest.cases)
    assert sum(key.startswith("real:") for key in manifest.provenance) == 4


def test_iu_xray_studies(staged_root, manifest_of):
    views = set()
    for case in manifest_of("iu-xray-report-task").cases:
        public, private = (
            staged_root / "iu-xray-report-task" / side / case.id for side in ("public", "private")
        )
        listed = json.loads((public / "manifest.json").read_text())
        assert listed == {
            "case_id": case.id,
            "image_files": [f"images/{n}.jpg" for n in range(len(listed["image_files"]))],
        }
        assert sorted(path.name for path in (public / "images").iterdir()) == [
            f"{n}.jpg" for n in range(len(listed["image_files"]))
        ]
        views.add(len(listed["image_files"]))
        report = (private / "report.txt").read_text()
        assert "XX" not in report
        assert len(report) >= 40
        labels = json.loads((private / "labels.json").read_text())
        assert labels["mesh"]
        assert labels["sections"]["findings"] in report
        assert set(labels["observations"].values()) <= {"present", "absent", "uncertain"}
    assert views == {1, 2}


def test_bccd_boxes(staged_root, manifest_of):
    classes = load_task("bccd-det-task").output.classes
    for case in manifest_of("bccd-det-task").cases:
        boxes = json.loads((staged_root / "bccd-det-task" / "private" / case.id / "boxes.json").read_text())[
            "boxes"
        ]
        assert boxes
        for box in boxes:
            assert box["class"] in classes
            assert 0 <= box["x1"] < box["x2"] <= 320
            assert 0 <= box["y1"] < box["y2"] <= 240


def test_degenerate_boxes_are_dropped_and_long_ones_cut(raw_copy, tmp_path):
    raw = raw_copy("bccd-det-task")
    name = (raw / "ImageSets" / "Main" / "test.txt").read_text().split()[0]
    path = raw / "Annotations" / f"{name}.xml"
    corners = "".join(f"<{tag}>{{}}</{tag}>" for tag in ("xmin", "ymin", "xmax", "ymax"))
    box = f"<object><name>RBC</name><bndbox>{corners}</bndbox></object>"
    extra = (
        box.format(310, 200, 999, 999)
        + box.format(50, 50, 50, 90)
        + box.format(80, 80, 20, 90)
        + box.format(-30, 10, 0.5, 90)
    )
    path.write_text(path.read_text().replace("</annotation>", extra + "</annotation>"))
    before = path.read_text().count("<object>") - 4
    manifest = stage("bccd-det-task", raw, tmp_path / "data", release="phantom")
    (case,) = [case for case in manifest.cases if case.origin == name]
    staged = json.loads(
        (tmp_path / "data/phantom/bccd-det-task/private" / case.id / "boxes.json").read_text()
    )["boxes"]
    assert len(staged) == before + 1
    assert {"class": "rbc", "x1": 310.0, "y1": 200.0, "x2": 320.0, "y2": 240.0} in staged
