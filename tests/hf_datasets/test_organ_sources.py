"""PanTS and the Decathlon: what is drawn, what is staged from folder or tar, and what is refused."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
import pytest
from scipy import ndimage

from hf_datasets.phantoms import make_phantom
from hf_datasets.phantoms.msd import PANCREAS
from hf_datasets.phantoms.pants import SCANS
from hf_datasets.staging import StagingError, stage
from hf_datasets.staging.decathlon import labelled_scans
from hf_datasets.staging.msd import TASKS
from hf_datasets.staging.pants import STRUCTURES, TARGETS
from tasks.manifest import load_manifest
from tasks.registry import load_task

TUMOUR, ORGANS = "pancreas-seg-task", "pancreas-oar-seg-task"
FOLDERS = {task_id: task.folder for task_id, task in TASKS.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str], Path]:
    """The raw phantom of a task, made once and never written to."""
    root = tmp_path_factory.mktemp("raw")
    return lambda task_id: make_phantom(task_id, root / task_id)


@pytest.fixture
def copied(made, tmp_path) -> Callable[[str], Path]:
    """A copy that a test may damage; a Decathlon task comes unpacked."""

    def copy(task_id: str, *, unpacked: bool = True) -> Path:
        raw = Path(shutil.copytree(made(task_id), tmp_path / "copy"))
        if unpacked and task_id in FOLDERS:
            archive = raw / f"{FOLDERS[task_id]}.tar"
            with tarfile.open(archive) as tar:
                tar.extractall(raw, filter="data")
            archive.unlink()
        return raw

    return copy


def volume(path: Path) -> np.ndarray:
    return np.asarray(nibabel.load(path).dataobj)


def scan_names(root: Path, part: str = "imagesTr") -> list[str]:
    return sorted(path.name for path in (root / part).iterdir() if not path.name.startswith("."))


# --- phantoms ---


def test_pants_layout_and_sides(made) -> None:
    raw = made(ORGANS)
    cases = sorted((raw / "ImageTr").iterdir())
    assert [case.name for case in cases] == [f"PanTS_{n:08d}" for n in range(1, SCANS[ORGANS].cases + 1)]
    with_lesion = 0
    for case in cases:
        folder = raw / "LabelTr" / case.name / "segmentations"
        assert {path.name for path in folder.iterdir()} == {f"{name}.nii.gz" for name in STRUCTURES}
        scan = nibabel.load(case / "ct.nii.gz")
        hu, to_mm = volume(case / "ct.nii.gz"), scan.affine
        masks = {name: volume(folder / f"{name}.nii.gz") > 0 for name in STRUCTURES}
        centre = {
            name: to_mm[:3, :3] @ np.array(ndimage.center_of_mass(mask)) + to_mm[:3, 3]
            for name, mask in masks.items()
            if mask.any()
        }
        for pair in ("kidney", "lung", "femur", "adrenal_gland"):
            assert centre[f"{pair}_right"][0] > centre[f"{pair}_left"][0] + 20, pair
        assert centre["liver"][0] > centre["spleen"][0] + 100
        assert centre["lung_left"][2] > centre["liver"][2] > centre["bladder"][2] > centre["femur_left"][2]
        assert np.median(hu[masks["lung_left"]]) < -700
        assert np.median(hu[masks["aorta"]]) > np.median(hu[masks["liver"]]) + 15
        parts = masks["pancreas_head"] | masks["pancreas_body"] | masks["pancreas_tail"]
        assert (parts <= masks["pancreas"]).all()
        assert (masks["pancreatic_lesion"] <= masks["pancreas"]).all()
        with_lesion += bool(masks["pancreatic_lesion"].any())
    assert with_lesion == SCANS[ORGANS].with_lesion


@pytest.mark.parametrize("task_id", FOLDERS)
def test_decathlon_tar_has_upstreams_form(made, task_id) -> None:
    (archive,) = (path for path in made(task_id).iterdir() if path.suffix == ".tar")
    assert archive.name == f"{FOLDERS[task_id]}.tar"
    with tarfile.open(archive) as tar:
        index = json.load(tar.extractfile(f"{FOLDERS[task_id]}/dataset.json"))
        names = [member.name for member in tar if not Path(member.name).name.startswith("._")]
    assert any(name.startswith(f"{FOLDERS[task_id]}/imagesTs/") for name in names)
    assert index["numTraining"] == len(index["training"]) == len([n for n in names if "/labelsTr/" in n])


def test_lesions_can_be_read_from_the_image(made, tmp_path) -> None:
    """Where a liver has a lesion it is darker than the liver; some livers have none."""
    counts = []
    for scan in labelled_scans(made("liver-seg-task"), "Task03_Liver", "liver", (0, 1, 2)):
        image, labels = scan.read()
        inside = ndimage.binary_erosion(labels.data == 2)
        counts.append(int((labels.data == 2).sum()))
        if inside.sum() > 30:
            assert np.median(image.data[inside]) < np.median(image.data[labels.data == 1]) - 25
    assert 0 in counts
    assert max(counts) > 100


# --- staging ---


@pytest.mark.parametrize("task_id", [TUMOUR, ORGANS, *FOLDERS])
def test_staged_files_and_labels_fit_the_task(made, tmp_path, task_id) -> None:
    task = load_task(task_id)
    stage(task_id, made(task_id), tmp_path, release="phantom")
    folder = tmp_path / "phantom" / task_id
    seen = {name: set() for name in task.output.filenames}
    for case in load_manifest(folder).cases:
        scan = nibabel.load(folder / "public" / case.id / task.inputs[0].name)
        for file in task.output.files:
            mask = nibabel.load(folder / "private" / case.id / file.name)
            assert mask.shape == scan.shape[:3]
            assert np.allclose(mask.affine, scan.affine)
            assert mask.get_data_dtype() == np.uint8
            seen[file.name] |= set(np.unique(volume(folder / "private" / case.id / file.name)).tolist())
    for file in task.output.files:
        assert seen[file.name] == set(file.labels), "every label occurs in some case"


def test_organ_and_lesion_are_upstreams_masks(made, tmp_path) -> None:
    raw = made(TUMOUR)
    manifest = stage(TUMOUR, raw, tmp_path, release="phantom")
    for case in manifest.cases:
        masks = raw / "LabelTr" / case.origin / "segmentations"
        pancreas, lesion = (volume(masks / f"{name}.nii.gz") for name in ("pancreas", "pancreatic_lesion"))
        private = tmp_path / "phantom" / TUMOUR / "private" / case.id
        assert np.array_equal(volume(private / "organ.nii.gz"), (pancreas | lesion))
        assert np.array_equal(volume(private / "lesion.nii.gz"), lesion)


def test_where_masks_overlap_the_lesion_counts(copied, tmp_path) -> None:
    raw = copied(ORGANS)
    manifest = stage(ORGANS, raw, tmp_path, release="phantom")
    for case in manifest.cases:
        masks = raw / "LabelTr" / case.origin / "segmentations"
        labels = volume(tmp_path / "phantom" / ORGANS / "private" / case.id / "dseg.nii.gz")
        lesion = volume(masks / "pancreatic_lesion.nii.gz") > 0
        assert np.array_equal(labels == TARGETS["pancreatic_lesion"], lesion)
        pancreas = volume(masks / "pancreas.nii.gz") > 0
        assert np.array_equal(labels == TARGETS["pancreas"], pancreas & ~lesion)


@pytest.mark.parametrize("task_id", ["prostate-seg-task", "liver-seg-task"])
def test_tar_and_folder_give_the_same_cases(made, copied, tmp_path, task_id, tree_digest) -> None:
    stage(task_id, made(task_id), tmp_path / "tar", release="phantom")
    stage(task_id, copied(task_id), tmp_path / "folder", release="phantom")
    for side in ("public", "private"):
        first, second = (
            tree_digest(tmp_path / name / "phantom" / task_id / side) for name in ("tar", "folder")
        )
        assert first == second


def test_the_task_folder_itself_is_a_source_too(copied) -> None:
    raw = copied("spleen-seg-task")
    assert len(labelled_scans(raw / "Task09_Spleen", "Task09_Spleen", "spleen", (0, 1))) == 6


def test_both_channels_of_the_prostate_stay(made, tmp_path) -> None:
    manifest = stage("prostate-seg-task", made("prostate-seg-task"), tmp_path, release="phantom")
    for case in manifest.cases:
        scan = volume(tmp_path / "phantom/prostate-seg-task/public" / case.id / "mri.nii.gz")
        assert scan.ndim == 4
        assert scan.shape[3] == 2
        assert np.median(scan[..., 1]) != np.median(scan[..., 0])


def test_task07_serves_other_tasks(tmp_path) -> None:
    PANCREAS.generate(tmp_path, 3)
    scans = labelled_scans(tmp_path, "Task07_Pancreas", "pancreas", (0, 1, 2))
    image, labels = scans[0].read()
    assert len(scans) == PANCREAS.cases
    assert image.data.shape == labels.data.shape
    assert set(np.unique(labels.data)) <= {0, 1, 2}
    assert scans[0].files == (tmp_path / "Task07_Pancreas.tar",)


def test_labels_without_an_image_are_left_aside(copied, tmp_path) -> None:
    raw = copied(TUMOUR)
    shutil.rmtree(raw / "ImageTr" / "PanTS_00000002")
    assert len(stage(TUMOUR, raw, tmp_path / "data", release="phantom").cases) == SCANS[TUMOUR].cases - 1


# --- damages ---


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


def masks(raw: Path, number: int = 1) -> Path:
    return raw / "LabelTr" / f"PanTS_{number:08d}" / "segmentations"


PANTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing mask": (
        lambda raw: (masks(raw) / "pancreas.nii.gz").unlink(),
        "expected pancreas.nii.gz, found",
    ),
    "missing labels": (lambda raw: shutil.rmtree(masks(raw)), "expected the masks of PanTS_00000001"),
    "missing image": (
        lambda raw: (raw / "ImageTr/PanTS_00000001/ct.nii.gz").unlink(),
        "expected ct.nii.gz",
    ),
    "no labels at all": (lambda raw: shutil.rmtree(raw / "LabelTr"), "expected the labels of ImageTr here"),
    "no images at all": (lambda raw: shutil.rmtree(raw / "ImageTr"), "expected ImageTr/ or ImageTe/"),
    "extra mask": (lambda raw: (masks(raw) / "tumor.nii.gz").write_bytes(b"x"), "unexpected tumor.nii.gz"),
    "extra file": (
        lambda raw: (raw / "ImageTr/PanTS_00000001/notes.txt").write_text("x"),
        "unexpected notes.txt",
    ),
    "archive left": (lambda raw: (raw / "ImageTr/part.tar.gz").write_bytes(b"x"), "part.tar.gz: unexpected"),
    "swapped ids": (
        lambda raw: swap(raw / "LabelTr/PanTS_00000001", raw / "LabelTr/PanTS_00000002"),
        "expected shape|expected the grid of",
    ),
    "other spacing": (
        lambda raw: rewrite(
            masks(raw) / "pancreatic_lesion.nii.gz",
            lambda data, affine: (data, affine @ np.diag([1.05, 1, 1, 1])),
        ),
        "expected the grid of",
    ),
    "other shape": (
        lambda raw: rewrite(masks(raw) / "pancreas.nii.gz", lambda data, affine: (data[:-1], affine)),
        "expected shape",
    ),
    "no mask": (
        lambda raw: rewrite(masks(raw) / "pancreas.nii.gz", lambda data, affine: (data * 17, affine)),
        "expected the labels 0, 1, found",
    ),
    "truncated image": (lambda raw: cut(raw / "ImageTr/PanTS_00000003/ct.nii.gz"), "not a complete NIfTI"),
}
TASK = Path("Task03_Liver")


def edit_index(raw: Path, change: Callable[[dict], object]) -> None:
    path = raw / TASK / "dataset.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def cross(index: dict) -> None:
    first, second = index["training"][:2]
    first["label"], second["label"] = second["label"], first["label"]


def nth(raw: Path, part: str, number: int = 0) -> Path:
    return raw / TASK / part / scan_names(raw / TASK, part)[number]


LIVER: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing label": (lambda raw: nth(raw, "labelsTr").unlink(), "labelsTr: expected liver_001.nii.gz"),
    "missing image": (lambda raw: nth(raw, "imagesTr").unlink(), "imagesTr: expected liver_001.nii.gz"),
    "extra file": (
        lambda raw: (raw / TASK / "labelsTr/liver_99.nii.gz").write_bytes(b"x"),
        "unexpected liver_99.nii.gz",
    ),
    "swapped labels": (
        lambda raw: swap(nth(raw, "labelsTr", 0), nth(raw, "labelsTr", 1)),
        "expected shape|expected the grid of",
    ),
    "crossed index": (lambda raw: edit_index(raw, cross), "with another's label"),
    "other spacing": (
        lambda raw: rewrite(
            nth(raw, "labelsTr"), lambda data, affine: (data, affine @ np.diag([1, 1, 1.1, 1]))
        ),
        "expected the grid of",
    ),
    "other shape": (
        lambda raw: rewrite(nth(raw, "imagesTr"), lambda data, affine: (data[..., :-2], affine)),
        "expected shape",
    ),
    "unknown label": (
        lambda raw: rewrite(nth(raw, "labelsTr"), lambda data, affine: (data + 2, affine)),
        "expected the labels 0, 1, 2, found",
    ),
    "no liver": (
        lambda raw: rewrite(nth(raw, "labelsTr"), lambda data, affine: (0 * data, affine)),
        "expected label 1 in every case",
    ),
    "four dimensions": (
        lambda raw: rewrite(nth(raw, "imagesTr"), lambda data, affine: (np.stack([data] * 2, -1), affine)),
        "expected a 3-D volume",
    ),
    "truncated image": (lambda raw: cut(nth(raw, "imagesTr")), "not a complete NIfTI"),
    "cut index": (lambda raw: cut(raw / TASK / "dataset.json"), "expected labels, modality and training"),
    "no index": (lambda raw: (raw / TASK / "dataset.json").unlink(), "expected Task03_Liver.tar or"),
    "another task": (
        lambda raw: edit_index(raw, lambda index: index["labels"].pop("2")),
        "is this the right task?",
    ),
    "two modalities": (
        lambda raw: edit_index(raw, lambda index: index["modality"].update({"1": "MR"})),
        "expected 1 modalities, found 2",
    ),
}


def refused(task_id: str, raw: Path, out: Path) -> str:
    with pytest.raises(StagingError) as caught:
        stage(task_id, raw, out, release="phantom")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    left = [path for path in out.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    assert left == []
    return message


@pytest.mark.parametrize("name", PANTS)
def test_damaged_pants(copied, tmp_path, name) -> None:
    damage, words = PANTS[name]
    raw = copied(TUMOUR)
    damage(raw)
    message = refused(TUMOUR, raw, tmp_path / "data")
    assert any(part in message for part in words.split("|")), message


@pytest.mark.parametrize("name", LIVER)
def test_damaged_decathlon(copied, tmp_path, name) -> None:
    damage, words = LIVER[name]
    raw = copied("liver-seg-task")
    damage(raw)
    message = refused("liver-seg-task", raw, tmp_path / "data")
    assert any(part in message for part in words.split("|")), message


def member(name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, target: str = "") -> tuple:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


TRICKS = {
    "way up": (member("Task09_Spleen/../../evil.txt"), "unexpected file"),
    "absolute": (member("/etc/cron.d/evil"), "unexpected file"),
    "elsewhere": (member("Other/imagesTr/spleen_001.nii.gz"), "unexpected file"),
    "symbolic link": (
        member("Task09_Spleen/imagesTr/spleen_999.nii.gz", kind=tarfile.SYMTYPE, target="/etc/passwd"),
        "unexpected link or device",
    ),
    "hard link": (
        member("Task09_Spleen/labelsTr/spleen_999.nii.gz", kind=tarfile.LNKTYPE, target="/etc/passwd"),
        "unexpected link or device",
    ),
    "device": (member("Task09_Spleen/imagesTr/zero", kind=tarfile.CHRTYPE), "unexpected link or device"),
    "same name again": (member("Task09_Spleen/imagesTr/spleen_001.nii.gz"), "expected each file once"),
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_tar_with_tricks_is_refused(copied, tmp_path, name) -> None:
    (info, content), words = TRICKS[name]
    raw = copied("spleen-seg-task", unpacked=False)
    with tarfile.open(raw / "Task09_Spleen.tar", "a") as tar:
        tar.addfile(info, io.BytesIO(content))
    assert words in refused("spleen-seg-task", raw, tmp_path / "data")
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize("share", [0.001, 0.3, 0.7, 0.97])
def test_a_truncated_tar_is_refused(copied, tmp_path, share) -> None:
    raw = copied("spleen-seg-task", unpacked=False)
    cut(raw / "Task09_Spleen.tar", share)
    refused("spleen-seg-task", raw, tmp_path / "data")
