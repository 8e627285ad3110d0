"""AeroPath, TotalSegmentator, FeTA and PANTHER: what is drawn, what is staged, and what is refused."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from hf_datasets.phantoms.airway_tree import Branch, covered
from hf_datasets.phantoms.anatomy import Person, vertebra_heights
from hf_datasets.phantoms.body import Grid, blank, draw, egg, render, tube
from hf_datasets.phantoms.ct_body import draw_body, hounsfield
from hf_datasets.phantoms.fetal_brain import GREY, STEM, VENTRICLE, WHITE, Fetus, draw_brain
from hf_datasets.phantoms.metaimage import write_mha
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.totalsegmentator import class_ids
from hf_datasets.staging import StagingError, stage
from hf_datasets.staging.metaimage import read_mha

AIRWAYS, BODIES, BRAINS = "aeropath-seg-task", "tsg-multiorgan-seg-task", "feta-seg-task"
PANTHERS = ("panther-t1-seg-task", "panther-t2-seg-task")

# --- phantoms ---


def test_a_whole_body_shows_every_structure_on_its_side():
    canvas = draw_body(
        Grid((200, 110, 150), (5.5, 3.4, 3.4), (0, 0, 110)), Person(cysts=("left", "right")), rng_for(1)
    )
    ids = class_ids()
    labels = canvas.labels(ids)
    assert sorted(ids.values()) == list(range(1, 118))
    x = canvas.grid.axis(2)
    for name, value in ids.items():
        where = np.nonzero(labels == value)[2]
        assert where.size, name
        if name.endswith("_left") or "_left_" in name:
            assert x[where].mean() > 0, name
        if name.endswith("_right") or "_right_" in name:
            assert x[where].mean() < 0, name


def test_bones_are_counted_from_above():
    heights = [centre for centre, _ in vertebra_heights().values()]
    assert heights == sorted(heights, reverse=True)
    canvas = draw_body(Grid((110, 90, 120), (4, 4, 4), (0, 0, 250)), Person(), rng_for(2))
    z = canvas.grid.axis(0)
    ribs = [z[np.nonzero(canvas.of(f"rib_left_{number}"))[0]].mean() for number in range(1, 13)]
    assert ribs == sorted(ribs, reverse=True)


def test_absent_organs_are_absent():
    canvas = draw_body(
        Grid((60, 70, 90), (5, 5, 5), (0, 0, 0)), Person(male=False, gallbladder=False), rng_for(3)
    )
    for name in ("prostate", "gallbladder", "kidney_cyst_left", "brain"):
        assert not canvas.of(name).any(), name
    assert canvas.of("urinary_bladder").any()


def test_parts_have_the_volume_of_their_radii_and_the_later_one_stays():
    canvas = blank(Grid((60, 60, 60), (1, 1, 1), (0, 0, 0)))
    draw(
        canvas,
        [egg("a", "fat", (0, 0, 0), (20, 12, 15)), tube("b", "bone", (-10, 0, 0, 5, 5), (10, 0, 0, 5, 5))],
    )
    a, b = canvas.of("a").sum(), canvas.of("b").sum()
    assert a + b == pytest.approx(4 / 3 * np.pi * 20 * 12 * 15, rel=0.03)
    assert b == pytest.approx(np.pi * 25 * 20, rel=0.06)
    image = render(canvas, {"air": 0, "fat": 100, "bone": 500}, {}, 3.0, rng_for(4))
    assert image[30, 30, 30] == pytest.approx(500, abs=20)
    assert image[canvas.paint == 0][:100].std() == pytest.approx(3.0, rel=0.5)


def test_a_body_has_the_units_of_its_tissues():
    canvas = draw_body(Grid((50, 100, 140), (5, 3, 3), (0, 0, 110)), Person(), rng_for(5))
    hu = hounsfield(canvas, rng_for(6))
    inner = {
        name: ndimage.binary_erosion(canvas.of(name), iterations=2)
        for name in ("liver", "spleen", "kidney_left")
    }
    assert all(60 < np.median(hu[mask]) < 200 for mask in inner.values())
    assert np.median(hu[inner["kidney_left"]]) > np.median(hu[inner["liver"]]) + 20
    assert np.median(hu[canvas.of("lung_left", "lung_upper_lobe_left", "lung_lower_lobe_left")]) < -800
    assert np.percentile(hu[canvas.paint == 0], 5) < -960


def test_a_branch_is_a_tube_of_its_radius():
    canvas = blank(Grid((60, 40, 40), (1, 1, 1), (0, 0, 0)))
    branch = Branch(np.array([0.0, 0, -20]), np.array([0.0, 0, 20]), 5.0)
    lumen, wall = covered(canvas, [branch], 0.0), covered(canvas, [branch], 2.0)
    assert lumen[30].sum() == pytest.approx(np.pi * 25, rel=0.06)
    assert wall[30].sum() == pytest.approx(np.pi * 49, rel=0.06)
    assert (wall & lumen).sum() == lumen.sum()


def test_cortex_lies_around_white_matter_and_wide_ventricles_are_wide():
    normal, wide = (
        draw_brain(Fetus(30.0, widening), (68, 84, 70), 1.25, rng_for(7)) for widening in (1.0, 3.0)
    )
    assert set(np.unique(normal)) == set(range(8))
    touched = ndimage.binary_dilation(normal == WHITE) & (normal != WHITE)
    assert (normal[touched] == GREY).mean() > 0.75
    assert (wide == VENTRICLE).sum() > 2 * (normal == VENTRICLE).sum()
    assert ndimage.label(normal == STEM)[1] == 1


def test_airways_of_a_phantom_hang_together_and_are_dark(raw_phantoms):
    for folder in sorted(path for path in (raw_phantoms / AIRWAYS).iterdir() if path.is_dir()):
        ct, airways, lungs = (
            np.asarray(nibabel.load(folder / f"{folder.name}_CT_HR{kind}.nii.gz").dataobj)
            for kind in ("", "_label_airways", "_label_lungs")
        )
        marks, count = ndimage.label(airways, np.ones((3, 3, 3)))
        assert np.bincount(marks.ravel())[1:].max() > 0.98 * airways.sum(), count
        assert np.percentile(ct[airways == 1], 20) < -900
        assert not (airways & lungs).any()
        assert 3 < lungs.sum() / airways.sum() / 10 < 12


def test_tumours_differ_from_the_gland(raw_phantoms):
    for task_id, sign in zip(PANTHERS, (-1, 1), strict=True):
        with_tumour = 0
        for path in sorted((raw_phantoms / task_id / "LabelsTr").iterdir()):
            labels = read_mha(path).data
            scan = read_mha(raw_phantoms / task_id / "ImagesTr" / f"{path.stem}_0000.mha").data
            if (labels == 1).any():
                with_tumour += 1
                assert sign * (np.median(scan[labels == 1]) - np.median(scan[labels == 2])) > 30
        assert with_tumour == 5


# --- staging ---


def test_bodies_become_one_label_map(raw_phantoms, staged_root, manifest_of):
    absent = set()
    for case in manifest_of(BODIES).cases:
        staged = nibabel.load(staged_root / BODIES / "private" / case.id / "dseg.nii.gz")
        labels = np.asarray(staged.dataobj)
        for name, value in class_ids().items():
            mask = nibabel.load(raw_phantoms / BODIES / case.origin / "segmentations" / f"{name}.nii.gz")
            assert np.array_equal(labels == value, np.asarray(mask.dataobj) == 1), name
            if not (labels == value).any():
                absent.add((case.id, name))
    assert len({case_id for case_id, _ in absent}) == 5
    assert {name for _, name in absent} > {"brain", "femur_left", "prostate"}


def test_where_masks_overlap_the_higher_id_stays(raw_copy, tmp_path):
    raw = raw_copy(BODIES)
    masks = first_body(raw) / "segmentations"
    shutil.copy(masks / "liver.nii.gz", masks / "spleen.nii.gz")
    shutil.copy(masks / "liver.nii.gz", masks / "colon.nii.gz")
    manifest = stage(BODIES, raw, tmp_path, release="phantom")
    case = next(case for case in manifest.cases if case.origin == first_body(raw).name)
    labels = np.asarray(
        nibabel.load(tmp_path / "phantom" / BODIES / "private" / case.id / "dseg.nii.gz").dataobj
    )
    ids = class_ids()
    assert (labels == ids["spleen"]).any()
    assert not np.isin(labels, (ids["liver"], ids["colon"])).any()


def test_airways_lie_over_lungs(raw_copy, tmp_path):
    raw = raw_copy(AIRWAYS)
    rewrite(raw / "2" / "2_CT_HR_label_lungs.nii.gz", lambda data, affine: (np.ones_like(data), affine))
    manifest = stage(AIRWAYS, raw, tmp_path, release="phantom")
    case = next(case for case in manifest.cases if case.origin == "2")
    labels = nibabel.load(tmp_path / "phantom" / AIRWAYS / "private" / case.id / "dseg.nii.gz")
    airways = nibabel.load(raw / "2" / "2_CT_HR_label_airways.nii.gz")
    assert np.array_equal(np.asarray(labels.dataobj), np.asarray(airways.dataobj) + 1)


@pytest.mark.parametrize("folder", ["data", "AeroPath"])
def test_both_places_of_aeropath_are_known(folder, raw_copy, tmp_path):
    raw = raw_copy(AIRWAYS)
    (raw / folder).mkdir()
    for number in range(1, 6):
        (raw / str(number)).rename(raw / folder / str(number))
    assert len(stage(AIRWAYS, raw, tmp_path, release="phantom").cases) == 5


def test_label_maps_of_fetal_brains_may_be_derivatives(raw_copy, tmp_path):
    raw = raw_copy(BRAINS)
    for path in sorted(raw.glob("sub-*/anat/*_dseg.nii.gz")):
        target = raw / "derivatives" / "segmentations" / path.parent.parent.name / "anat" / path.name
        target.parent.mkdir(parents=True)
        path.rename(target)
    assert len(stage(BRAINS, raw, tmp_path, release="phantom").cases) == 6


@pytest.mark.parametrize("task_id", PANTHERS)
def test_pancreas_masks_lie_in_nifti_space(task_id, raw_phantoms, staged_root, manifest_of):
    for case in manifest_of(task_id).cases:
        raw = read_mha(raw_phantoms / task_id / "LabelsTr" / f"{case.origin}.mha")
        organ, lesion = (
            nibabel.load(staged_root / task_id / "private" / case.id / f"{name}.nii.gz")
            for name in ("organ", "lesion")
        )
        assert np.array_equal(np.asarray(organ.dataobj), (raw.data > 0).astype(np.uint8))
        assert np.array_equal(np.asarray(lesion.dataobj), (raw.data == 1).astype(np.uint8))
        assert nibabel.aff2axcodes(organ.affine) == ("L", "P", "S")
        assert np.allclose(organ.affine, raw.affine, atol=1e-4)


# --- MetaImage ---


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 6)] * 3),
    spacing=st.tuples(*[st.floats(0.1, 9).map(lambda value: round(value, 3))] * 3),
    origin=st.tuples(*[st.integers(-500, 500)] * 3),
    kind=st.sampled_from([np.uint8, np.int16]),
    seed=st.integers(0, 99),
)
def test_a_metaimage_comes_back_as_it_was_written(tmp_path_factory, shape, spacing, origin, kind, seed):
    path = tmp_path_factory.mktemp("mha") / "volume.mha"
    data = np.random.default_rng(seed).integers(0, 255, shape).astype(kind)
    write_mha(path, data, spacing, np.array(origin, dtype=float))
    volume = read_mha(path)
    assert np.array_equal(volume.data, data)
    assert volume.data.dtype == kind
    assert volume.spacing == pytest.approx(spacing, rel=1e-5)
    assert volume.affine[:3, 3] == pytest.approx([-origin[0], -origin[1], origin[2]])
    content = path.read_bytes()
    for share in (0.1, 0.5, 0.98):
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(StagingError):
            read_mha(path)


def test_a_plain_big_endian_metaimage_with_turned_axes_is_read(tmp_path):
    data = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    header = (
        "ObjectType = Image\nNDims = 3\nBinaryDataByteOrderMSB = True\nDimSize = 2 3 4\nElementType = MET_FLOAT\n"
        "Offset = 1 2 3\nTransformMatrix = 0 1 0 -1 0 0 0 0 1\nElementSpacing = 2 3 4\nElementDataFile = LOCAL\n"
    )
    path = tmp_path / "volume.mha"
    path.write_bytes(header.encode() + data.tobytes(order="F"))
    volume = read_mha(path)
    assert np.array_equal(volume.data, data.astype(np.float32))
    assert volume.affine @ [1, 0, 0, 1] == pytest.approx([-1, -4, 3, 1])
    assert volume.affine @ [0, 1, 0, 1] == pytest.approx([2, -2, 3, 1])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"LOCAL", b"other", "header and voxels in one file"),
        (b"DimSize = 2 2 2", b"DimSize = 2 2", "expected a 3-D volume"),
        (b"MET_SHORT", b"MET_OTHER", "expected a header with DimSize"),
        (b"ElementSpacing = 1 1 1", b"ElementSpacing = 1 0 1", "invertible geometry"),
        (b"DimSize = 2 2 2", b"DimSize = 2 2 9", "bytes of voxels"),
    ],
)
def test_a_broken_metaimage_is_named(tmp_path, old, new, words):
    path = tmp_path / "volume.mha"
    write_mha(path, np.ones((2, 2, 2), np.int16), (1, 1, 1), np.zeros(3))
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(StagingError, match=words):
        read_mha(path)


# --- damaged sources ---


def rewrite(path: Path, change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
    image = nibabel.load(path)
    data, affine = change(np.asarray(image.dataobj).copy(), image.affine.copy())
    nibabel.save(nibabel.Nifti1Image(data, affine), path)


def shorter(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return data[:-1], affine


def wider(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    affine[:3, :3] *= 1.02
    return data, affine


def empty(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(data), affine


def ninth(data: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    data[0, 0, 0] = 9
    return data, affine


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def swap(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def part(number: int, kind: str = "") -> Callable[[Path], Path]:
    return lambda raw: raw / str(number) / f"{number}_CT_HR{kind}.nii.gz"


def first_body(raw: Path, index: int = 0) -> Path:
    return sorted(raw.glob("s????"))[index]


def body_mask(name: str, index: int = 0) -> Callable[[Path], Path]:
    return lambda raw: first_body(raw, index) / "segmentations" / f"{name}.nii.gz"


def brain(raw: Path, kind: str, index: int = 0) -> Path:
    return sorted(raw.glob(f"sub-*/anat/*_{kind}.nii.gz"))[index]


def panther(raw: Path, folder: str, index: int = 0) -> Path:
    return sorted((raw / folder).iterdir())[index]


def relabel(path: Path, old: int, new: int) -> None:
    volume = read_mha(path)
    data = np.where(volume.data == old, new, volume.data).astype(np.uint8)
    write_mha(path, data, volume.spacing, volume.affine[:3, 3] * [-1, -1, 1])


def without_row(path: Path) -> None:
    rows = list(csv.reader(path.open(newline="")))
    path.write_text("\n".join(";".join(row) for row in [rows[0], *rows[2:]]) + "\n")


Damages = dict[str, tuple[Callable[[Path], object], str]]

AEROPATH: Damages = {
    "missing label": (lambda raw: part(3, "_label_airways")(raw).unlink(), "expected 3_CT_HR_label_airways"),
    "missing image": (lambda raw: part(3)(raw).unlink(), "expected 3_CT_HR.nii.gz"),
    "extra file": (lambda raw: (raw / "1" / "notes.txt").write_text("x"), "unexpected notes.txt"),
    "other shape": (lambda raw: rewrite(part(2, "_label_lungs")(raw), shorter), "expected shape"),
    "other spacing": (lambda raw: rewrite(part(2, "_label_airways")(raw), wider), "expected the grid of"),
    "swapped cases": (
        lambda raw: swap(part(1, "_label_lungs")(raw), part(2, "_label_lungs")(raw)),
        "_CT_HR_label_lungs.nii.gz: expected",
    ),
    "swapped folders": (lambda raw: swap(raw / "1", raw / "2"), "expected 1_CT_HR.nii.gz"),
    "truncated": (lambda raw: cut(part(4)(raw)), "not a complete NIfTI"),
    "no airway": (lambda raw: rewrite(part(5, "_label_airways")(raw), empty), "background only"),
    "unknown label": (lambda raw: rewrite(part(5, "_label_lungs")(raw), ninth), "expected the labels 0, 1"),
    "misnamed folder": (lambda raw: (raw / "1").rename(raw / "case1"), "expected a number as name"),
}
TOTALSEGMENTATOR: Damages = {
    "missing label": (lambda raw: body_mask("aorta")(raw).unlink(), "missing are aorta.nii.gz"),
    "version 1": (
        lambda raw: body_mask("heart")(raw).rename(body_mask("heart_atrium_left")(raw)),
        "117 classes of version 2, missing are heart",
    ),
    "missing image": (lambda raw: (first_body(raw) / "ct.nii.gz").unlink(), "expected ct.nii.gz and"),
    "extra mask": (
        lambda raw: shutil.copy(body_mask("aorta")(raw), body_mask("face")(raw)),
        "unexpected face",
    ),
    "extra file": (lambda raw: (first_body(raw) / "preview.png").write_bytes(b"x"), "unexpected preview.png"),
    "other shape": (lambda raw: rewrite(body_mask("liver")(raw), shorter), "expected shape"),
    "other spacing": (lambda raw: rewrite(body_mask("liver")(raw), wider), "expected the grid of"),
    "swapped images": (
        lambda raw: swap(first_body(raw) / "ct.nii.gz", first_body(raw, 1) / "ct.nii.gz"),
        "expected",
    ),
    "truncated": (lambda raw: cut(first_body(raw) / "ct.nii.gz"), "not a complete NIfTI"),
    "unknown label": (lambda raw: rewrite(body_mask("liver")(raw), ninth), "expected the labels 0, 1"),
    "misnamed case": (lambda raw: first_body(raw).rename(raw / "case7"), "case folders named s0000"),
    "unlisted case": (lambda raw: without_row(raw / "meta.csv"), "expected a row for s"),
    "other index": (lambda raw: (raw / "meta.csv").write_text("a,b\n1,2\n"), "expected rows with image_id"),
    "no cases": (lambda raw: [shutil.rmtree(path) for path in raw.glob("s????")], "expected case folders"),
}
FETA: Damages = {
    "missing label": (lambda raw: brain(raw, "dseg").unlink(), "below derivatives/, found 0"),
    "missing image": (lambda raw: brain(raw, "T2w").unlink(), "expected one anat/*_T2w.nii.gz"),
    "extra file": (
        lambda raw: shutil.copy(brain(raw, "dseg"), brain(raw, "dseg").with_name("mask.nii.gz")),
        "unexpected mask.nii.gz",
    ),
    "other shape": (lambda raw: rewrite(brain(raw, "dseg"), shorter), "expected shape"),
    "other spacing": (lambda raw: rewrite(brain(raw, "dseg"), wider), "expected the grid of"),
    "swapped subjects": (
        lambda raw: swap(brain(raw, "T2w").parent, brain(raw, "T2w", 1).parent),
        "is the file misplaced",
    ),
    "swapped label maps": (
        lambda raw: swap(brain(raw, "dseg"), brain(raw, "dseg", 1)),
        "expected the grid of",
    ),
    "truncated": (lambda raw: cut(brain(raw, "T2w", 2)), "not a complete NIfTI"),
    "unknown label": (lambda raw: rewrite(brain(raw, "dseg"), ninth), "expected the labels 0, 1"),
    "a tissue lost": (
        lambda raw: rewrite(brain(raw, "dseg"), lambda data, affine: (np.where(data == 7, 0, data), affine)),
        "missing are [7]",
    ),
    "misnamed subject": (
        lambda raw: brain(raw, "T2w").parent.parent.rename(raw / "sub-new"),
        "expected a name such as sub-001",
    ),
    "unlisted subject": (
        lambda raw: (raw / "participants.tsv").write_text(
            "participant_id\tPathology\nsub-999\tNeurotypical\n"
        ),
        "expected a row for sub-",
    ),
}
PANTHER: Damages = {
    "missing image": (lambda raw: panther(raw, "ImagesTr").unlink(), "missing are"),
    "missing label": (lambda raw: panther(raw, "LabelsTr").unlink(), "unexpected"),
    "extra file": (lambda raw: (raw / "LabelsTr" / "list.csv").write_text("x"), "unexpected list.csv"),
    "truncated": (lambda raw: cut(panther(raw, "ImagesTr")), "do not decompress"),
    "swapped label maps": (
        lambda raw: swap(panther(raw, "LabelsTr"), panther(raw, "LabelsTr", 1)),
        "LabelsTr/1",
    ),
    "unknown label": (
        lambda raw: relabel(panther(raw, "LabelsTr"), 2, 3),
        "expected the labels 0, 1, 2, found",
    ),
    "missing folder": (lambda raw: shutil.rmtree(raw / "LabelsTr"), "expected ImagesTr/ and LabelsTr/"),
    "nothing labelled": (
        lambda raw: [relabel(panther(raw, "LabelsTr", n), value, 0) for n in range(6) for value in (1, 2)],
        "background only",
    ),
    "not a MetaImage": (lambda raw: panther(raw, "ImagesTr").write_bytes(b"nothing"), "not a MetaImage"),
}


@pytest.mark.parametrize(
    ("task_id", "damage", "words"),
    [
        pytest.param(task_id, damage, words, id=f"{task_id.removesuffix('-task')}: {name}")
        for task_id, damages in (
            (AIRWAYS, AEROPATH),
            (BODIES, TOTALSEGMENTATOR),
            (BRAINS, FETA),
            (PANTHERS[0], PANTHER),
            (PANTHERS[1], PANTHER),
        )
        for name, (damage, words) in damages.items()
    ],
)
def test_damage_is_one_line_and_leaves_nothing(task_id, damage, words, raw_copy, tmp_path, staging_refusal):
    raw = raw_copy(task_id)
    damage(raw)
    assert words in staging_refusal(task_id, raw, tmp_path / "data")


def test_the_other_task_of_panther_is_refused(raw_phantoms, tmp_path):
    raw = Path(shutil.copytree(raw_phantoms / PANTHERS[0], tmp_path / "raw"))
    marker = raw_phantoms / PANTHERS[1] / "phantom.json"
    shutil.copy(marker, raw / "phantom.json")
    with pytest.raises(StagingError, match=r"label maps such as 10303\.mha"):
        stage(PANTHERS[1], raw, tmp_path / "data", release="phantom")
