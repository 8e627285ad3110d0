"""The geometry and dtype cases of the shared case file, each written with nibabel and read back by our reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from evaluator.metrics.segmentation import dice
from evaluator.readers.errors import ReadError
from evaluator.readers.nifti import Volume, read_label_map, require_same_grid, same_grid

ROOT = Path(__file__).parents[3]
AFFINE = np.diag([1.0, 1.0, 2.0, 1.0])
CASES = {
    case["id"]: case
    for case in json.loads((ROOT / "tests/evaluator/cases/metric_cases.json").read_text())["cases"]
    if case["id"].startswith("geo-")
}


def base() -> np.ndarray:
    mask = np.zeros((6, 5, 4), np.uint8)
    mask[1:3, 1:3, 1:3] = 1
    return mask


def save(
    folder: Path, data: np.ndarray, affine: np.ndarray | None = AFFINE, name: str = "mask.nii.gz"
) -> Path:
    nib.save(nib.Nifti1Image(data, affine), folder / name)
    return folder / name


def read(path: Path, ids: tuple[int, ...] = (0, 1)) -> Volume:
    return read_label_map(path, ids)


def score(reference: Path, prediction: Path) -> float:
    ours, theirs = read(reference), read(prediction)
    require_same_grid(theirs, ours, prediction.name)
    return dice(ours.data == 1, theirs.data == 1)


def refused(path: Path, ids: tuple[int, ...] = (0, 1)) -> str:
    with pytest.raises(ReadError) as error:
        read(path, ids)
    return error.value.code


def flip_with_affine(folder: Path) -> None:
    affine = AFFINE.copy()
    affine[0, 0], affine[0, 3] = -1.0, 5.0
    expected = CASES["geo-flip-x-with-affine"]["expected"]
    flipped = base()[::-1]
    assert dice(base() == 1, flipped == 1) == expected["dice_raw_arrays"]
    assert (
        score(save(folder, base()), save(folder, flipped, affine, "p.nii.gz"))
        == expected["dice_after_canonical"]
    )


def flip_affine_kept(folder: Path) -> None:
    expected = CASES["geo-flip-x-affine-kept"]["expected"]
    assert (
        score(save(folder, base()), save(folder, base()[::-1], name="p.nii.gz"))
        == expected["dice_after_canonical"]
    )


def axes_permuted(folder: Path) -> None:
    expected = CASES["geo-axes-permuted-affine-kept"]["expected"]
    turned = read(save(folder, base().T, name="p.nii.gz"))
    assert list(turned.data.shape) == expected["shape_pred"]
    with pytest.raises(ReadError) as error:
        require_same_grid(turned, read(save(folder, base())), "p")
    assert error.value.code == "wrong_shape"
    with pytest.raises(ReadError) as error:
        read_label_map(folder / "p.nii.gz", (0, 1), expected_shape=(6, 5, 4))
    assert error.value.code == "wrong_shape"


def axes_permuted_cubic(folder: Path) -> None:
    mask = np.zeros((6, 6, 6), np.uint8)
    mask[1:3, 1:3, 3:5] = 1
    reference, prediction = save(folder, mask), save(folder, np.ascontiguousarray(mask.T), name="p.nii.gz")
    assert 0.0 <= score(reference, prediction) < 1.0  # accepted, and scored as it lies


def singleton(folder: Path) -> None:
    path = save(folder, base()[..., None])
    assert read(path).flags == ("squeezed",)
    assert score(save(folder, base(), name="r.nii.gz"), path) == 1.0


def one_hot(folder: Path) -> None:
    assert refused(save(folder, np.stack([1 - base(), base()], axis=-1))) == "wrong_dimensions"


def origin(folder: Path) -> None:
    moved = AFFINE.copy()
    moved[0, 3] = 10.0
    ours, theirs = read(save(folder, base())), read(save(folder, base(), moved, "p.nii.gz"))
    assert same_grid(ours, theirs) is CASES["geo-origin-mismatch"]["expected"]["affine_equal"]
    with pytest.raises(ReadError) as error:
        require_same_grid(theirs, ours, "p")
    assert error.value.code == "wrong_grid"


def conflict(folder: Path) -> None:
    image = nib.Nifti1Image(base(), AFFINE)
    image.header.set_sform(AFFINE, 1)
    image.header.set_qform(np.eye(4), 1)
    image.to_filename(folder / "p.nii.gz")
    assert refused(folder / "p.nii.gz") == "bad_geometry"


def no_affine(folder: Path) -> None:
    assert refused(save(folder, base(), None)) == "bad_geometry"


def labels() -> np.ndarray:
    data = base().astype(np.int16)
    data[3, 3, 3], data[4, 4, 3] = 200, 300
    return data


def stored_as(dtype: type) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        volume = read(save(folder, labels().astype(dtype)), (0, 1, 200, 300))
        assert volume.data.dtype == np.uint16
        assert np.unique(volume.data).tolist() == [0, 1, 200, 300]

    return check


def nibabel_cannot_write(dtype: type) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        with pytest.raises(nib.spatialimages.HeaderDataError, match="not supported"):
            save(folder, labels().astype(dtype))

    return check


def nearly_integer(folder: Path) -> None:
    assert score(save(folder, base()), save(folder, base() * np.float32(0.999999), name="p.nii.gz")) == 1.0
    assert refused(save(folder, base() * np.float32(0.998))) == "non_integer_labels"


def probabilities(folder: Path) -> None:
    assert refused(save(folder, base() * np.float32(0.7))) == "non_integer_labels"


def slope(folder: Path) -> None:
    # nibabel rescales when it writes; the slope is put under the stored integers by hand
    path = folder / "q.nii"
    nib.save(nib.Nifti1Image(base(), AFFINE), path)
    content = bytearray(path.read_bytes())
    content[112:116] = np.float32(0.5).tobytes()
    path.write_bytes(content)
    assert set(np.unique(nib.load(path).get_fdata())) == set(
        CASES["geo-scl-slope"]["expected"]["fdata_labels"]
    )
    assert refused(path) == "non_integer_labels"


def nan(folder: Path) -> None:
    data = base().astype(np.float32)
    data[0, 0, 0] = np.nan
    assert refused(save(folder, data)) == "non_finite"


CHECKS: dict[str, Callable[[Path], None]] = {
    "geo-flip-x-with-affine": flip_with_affine,
    "geo-flip-x-affine-kept": flip_affine_kept,
    "geo-axes-permuted-affine-kept": axes_permuted,
    "geo-axes-permuted-cubic": axes_permuted_cubic,
    "geo-4d-singleton": singleton,
    "geo-4d-onehot": one_hot,
    "geo-origin-mismatch": origin,
    "geo-sform-qform-conflict": conflict,
    "geo-no-affine": no_affine,
    "geo-dtype-int16": stored_as(np.int16),
    "geo-dtype-float32": stored_as(np.float32),
    "geo-dtype-bool": nibabel_cannot_write(np.bool_),
    "geo-dtype-float16": nibabel_cannot_write(np.float16),
    "geo-float-labels": nearly_integer,
    "geo-probability-map": probabilities,
    "geo-scl-slope": slope,
    "geo-nan-voxel": nan,
}


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, tmp_path: Path) -> None:
    CHECKS[case](tmp_path)
