"""Honest files are read for what they are."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from evaluator.readers.array import read_array, read_arrays
from evaluator.readers.csv_file import read_csv
from evaluator.readers.dicom import read_dicom
from evaluator.readers.errors import ReadError
from evaluator.readers.image import read_image
from evaluator.readers.json_file import read_json
from evaluator.readers.nifti import read_label_map, read_nifti, same_grid
from evaluator.readers.text_file import read_text

AFFINE = np.array([[0.7, 0, 0, -90], [0, 0.7, 0, 12.5], [0, 0, 5, -300], [0, 0, 0, 1.0]])


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8", "i1", "u2", "u4", "i8", "u8"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kind", [nib.Nifti1Image, nib.Nifti2Image])
def test_nifti_of_any_type_and_byte_order(
    dtype: str, order: str, suffix: str, kind: Any, tmp_path: Path
) -> None:
    data = np.arange(120).reshape(6, 5, 4).astype(order + dtype)
    header = (nib.Nifti1Header if kind is nib.Nifti1Image else nib.Nifti2Header)(endianness=order)
    header.set_data_dtype(order + dtype)
    path = tmp_path / f"x{suffix}"
    nib.save(kind(data, AFFINE, header), path)
    volume = read_nifti(path)
    assert volume.data.tolist() == data.tolist()
    assert volume.data.dtype == np.dtype(dtype)
    assert volume.spacing == pytest.approx((0.7, 0.7, 5.0))
    assert np.allclose(volume.affine, AFFINE)
    assert read_label_map(path, range(120)).data.tolist() == data.tolist()


def test_nifti_scaling_is_applied(tmp_path: Path) -> None:
    data = np.linspace(-1000, 3000, 120).reshape(6, 5, 4)
    image = nib.Nifti1Image(data, AFFINE)
    image.set_data_dtype(np.int16)
    nib.save(image, tmp_path / "x.nii.gz")
    expected = nib.load(tmp_path / "x.nii.gz").get_fdata()
    assert np.allclose(read_nifti(tmp_path / "x.nii.gz").data, expected, atol=1e-3)


@pytest.mark.parametrize("axes", ["RAS", "LPS", "PIR", "SAL", "IPR"])
def test_nifti_is_turned_to_canonical(axes: str, tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 3, (6, 5, 4), np.uint8)
    image = nib.Nifti1Image(data, AFFINE)
    turned = image.as_reoriented(
        nib.orientations.ornt_transform(nib.io_orientation(AFFINE), nib.orientations.axcodes2ornt(axes))
    )
    nib.save(image, tmp_path / "a.nii.gz")
    nib.save(turned, tmp_path / "b.nii.gz")
    ours, theirs = (read_label_map(tmp_path / name, (0, 1, 2)) for name in ("a.nii.gz", "b.nii.gz"))
    assert same_grid(ours, theirs)
    assert np.array_equal(ours.data, theirs.data)


def test_nifti_written_with_both_forms_alike(tmp_path: Path) -> None:
    turn = nib.eulerangles.euler2mat(0.1, 0.2, 0.3)
    affine = np.eye(4)
    affine[:3, :3] = turn @ np.diag([0.7, 0.7, 2.5])
    affine[:3, 3] = [-321.7, 1200.3, -77.1]
    image = nib.Nifti1Image(np.zeros((512, 512, 3), np.uint8), affine)
    image.header.set_sform(affine, 1)
    image.header.set_qform(affine, 1)
    nib.save(image, tmp_path / "x.nii.gz")
    assert read_nifti(tmp_path / "x.nii.gz").data.shape == (512, 512, 3)


def test_nifti_with_extension_and_several_gzip_members(tmp_path: Path) -> None:
    image = nib.Nifti1Image(np.ones((6, 5, 4), np.uint8), AFFINE)
    image.header.extensions.append(nib.nifti1.Nifti1Extension("comment", b"x" * 500))
    content = image.to_bytes()
    (tmp_path / "x.nii.gz").write_bytes(gzip.compress(content[:400]) + gzip.compress(content[400:]))
    assert read_nifti(tmp_path / "x.nii.gz").data.sum() == 120


def test_label_map_uses_the_smallest_type(tmp_path: Path) -> None:
    data = np.zeros((6, 5, 4))
    data[0, 0, 0], data[1, 1, 1] = 300.0005, 2.0
    nib.save(nib.Nifti1Image(data, AFFINE), tmp_path / "x.nii.gz")
    assert read_label_map(tmp_path / "x.nii.gz", (0, 2, 300)).data.dtype == np.uint16
    with pytest.raises(ReadError, match="contains 300"):
        read_label_map(tmp_path / "x.nii.gz", (0, 1, 2))


def test_expected_shape_is_that_of_the_canonical_volume(tmp_path: Path) -> None:
    affine = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
    nib.save(nib.Nifti1Image(np.zeros((6, 5, 4), np.uint8), affine), tmp_path / "x.nii.gz")
    assert read_nifti(tmp_path / "x.nii.gz", expected_shape=(4, 6, 5)).data.shape == (4, 6, 5)
    with pytest.raises(ReadError, match="expected \\(6, 5, 4\\)"):
        read_nifti(tmp_path / "x.nii.gz", expected_shape=(6, 5, 4))


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2", "|b1", "<u8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_array(dtype: str, order: str, tmp_path: Path) -> None:
    data = np.asarray(np.arange(12).reshape(3, 4), dtype=dtype, order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "x.npy", data)
    found = read_array(tmp_path / "x.npy", expected_shape=(3, 4))
    assert np.array_equal(found, data)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    with pytest.raises(ReadError, match="wrong_shape"):
        read_array(tmp_path / "x.npy", expected_shape=(4, 3))


def test_empty_array_and_scalar(tmp_path: Path) -> None:
    for data in (np.zeros((0, 3)), np.array(5.0)):
        np.save(tmp_path / "x.npy", data)
        assert np.array_equal(read_array(tmp_path / "x.npy"), data)


def test_archive(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(5), b=np.ones((2, 2), np.float32))
    found = read_arrays(tmp_path / "x.npz")
    assert sorted(found) == ["a", "b"]
    assert found["a"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ReadError, match="too_large"):
        read_arrays(tmp_path / "x.npz", max_elements=6)


@pytest.mark.parametrize(
    ("mode", "shape", "dtype"),
    [
        ("L", (8, 9), "u1"),
        ("1", (8, 9), "u1"),
        ("LA", (8, 9), "u1"),
        ("P", (8, 9, 3), "u1"),
        ("RGB", (8, 9, 3), "u1"),
        ("RGBA", (8, 9, 3), "u1"),
        ("I;16", (8, 9), "u2"),
    ],
)
def test_png(mode: str, shape: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    Image.new(mode, (9, 8), 1 if mode in {"1", "L", "P", "I;16"} else None).save(tmp_path / "x.png")
    pixels = read_image(tmp_path / "x.png")
    assert (pixels.shape, pixels.dtype) == (shape, np.dtype(dtype))


def test_jpeg_and_tiff(tmp_path: Path) -> None:
    shades = np.arange(72, dtype=np.uint16).reshape(8, 9) * 500
    Image.fromarray(shades).save(tmp_path / "x.tiff")
    assert np.array_equal(read_image(tmp_path / "x.tiff"), shades)
    Image.fromarray(np.full((8, 9, 3), 77, np.uint8)).save(tmp_path / "x.jpg")
    assert np.abs(read_image(tmp_path / "x.jpg").astype(int) - 77).max() <= 2
    with pytest.raises(ReadError, match="too_large"):
        read_image(tmp_path / "x.jpg", max_pixels=71)


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '{"answer": "\\ud83e\\udec1 µm \\"[[[[\\" {", "n": -1.5e3, "deep": [[[null, true]]]}',
        encoding="utf-8",
    )
    assert read_json(path) == {"answer": '\U0001fac1 µm "[[[[" {', "n": -1500.0, "deep": [[[None, True]]]}


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes('label,id\r\n"a, ""b""",1\r\n\r\n naïve ,2\r\n'.encode())
    assert read_csv(path, ("id", "label")) == [{"label": 'a, "b"', "id": "1"}, {"label": "naïve", "id": "2"}]


