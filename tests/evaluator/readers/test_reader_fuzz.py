"""Readers under random bytes and random damage: a value or a `ReadError`, never anything else."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from evaluator.readers.array import read_array, read_arrays
from evaluator.readers.csv_file import read_csv
from evaluator.readers.dicom import read_dicom
from evaluator.readers.errors import CODES, ReadError
from evaluator.readers.image import read_image
from evaluator.readers.json_file import read_json
from evaluator.readers.nifti import read_label_map, read_nifti
from evaluator.readers.text_file import read_text


def nifti() -> bytes:
    return nib.Nifti1Image(np.arange(60, dtype=np.int16).reshape(3, 4, 5), np.diag([1.0, 2, 3, 1])).to_bytes()


def packed_nifti() -> bytes:
    return gzip.compress(nifti(), mtime=0)


def npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(12, dtype=np.float32).reshape(3, 4))
    return buffer.getvalue()


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.arange(12), b=np.ones((2, 3), np.float32))
    return buffer.getvalue()


def picture(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((16, 12), 60).convert("RGB").save(buffer, kind)
    return buffer.getvalue()


def dicom() -> bytes:
    pydicom = pytest.importorskip("pydicom")
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset.Rows, dataset.Columns, dataset.BitsAllocated, dataset.PixelRepresentation = 3, 5, 16, 1
    dataset.SamplesPerPixel, dataset.RescaleSlope, dataset.PixelSpacing = 1, 2, [0.5, 0.75]
    dataset.add_new("PixelData", "OW", bytes(30))
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


SEEDS: dict[str, tuple[Any, Any]] = {
    "nifti": (read_nifti, nifti),
    "nifti-gz": (read_nifti, packed_nifti),
    "labels": (lambda path: read_label_map(path, range(60)), packed_nifti),
    "npy": (read_array, npy),
    "npz": (read_arrays, npz),
    "png": (read_image, lambda: picture("PNG")),
    "jpeg": (read_image, lambda: picture("JPEG")),
    "tiff": (read_image, lambda: picture("TIFF")),
    "dicom": (read_dicom, dicom),
    "json": (
        read_json,
        lambda: b'{"boxes": [{"class": "a", "score": 0.5, "x1": 1, "t": "\\u00e9\\ud83e\\udec1"}]}',
    ),
    "csv": (lambda path: read_csv(path, ("id", "label")), lambda: b'id,label\n1,"a, ""b"""\n2,c\n'),
    "text": (read_text, lambda: "No acute process. 37 °C\n".encode()),
}
DAMAGE = st.lists(
    st.tuples(st.integers(0, 4000), st.binary(min_size=0, max_size=12), st.integers(0, 12)),
    min_size=1,
    max_size=6,
)


def damaged(content: bytes, damage: list[tuple[int, bytes, int]]) -> bytes:
    for place, put, drop in damage:
        at = place % (len(content) + 1)
        content = content[:at] + put + content[at + drop :]
    return content


def require_value_or_named_error(reader: Any, path: Path) -> None:
    error: ReadError | None = None
    try:
        reader(path)
    except ReadError as raised:
        error = raised
    assert error is None or (error.code in CODES and "\n" not in error.message)


@pytest.mark.parametrize("seed", SEEDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGE)
def test_damaged_files(seed: str, damage: list[tuple[int, bytes, int]], tmp_path: Path) -> None:
    reader, make = SEEDS[seed]
    path = tmp_path / "x"
    path.write_bytes(damaged(make(), damage))
    require_value_or_named_error(reader, path)


@pytest.mark.parametrize("seed", SEEDS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=600))
def test_random_bytes(seed: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for start in (b"", SEEDS[seed][1]()[:12]):
        path.write_bytes(start + content)
        require_value_or_named_error(SEEDS[seed][0], path)


@pytest.mark.parametrize("seed", SEEDS)
def test_undamaged_files_are_read(seed: str, tmp_path: Path) -> None:
    reader, make = SEEDS[seed]
    (tmp_path / "x").write_bytes(make())
    reader(tmp_path / "x")
