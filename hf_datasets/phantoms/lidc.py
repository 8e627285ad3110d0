"""LIDC-IDRI: ``LIDC-IDRI-nnnn/<study>/<series>/1-nnn.dcm`` with four readers' outlines in one XML a series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.slices import ct_slices

PATIENTS, WITH_NODULE = 6, 4
SIZE, SLICES = 192, 4
ROOT = "1.2.826.0.1.3680043.8.498"
CT_IMAGE_STORAGE = "1.2.840.10008.5.1.4.1.1.2"
EXPLICIT_LITTLE_ENDIAN = "1.2.840.10008.1.2.1"
NAMESPACE = "http://www.nih.gov"


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six patients, four with a nodule that the readers outlined."""
    rng = rng_for(seed, "lidc")
    numbers = sorted(int(number) for number in rng.choice(np.arange(1, 1013), PATIENTS, replace=False))
    ill = set(rng.permutation(PATIENTS)[:WITH_NODULE].tolist())
    for index, number in enumerate(numbers):
        _write_patient(out / "LIDC-IDRI", number, index in ill, rng_for(seed, "lidc", number))
    return {}


def _write_patient(root: Path, number: int, finding: bool, rng: Rng) -> None:
    patient, study = f"LIDC-IDRI-{number:04d}", int(rng.integers(10_000, 99_999))
    series = (
        root
        / patient
        / f"01-01-2000-NA-NA-{study}"
        / f"{rng.integers(3_000_000, 3_001_000)}.000000-NA-{study}"
    )
    series.mkdir(parents=True)
    pixel, thickness = float(np.round(rng.uniform(1.7, 1.9), 4)), float(rng.choice([1.25, 2.5]))
    stack = ct_slices(rng, SLICES, SIZE, (thickness, pixel, pixel), chest=True, finding=finding)
    heights = [-120.0 - thickness * index for index in range(SLICES)]
    uid = f"{ROOT}.{number}.{study}"
    for index, (plane, height) in enumerate(zip(stack, heights, strict=True)):
        _write_slice(
            series / f"1-{index + 1:03d}.dcm", plane, patient, uid, index, height, (pixel, thickness)
        )
    (series / f"{number:03d}.xml").write_text(
        _readings(uid, heights, rng if finding else None), encoding="utf-8"
    )


def _write_slice(
    path: Path,
    hu: NDArray[np.int16],
    patient: str,
    uid: str,
    index: int,
    height: float,
    size: tuple[float, float],
) -> None:
    from pydicom.dataset import Dataset, FileMetaDataset

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CT_IMAGE_STORAGE, f"{uid}.1.{index + 1}"
    meta.TransferSyntaxUID, meta.ImplementationClassUID = EXPLICIT_LITTLE_ENDIAN, ROOT
    attributes: dict[str, Any] = {
        "SOPClassUID": CT_IMAGE_STORAGE, "SOPInstanceUID": f"{uid}.1.{index + 1}", "Modality": "CT",
        "PatientID": patient, "PatientName": "", "StudyDate": "20000101", "StudyInstanceUID": uid,
        "SeriesInstanceUID": f"{uid}.1", "InstanceNumber": str(index + 1), "SliceThickness": str(size[1]),
        "ImagePositionPatient": ["0", "0", str(height)], "ImageOrientationPatient": ["1", "0", "0", "0", "1", "0"],
        "PixelSpacing": [str(size[0])] * 2, "Rows": SIZE, "Columns": SIZE, "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2", "BitsAllocated": 16, "BitsStored": 16, "HighBit": 15,
        "PixelRepresentation": 1, "RescaleIntercept": "-1024", "RescaleSlope": "1",
    }  # fmt: skip
    image = Dataset()
    for name, value in attributes.items():
        setattr(image, name, value)
    image.file_meta = meta
    image.PixelData = (hu + np.int16(1024)).tobytes()
    image.save_as(path, enforce_file_format=True)


def _readings(uid: str, heights: list[float], rng: Rng | None) -> str:
    """One session a reader; those who saw the nodule outlined it on two slices."""
    sessions = "".join(f"<readingSession>{_nodule(uid, heights, rng)}</readingSession>" for _ in range(4))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<LidcReadMessage xmlns="{NAMESPACE}"><ResponseHeader>'
        f"<SeriesInstanceUid>{uid}.1</SeriesInstanceUid><TaskDescription>Second unblinded read</TaskDescription>"
        f"</ResponseHeader>{sessions}</LidcReadMessage>\n"
    )


def _nodule(uid: str, heights: list[float], rng: Rng | None) -> str:
    if rng is None or rng.random() < 0.2:
        return ""
    outline = "".join(
        f"<edgeMap><xCoord>{60 + x}</xCoord><yCoord>{80 + x % 3}</yCoord></edgeMap>" for x in range(6)
    )
    first = int(rng.integers(0, 2)) + 1
    rois = "".join(
        f"<roi><imageZposition>{heights[index]}</imageZposition><imageSOP_UID>{uid}.1.{index + 1}</imageSOP_UID>"
        f"<inclusion>TRUE</inclusion>{outline}</roi>"
        for index in (first, first + 1)
    )
    return f"<unblindedReadNodule><noduleID>1</noduleID>{rois}</unblindedReadNodule>"