def test_text_of_any_language(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes("Größe 5 ㎜ – “normal” 37 °C\r\n\t心影不大\n".encode())
    assert read_text(path) == "Größe 5 mm – “normal” 37 °C\n\t心影不大\n"


def test_dicom(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ImplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset.Rows, dataset.Columns, dataset.BitsAllocated, dataset.PixelRepresentation = 3, 5, 16, 1
    dataset.SamplesPerPixel, dataset.RescaleSlope, dataset.RescaleIntercept = 1, 2, -1024
    dataset.PixelSpacing = [0.5, 0.75]
    stored = np.arange(-5, 10, dtype=np.int16).reshape(3, 5)
    dataset.PixelData = stored.tobytes()
    dataset.save_as(tmp_path / "x.dcm", enforce_file_format=True)
    found = read_dicom(tmp_path / "x.dcm")
    assert np.array_equal(found.data, stored * 2.0 - 1024.0)
    assert found.spacing == (0.5, 0.75)


def test_real_dicom_that_a_package_ships() -> None:
    data = pytest.importorskip("pydicom.data")
    path = Path(data.get_testdata_file("CT_small.dcm"))
    found = read_dicom(path)
    assert found.data.shape == (128, 128)
    assert -1024 <= found.data.min() < found.data.max() < 4000


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    LEAVES | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    import json

    path = tmp_path_factory.mktemp("json") / "x.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    assert read_json(path) == value


def test_a_gzip_of_several_members_is_one_stream(tmp_path: Path) -> None:
    data = np.arange(24 * 20 * 16, dtype=np.int16).reshape(24, 20, 16)
    content = nib.Nifti1Image(data, np.eye(4)).to_bytes()
    path = tmp_path / "x.nii.gz"
    path.write_bytes(
        b"".join(gzip.compress(content[start : start + 100]) for start in range(0, len(content), 100))
    )
    np.testing.assert_array_equal(read_nifti(path).data, data)
    path.write_bytes(gzip.compress(b"") + gzip.compress(content) + gzip.compress(b""))
    np.testing.assert_array_equal(read_nifti(path).data, data)


@pytest.mark.parametrize("kind", [nib.Nifti1Image, nib.Nifti2Image])
@pytest.mark.parametrize("order", ["<", ">"])
def test_both_versions_and_byte_orders(tmp_path: Path, kind: Any, order: str) -> None:
    data = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    header = kind.header_class(endianness=order)
    header.set_data_dtype(np.int16)
    path = tmp_path / "x.nii.gz"
    path.write_bytes(gzip.compress(kind(data, np.eye(4), header).to_bytes()))
    np.testing.assert_array_equal(read_nifti(path).data, data)
