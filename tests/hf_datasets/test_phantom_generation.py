from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree as Xml

import nibabel
import numpy as np
import pytest
from PIL import Image

from hf_datasets.families import FAMILIES, UnknownTask
from hf_datasets.phantoms import PhantomError, make_phantom
from hf_datasets.phantoms.chest_xray import HEIGHT, WIDTH, Findings, deal, frontal, heart_ratio
from hf_datasets.phantoms.marker import read_marker
from hf_datasets.phantoms.report_text import findings_text, impression_text
from hf_datasets.phantoms.shapes import rng_for


@pytest.mark.parametrize("task_id", FAMILIES)
def test_a_seed_decides_every_byte(task_id, raw_phantoms, tmp_path, tree_digest):
    again = make_phantom(task_id, tmp_path / "again", seed=0)
    other = make_phantom(task_id, tmp_path / "other", seed=1)
    assert tree_digest(again) == tree_digest(raw_phantoms / task_id)
    shared = set(tree_digest(other).values()) & set(tree_digest(again).values())
    real = [path for path in again.rglob("*") if path.name in read_marker(again).real]
    assert shared == {hashlib.sha256(path.read_bytes()).hexdigest() for path in real}


def test_a_standing_phantom_is_kept_and_anything_else_refused(tmp_path):
    out = make_phantom("bccd-det-task", tmp_path / "raw")
    inode = (out / "phantom.json").stat().st_ino
    make_phantom("bccd-det-task", out)
    assert (out / "phantom.json").stat().st_ino == inode
    with pytest.raises(PhantomError, match="seed 5"):
        make_phantom("bccd-det-task", out, seed=5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("keep me")
    with pytest.raises(PhantomError, match="not empty"):
        make_phantom("bccd-det-task", tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "keep me"


def test_an_unknown_task_is_told_its_neighbour(tmp_path):
    with pytest.raises(UnknownTask, match="did you mean kidney-seg-task"):
        make_phantom("kidney-sge-task", tmp_path / "raw")


def test_kits_layout_and_affine(raw_phantoms):
    raw = raw_phantoms / "kidney-seg-task"
    index = {record["case_id"]: record for record in json.loads((raw / "kits.json").read_text())}
    folders = sorted(raw.glob("case_*"))
    assert [folder.name for folder in folders] == [f"case_{n:05d}" for n in range(6)] == sorted(index)
    spacings = set()
    for folder in folders:
        assert {path.name for path in folder.iterdir()} == {"imaging.nii.gz", "segmentation.nii.gz"}
        image = nibabel.load(folder / "imaging.nii.gz")
        assert nibabel.aff2axcodes(image.affine) == ("I", "P", "L")
        thickness, row, column = (float(size) for size in image.header.get_zooms())
        assert row == column == pytest.approx(index[folder.name]["captured_pixel_width"], abs=1e-4)
        assert thickness > 1.2 * row
        spacings.add((thickness, row))
    assert len(spacings) == 6


def test_kidneys_and_tumours_have_their_hounsfield_units(raw_phantoms):
    with_tumour = 0
    for folder in sorted((raw_phantoms / "kidney-seg-task").glob("case_*")):
        hu = np.asarray(nibabel.load(folder / "imaging.nii.gz").dataobj)
        labels = np.asarray(nibabel.load(folder / "segmentation.nii.gz").dataobj)
        assert hu.min() >= -1024
        assert np.percentile(hu, 5) == pytest.approx(-1000, abs=40)
        assert hu.max() > 400
        assert 140 < np.median(hu[labels == 1]) < 185
        if (labels == 2).any():
            with_tumour += 1
            assert 30 < np.median(hu[labels == 2]) < 100
            assert (labels == 2).sum() > 60
    assert with_tumour == 4


def test_simnict_layout(raw_phantoms):
    volumes = sorted(
        (raw_phantoms / "ldct-denoising-task" / "SimNICT-AMOS-Sample" / "test_nii_files" / "org").iterdir()
    )
    assert [path.name for path in volumes] == [f"{n}.nii.gz" for n in range(1, 7)]
    for path in volumes:
        image = nibabel.load(path)
        assert image.shape == (256, 256, 3)
        assert nibabel.aff2axcodes(image.affine) == ("L", "P", "S")


def test_vqa_rad_layout_balance_and_real_images(raw_phantoms):
    raw = raw_phantoms / "vqa-rad-task"
    records = json.loads((raw / "VQA_RAD Dataset Public.json").read_text())
    pictures = {path.name for path in (raw / "VQA_RAD Image Folder").iterdir()}
    assert {record["image_name"] for record in records} == pictures
    closed = [record["answer"] for record in records if record["answer_type"] == "CLOSED"]
    assert abs(closed.count("Yes") - closed.count("No")) <= 3
    assert any(first == second for first, second in pairwise(closed))
    assert {"test_freeform", "test_para", "freeform"} == {record["phrase_type"] for record in records}
    assert len({record["qid"] for record in records}) == len(records)
    real = read_marker(raw).real
    assert {image.package for image in real.values()} == {"nibabel", "scikit-image"}
    assert set(real) < pictures
    assert all(image.license and image.version and len(image.sha256) == 64 for image in real.values())


def test_openi_layout(raw_phantoms):
    raw = raw_phantoms / "iu-xray-report-task"
    reports = sorted((raw / "ecgen-radiology").iterdir())
    assert len(reports) == 8
    named = []
    for path in reports:
        root = Xml.parse(path).getroot()
        assert root.find("uId").get("id") == f"CXR{path.stem}"
        labels = [
            item.get("Label") for item in root.iterfind("MedlineCitation/Article/Abstract/AbstractText")
        ]
        assert labels == ["COMPARISON", "INDICATION", "FINDINGS", "IMPRESSION"]
        images = [parent.get("id") for parent in root.iter("parentImage")]
        assert len(images) in (1, 2)
        named += images
    assert sorted(f"{name}.png" for name in named) == sorted(
        path.name for path in (raw / "NLMCXR_png").iterdir()
    )


def test_bccd_layout_and_boxes_hold_their_cells(raw_phantoms):
    raw = raw_phantoms / "bccd-det-task"
    splits = {path.stem: path.read_text().split() for path in (raw / "ImageSets" / "Main").iterdir()}
    assert {name: len(members) for name, members in splits.items()} == {
        "train": 1,
        "val": 1,
        "trainval": 2,
        "test": 8,
    }
    seen = set()
    for path in (raw / "Annotations").iterdir():
        pixels = np.asarray(Image.open(raw / "JPEGImages" / f"{path.stem}.jpg")).astype(float)
        assert pixels.shape == (240, 320, 3)
        for item in Xml.parse(path).getroot().iter("object"):
            x1, y1, x2, y2 = (int(item.findtext(f"bndbox/{tag}")) for tag in ("xmin", "ymin", "xmax", "ymax"))
            assert 0 <= x1 < x2 <= 320
            assert 0 <= y1 < y2 <= 240
            inside = pixels[y1:y2, x1:x2]
            assert inside[..., 1].min() < np.median(pixels[..., 1]) - 15
            if item.findtext("name") == "WBC":
                assert inside[..., 1].min() < 90
            seen.add(item.findtext("name"))
    assert seen == {"RBC", "WBC", "Platelets"}


def test_what_is_drawn_can_be_measured():
    rng = lambda: rng_for(7, "measure")  # noqa: E731
    normal = frontal(Findings(), rng()).astype(float)
    assert normal.shape == (HEIGHT, WIDTH)

    def region(
        picture: np.ndarray, side: str, rows: tuple[float, float], outer: float, inner: float
    ) -> float:
        """Mean of a part of one lung; columns count from the patient's side of the picture."""
        seen = picture if side == "right" else picture[:, ::-1]
        return float(
            seen[
                int(rows[0] * HEIGHT) : int(rows[1] * HEIGHT), int(outer * WIDTH) : int(inner * WIDTH)
            ].mean()
        )

    base = ((0.66, 0.72), 0.15, 0.3)
    flank = ((0.3, 0.5), 0.125, 0.165)

    for side in ("right", "left"):
        other = "left" if side == "right" else "right"
        effusion = frontal(Findings(effusion=side), rng())
        assert region(effusion, side, *base) > region(normal, side, *base) + 30
        assert region(effusion, other, *base) == pytest.approx(region(normal, other, *base), abs=4)
        collapsed = frontal(Findings(pneumothorax=side), rng())
        assert region(collapsed, side, *flank) < region(normal, side, *flank) - 15
    assert heart_ratio(Findings()) < 0.5 < 0.55 < heart_ratio(Findings(cardiomegaly=True))


def test_reports_say_what_is_drawn_and_nothing_else():
    from evaluator.metrics.chest import extract

    wordings = set()
    for index, found in enumerate(deal(rng_for(0, "reports"), 64)):
        rng = rng_for(0, "words", index)
        text = findings_text(found, rng) + "\n" + impression_text(found, rng)
        wordings.add(text)
        said = {label for label, assertion in extract(text).items() if assertion == "present"}
        assert ("Pleural Effusion" in said) == bool(found.effusion), text
        assert ("Pneumothorax" in said) == bool(found.pneumothorax), text
        assert ("Consolidation" in said) == bool(found.consolidation), text
        assert ("Cardiomegaly" in said) == found.cardiomegaly, text
        assert ("Support Devices" in said) == (found.pacemaker or found.catheter), text
        sides = {side for side in (found.effusion, found.pneumothorax) if side}
        assert all(side in text.lower() for side in sides)
    assert len(wordings) > 50


def test_importing_the_package_loads_nothing_heavy():
    heavy = "[name for name in ('numpy', 'nibabel', 'pydantic', 'PIL') if name in sys.modules]"
    code = f"import sys, hf_datasets, hf_datasets.cli; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
