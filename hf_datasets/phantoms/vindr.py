"""VinDr-CXR: ``train/<id>.dicom`` and ``annotations/annotations_train.csv`` with the marks of three readers a film."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms.chest_xray import Findings, Side, frontal_with_extents
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Mask, Rng, rng_for

ROOT = "1.2.826.0.1.3680043.8.498"
DIGITAL_XRAY = "1.2.840.10008.5.1.4.1.1.1.1"
EXPLICIT_LITTLE_ENDIAN = "1.2.840.10008.1.2.1"
HEADER = ("image_id", "rad_id", "class_name", "x_min", "y_min", "x_max", "y_max")
READERS, POOL = 3, 17
CLASS_OF = {
    "cardiomegaly": "Cardiomegaly",
    "wide_aorta": "Aortic enlargement",
    "effusion": "Pleural effusion",
    "pneumothorax": "Pneumothorax",
    "nodule": "Nodule/Mass",
    "consolidation": "Consolidation",
}
FILMS = (
    Findings(),
    Findings(cardiomegaly=True, wide_aorta=True),
    Findings(effusion="right"),
    Findings(pneumothorax="left"),
    Findings(nodule=("right", "upper")),
    Findings(consolidation=("left", "mid")),
    Findings(cardiomegaly=True, effusion="left"),
    Findings(wide_aorta=True, nodule=("left", "mid")),
    Findings(catheter=True),
)

OTHER: dict[Side, Side] = {"right": "left", "left": "right"}

Box = tuple[float, float, float, float]


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write nine films, seven of them with findings, one turned over (MONOCHROME1)."""
    rng = rng_for(seed, "vindr")
    (out / "train").mkdir(parents=True)
    (out / "annotations").mkdir()
    rows: list[list[object]] = []
    for index, place in enumerate(rng.permutation(len(FILMS)).tolist()):
        name = rng.bytes(16).hex()
        own = rng_for(seed, "vindr", name)
        film, extents = frontal_with_extents(_mirrored(FILMS[place], own), own)
        _write_film(out / "train" / f"{name}.dicom", film, index, own, turned=index == 0)
        drawn = {CLASS_OF[field]: _box(mask) for field, mask in extents.items()}
        missed = {name: int(own.integers(0, 5)) for name in drawn}
        readers = sorted(own.choice(np.arange(1, POOL + 1), READERS, replace=False).tolist())
        for rank, reader in enumerate(readers):
            seen = {name: box for name, box in drawn.items() if missed[name] != rank}
            rows += [[name, f"R{reader}", *mark] for mark in _read(seen, film.shape, own)]
    with (out / "annotations" / "annotations_train.csv").open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, lineterminator="\n").writerows(
            [HEADER, *(rows[i] for i in rng.permutation(len(rows)))]
        )
    return {}


def _mirrored(findings: Findings, rng: Rng) -> Findings:
    """The same findings, on the other side in half of the films."""
    if rng.random() < 0.5:
        return findings
    nodule, patch = findings.nodule, findings.consolidation
    return replace(
        findings,
        effusion=findings.effusion and OTHER[findings.effusion],
        pneumothorax=findings.pneumothorax and OTHER[findings.pneumothorax],
        nodule=nodule and (OTHER[nodule[0]], nodule[1]),
        consolidation=patch and (OTHER[patch[0]], patch[1]),
    )


def _box(mask: Mask) -> Box:
    rows, columns = np.nonzero(mask)
    return float(columns.min()), float(rows.min()), float(columns.max() + 1), float(rows.max() + 1)


def _read(seen: dict[str, Box], shape: tuple[int, ...], rng: Rng) -> Iterator[list[object]]:
    """One reader's rows: the findings a little off, and now and then one that is not there."""
    marks = [(name, _unsteady(box, shape, rng)) for name, box in seen.items()]
    if rng.random() < 0.12:
        x, y = rng.uniform(60, 200), rng.uniform(60, 200)
        marks.append(("Lung Opacity", (x, y, x + 40, y + 30)))
    if not marks:
        yield ["No finding", "", "", "", ""]
    for name, box in marks:
        yield [name, *(round(value) for value in box)]


def _unsteady(box: Box, shape: tuple[int, ...], rng: Rng) -> Box:
    x1, y1, x2, y2 = box
    loose = 0.03 * np.array([x2 - x1, y2 - y1, x2 - x1, y2 - y1]) + 0.5
    corners = np.array(box) + loose * rng.standard_normal(4)
    a, b, c, d = np.clip(corners, 0, [shape[1], shape[0], shape[1], shape[0]]).tolist()
    return a, b, c, d


def _write_film(path: Path, film: NDArray[np.uint8], number: int, rng: Rng, turned: bool) -> None:
    from pydicom.dataset import Dataset, FileMetaDataset

    meta = FileMetaDataset()
    uid = f"{ROOT}.7.{number}"
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = DIGITAL_XRAY, uid
    meta.TransferSyntaxUID, meta.ImplementationClassUID = EXPLICIT_LITTLE_ENDIAN, ROOT
    image = Dataset()
    image.file_meta = meta
    image.SOPClassUID, image.SOPInstanceUID, image.Modality = DIGITAL_XRAY, uid, "DX"
    image.PatientSex, image.PatientAge = str(rng.choice(["F", "M"])), f"{rng.integers(18, 90):03d}Y"
    image.Rows, image.Columns = film.shape
    image.SamplesPerPixel, image.PixelRepresentation = 1, 0
    image.BitsAllocated, image.BitsStored, image.HighBit = 16, 12, 11
    image.PhotometricInterpretation = "MONOCHROME1" if turned else "MONOCHROME2"
    stored = film.astype(np.uint16) * 16
    image.PixelData = (4080 - stored if turned else stored).astype("<u2").tobytes()
    image.save_as(path, enforce_file_format=True)
