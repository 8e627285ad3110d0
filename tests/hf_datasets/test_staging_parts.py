"""Low dose, words and the parts of staging that no phantom reaches."""

from __future__ import annotations

import io
import json

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage.metrics import structural_similarity

from hf_datasets.staging import StagingError, stage
from hf_datasets.staging.images import read_picture
from hf_datasets.staging.low_dose import low_dose
from hf_datasets.staging.openi import without_marks


def ssim(truth, picture):
    """As the task scores it: fixed range of 4024 HU, values outside clipped."""
    clipped = (np.clip(each, -1024, 3000) for each in (truth, picture))
    return structural_similarity(
        *clipped, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=4024
    )


def test_copied_input_leaves_room_and_denoising_uses_it(staged_root):
    copied, smoothed = [], []
    for reference in sorted((staged_root / "ldct-denoising-task/private").glob("*/reference.npy")):
        truth = np.load(reference)
        given_ = np.load(staged_root / "ldct-denoising-task/public" / reference.parent.name / "input.npy")
        copied.append(ssim(truth, given_))
        smoothed.append(ssim(truth, gaussian_filter(given_, 1.2)))
    assert 0.75 < np.mean(copied) < 0.92
    assert np.mean(smoothed) > np.mean(copied) + 0.03


def test_noise_is_seeded_and_independent_of_the_pixel_grid():
    y, x = np.mgrid[-1:1:128j, -1:1:128j]
    body = np.where(x**2 + (1.4 * y) ** 2 < 0.8, 40.0, -1000.0).astype(np.float32)
    assert np.array_equal(low_dose(body, 1), low_dose(body, 1))
    assert not np.array_equal(low_dose(body, 1), low_dose(body, 2))
    fine = np.repeat(np.repeat(body, 2, axis=0), 2, axis=1)
    spread = [float((low_dose(each, 3) - each)[each > 0].std()) for each in (body, fine)]
    assert spread[0] == pytest.approx(spread[1], rel=0.25)


def test_noise_is_worst_where_the_body_is_thickest():
    y, x = np.mgrid[-1:1:192j, -1:1:192j]
    body = np.where(x**2 + y**2 < 0.8, 40.0, -1000.0).astype(np.float32)
    noise = low_dose(body, 0) - body
    assert noise[(x**2 + y**2) < 0.05].std() > 1.15 * noise[((x**2 + y**2) > 0.6) & (body > 0)].std()


@pytest.mark.parametrize(
    ("marked", "clean"),
    [
        ("XXXX XXXX reviewed. Heart is normal.", "reviewed. Heart is normal."),
        ("Compared to XXXX, no change.", "Compared to, no change."),
        ("Stable since XXXX.", "Stable since."),
        ("XXXX.", ""),
        ("XXXX-year-old man. Clear lungs. XXXX.", "man. Clear lungs."),
        ("  The\nlungs   are clear. ", "The lungs are clear."),
    ],
)
def test_marks_of_deidentification(marked, clean):
    assert without_marks(marked) == clean


@given(
    st.lists(st.sampled_from(["XXXX", "heart", "is", "normal", ".", ",", " ", "\n", "XXXX-XXXX", "5", "cm"]))
)
def test_no_mark_survives_and_words_do(parts):
    text = " ".join(parts)
    clean = without_marks(text)
    assert "XX" not in clean
    assert "  " not in clean
    assert "\n" not in clean
    if clean:
        assert [word for word in clean.replace(".", " ").replace(",", " ").split() if word.isalpha()] == [
            word for word in text.split() if word.isalpha() and "X" not in word
        ]


def test_kits_data_folder_of_a_clone_and_float_volumes(tmp_path):
    folder = tmp_path / "raw/data/case_00003"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    labels = np.zeros((6, 8, 8), np.float64)
    labels[2:4, 2:5, 2:5] = 1
    labels[3, 3, 3] = 2
    affine = np.array([[0, 0, -0.8, 0], [0, -0.8, 0, 0], [-3, 0, 0, 0], [0, 0, 0, 1]])
    image = nibabel.Nifti1Image(rng.normal(0, 50, (6, 8, 8)), affine)
    image.header["descrip"] = b"scanner 7 of hospital X"
    nibabel.save(image, folder / "imaging.nii.gz")
    nibabel.save(nibabel.Nifti1Image(labels, affine), folder / "segmentation.nii.gz")
    manifest = stage("kidney-seg-task", tmp_path / "raw", tmp_path / "data", release="full")
    (case,) = manifest.cases
    staged = nibabel.load(tmp_path / "data/full/kidney-seg-task/public" / case.id / "ct.nii.gz")
    assert staged.get_data_dtype() == np.float32
    assert bytes(staged.header["descrip"]).strip(b"\0") == b""
    assert nibabel.aff2axcodes(staged.affine) == ("I", "P", "L")
    assert (manifest.license, manifest.redistribution) == ("CC BY-NC-SA 4.0", "derived")


def parquet_source(tmp_path, rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "raw/data").mkdir(parents=True)
    path = tmp_path / "raw/data/test-00000-of-00001-abc.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def picture_bytes():
    stream = io.BytesIO()
    Image.new("RGB", (20, 30), (9, 9, 9)).save(stream, format="JPEG", comment=b"patient")
    return stream.getvalue()


def test_vqa_rad_from_the_hubs_parquet(tmp_path):
    image = {"bytes": picture_bytes(), "path": None}
    rows = [{"image": image, "question": f"Is it {word}?", "answer": word} for word in ("yes", "left  lung")]
    parquet_source(tmp_path, rows)
    manifest = stage("vqa-rad-task", tmp_path / "raw", tmp_path / "data", release="lite")
    answers = [
        json.loads(path.read_text())
        for path in (tmp_path / "data/lite/vqa-rad-task/private").glob("*/answer.json")
    ]
    assert {(answer["answer"], answer["answer_type"]) for answer in answers} == {
        ("yes", "closed"),
        ("left lung", "open"),
    }
    assert all(case.public[0].shape == (30, 20, 3) for case in manifest.cases)


def test_vqa_rad_parquet_damage(tmp_path):
    path = parquet_source(
        tmp_path, [{"image": {"bytes": b"no picture", "path": None}, "question": "q", "answer": "a"}]
    )
    with pytest.raises(StagingError, match="not a complete picture"):
        stage("vqa-rad-task", tmp_path / "raw", tmp_path / "data", release="full")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(StagingError, match="not a complete parquet file"):
        stage("vqa-rad-task", tmp_path / "raw", tmp_path / "data", release="full")


def test_sixteen_bit_pictures_keep_their_contrast(tmp_path):
    deep = np.linspace(0, 65535, 256, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert np.array_equal(read_picture(tmp_path / "deep.png").ravel(), np.arange(256))


def test_a_picture_that_claims_too_much_is_refused(tmp_path):
    stream = io.BytesIO()
    Image.new("1", (12_000, 9_000)).save(stream, format="PNG")
    with pytest.raises(StagingError, match="not a complete picture"):
        read_picture(tmp_path / "bomb.png", stream.getvalue())
