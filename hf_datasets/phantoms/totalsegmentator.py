"""TotalSegmentator v2: ``sNNNN/{ct.nii.gz, segmentations/<class>.nii.gz}`` and ``meta.csv``.

As upstream, a case is a part of a body on an isotropic grid, and every class has a file in every case, also
where the class lies outside of the scan or was never there. Voxels are larger than upstream's 1.5 mm.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms.anatomy import Person
from hf_datasets.phantoms.body import Grid
from hf_datasets.phantoms.ct_body import draw_body, hounsfield
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for
from tasks.registry import load_task
from tasks.schema import MaskOutput

TASK = "tsg-multiorgan-seg-task"
VOXEL_MM = 5.5
SCANS = (
    ("ct thorax", 150, 420),
    ("ct thorax-abdomen", 0, 400),
    ("ct abdomen-pelvis", -215, 200),
    ("ct neck-thorax", 230, 655),
    ("ct polytrauma", -215, 330),
)
"""Kind of study, and from which height to which it goes in mm."""


def class_ids() -> dict[str, int]:
    """Name -> id of the 117 classes, as the task numbers them."""
    output = load_task(TASK).output
    assert isinstance(output, MaskOutput)
    return {name: value for value, name in output.files[0].labels.items() if value}


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write five cases: one scan of each kind, organs absent in some."""
    rng = rng_for(seed, "totalsegmentator")
    numbers = sorted(int(number) for number in rng.choice(1429, len(SCANS), replace=False))
    rows = []
    for number, scan in zip(numbers, rng.permutation(len(SCANS)), strict=True):
        case = f"s{number:04d}"
        rows.append(
            [case, *_write_case(out / case, SCANS[int(scan)], rng_for(seed, "totalsegmentator", case))]
        )
    with (out / "meta.csv").open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle, delimiter=";", lineterminator="\n")
        table.writerow(["image_id", "age", "gender", "institute", "study_type", "split"])
        table.writerows(rows)
    return {}


def _write_case(folder: Path, scan: tuple[str, int, int], rng: Rng) -> list[str]:
    kind, low, high = scan
    person = Person(
        male=bool(rng.random() < 0.5),
        gallbladder=bool(rng.random() < 0.6),
        cysts=tuple(name for name in ("left", "right") if rng.random() < 0.35),
        girth=float(rng.uniform(0.8, 1.4)),
    )
    canvas = draw_body(_grid(low, high, rng), person, rng)
    ids = class_ids()
    labels = canvas.labels(ids).T
    affine = np.diag([-VOXEL_MM, -VOXEL_MM, VOXEL_MM, 1.0])
    affine[:3, 3] = np.round(rng.uniform(-300, 300, 3), 3)
    (folder / "segmentations").mkdir(parents=True)
    hu = np.rint(hounsfield(canvas, rng)).astype(np.int16).T
    nibabel.save(nibabel.Nifti1Image(hu, affine), folder / "ct.nii.gz")
    nothing = _packed(np.zeros(labels.shape, np.uint8), affine)
    drawn = np.bincount(labels.ravel(order="K"), minlength=256)
    for name, value in ids.items():
        mask = _packed((labels == value).view(np.uint8), affine) if drawn[value] else nothing
        (folder / "segmentations" / f"{name}.nii.gz").write_bytes(mask)
    return [str(rng.integers(25, 90)), "m" if person.male else "f", "A", kind, "test"]


def _packed(mask: NDArray[np.uint8], affine: NDArray[np.float64]) -> bytes:
    """A mask as the bytes of a ``.nii.gz`` file, so that the many empty ones are packed once."""
    return gzip.compress(nibabel.Nifti1Image(mask, affine).to_bytes(), compresslevel=1, mtime=0)


def _grid(low: int, high: int, rng: Rng) -> Grid:
    """Other sizes of a body are other millimetres a voxel of the drawing."""
    size = float(rng.uniform(0.92, 1.08))
    step = VOXEL_MM / size
    slices = round((high - low) / VOXEL_MM)
    centre = (float(rng.normal(0, 4)), float(rng.normal(4, 3)), (low + high) / 2 + float(rng.normal(0, 8)))
    return Grid((slices, 49, 77), (step, step, step), centre)
