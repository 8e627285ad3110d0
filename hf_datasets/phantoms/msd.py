"""Medical Segmentation Decathlon: ``TaskNN_Name.tar`` of ``dataset.json``, ``imagesTr``, ``labelsTr``, ``imagesTs``."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms.canvas import Canvas
from hf_datasets.phantoms.heart import paint_heart
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.prostate import paint_prostate
from hf_datasets.phantoms.shapes import Rng, rng_for
from hf_datasets.phantoms.trunk import PARTS_OF_PANCREAS, liver_mask, paint_trunk, random_trunk

Labels = NDArray[np.uint8]


@dataclass(frozen=True)
class Drawn:
    """One scan as painted (slices from the top, rows from the front, columns from the right; channels last)."""

    image: NDArray[Any]
    labels: Labels
    spacing: tuple[float, float, float]


@dataclass(frozen=True)
class Dataset:
    """One task's tar: its names, its label names, and how a case is drawn; ``finding`` says if it has a lesion."""

    folder: str
    prefix: str
    labels: dict[str, str]
    modality: dict[str, str]
    draw: Callable[[Rng, bool], Drawn]
    cases: int = 6
    with_finding: int = 4

    def generate(self, out: Path, seed: int) -> dict[str, RealImage]:
        """Write the tar, hidden companions included, as upstream packs it; the last case has no labels."""
        order = rng_for(seed, self.folder).permutation(self.cases)
        names = [f"{self.prefix}_{3 * index + 1:03d}" for index in range(self.cases)]
        files: dict[str, bytes] = {"dataset.json": self._index(names)}
        for index, name in enumerate(names):
            drawn = self.draw(rng_for(seed, self.folder, index), bool(order[index] < self.with_finding))
            files[f"imagesTr/{name}.nii.gz"] = nifti(drawn.image, drawn.spacing)
            files[f"labelsTr/{name}.nii.gz"] = nifti(drawn.labels, drawn.spacing)
        files[f"imagesTs/{self._unlabelled}.nii.gz"] = nifti(drawn.image[:4], drawn.spacing)
        write_tar(out / f"{self.folder}.tar", self.folder, files)
        return {}

    @property
    def _unlabelled(self) -> str:
        return f"{self.prefix}_002"

    def _index(self, names: list[str]) -> bytes:
        content = {
            "name": self.folder.split("_")[1],
            "tensorImageSize": "4D" if len(self.modality) > 1 else "3D",
            "modality": self.modality,
            "labels": self.labels,
            "numTraining": len(names),
            "numTest": 1,
            "training": [
                {"image": f"./imagesTr/{name}.nii.gz", "label": f"./labelsTr/{name}.nii.gz"} for name in names
            ],
            "test": [f"./imagesTs/{self._unlabelled}.nii.gz"],
        }
        return json.dumps(content, indent=1).encode() + b"\n"


def write_tar(path: Path, folder: str, files: dict[str, bytes]) -> None:
    """Pack files below ``folder``, each with a hidden companion as the upstream's tars have them."""
    with tarfile.open(path, "w") as tar:
        for name, content in _with_companions(folder, files):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def _with_companions(folder: str, files: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    for name, content in files.items():
        parent, _, last = f"{folder}/{name}".rpartition("/")
        yield f"{parent}/._{last}", b"\0" * 16
        yield f"{parent}/{last}", content


def nifti(data: NDArray[Any], spacing: tuple[float, float, float]) -> bytes:
    """A compressed volume in RAS order, of an array whose axes run down, back and left."""
    turned = data[::-1, ::-1, ::-1].swapaxes(0, 2)
    affine = np.diag([spacing[2], spacing[1], spacing[0], 1.0])
    path = io.BytesIO()
    with gzip.GzipFile(fileobj=path, mode="wb", mtime=0, compresslevel=6) as stream:
        stream.write(nibabel.Nifti1Image(np.ascontiguousarray(turned), affine).to_bytes())
    return path.getvalue()


def _trunk(
    label: Callable[[Canvas], Labels], top: float, height: float, pixel: float, side: int, **lesions: int
) -> Callable[[Rng, bool], Drawn]:
    """A CT of part of the trunk; ``lesions`` says how many lesions of each organ a case with a finding has."""

    def draw(rng: Rng, finding: bool) -> Drawn:
        spacing = (float(rng.choice([4.5, 5.0])), *(float(np.round(pixel * rng.uniform(0.95, 1.05), 3)),) * 2)
        shape = (round(height / spacing[0]), side, side)
        number = {name: int(rng.integers(1, most + 1)) for name, most in lesions.items() if finding}
        plan = random_trunk(
            rng,
            side * spacing[1],
            male=bool(rng.random() < 0.5),
            liver=number.get("liver", 0),
            pancreas="pancreas" in number,
            colon="colon" in number,
        )
        canvas = paint_trunk(plan, shape, spacing, top, rng)
        return Drawn(np.rint(canvas.values).astype(np.int16), label(canvas), spacing)

    return draw


def _two(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Labels:
    return np.where(second, 2, first).astype(np.uint8)


def _liver(canvas: Canvas) -> Labels:
    return _two(liver_mask(canvas), canvas.mask("liver_lesion"))


def _pancreas(canvas: Canvas) -> Labels:
    return _two(canvas.mask(*PARTS_OF_PANCREAS, "pancreatic_duct"), canvas.mask("pancreatic_lesion"))


def _vessels(canvas: Canvas) -> Labels:
    return _two(canvas.mask("hepatic_vessel"), canvas.mask("liver_lesion"))


def _colon(canvas: Canvas) -> Labels:
    return canvas.mask("colon_cancer").astype(np.uint8)


def _spleen(canvas: Canvas) -> Labels:
    return canvas.mask("spleen").astype(np.uint8)


def _heart(rng: Rng, _finding: bool) -> Drawn:
    spacing = (float(np.round(rng.uniform(3.0, 3.4), 2)), *(float(np.round(rng.uniform(3.0, 3.4), 3)),) * 2)
    signal, atrium = paint_heart((46, 96, 96), spacing, rng)
    return Drawn(np.rint(signal).astype(np.int16), atrium.astype(np.uint8), spacing)


def _prostate(rng: Rng, finding: bool) -> Drawn:
    spacing = (3.6, *(float(np.round(rng.uniform(1.35, 1.5), 3)),) * 2)
    signal, labels = paint_prostate((18, 104, 104), spacing, rng, lesion=finding)
    return Drawn(np.rint(signal).astype(np.int16), labels, spacing)


CT, BACKGROUND = {"0": "CT"}, {"0": "background"}
DATASETS = {
    "liver-seg-task": Dataset(
        "Task03_Liver", "liver", {**BACKGROUND, "1": "liver", "2": "cancer"}, CT,
        _trunk(_liver, -150.0, 190.0, 3.65, 96, liver=3),
    ),
    "colon-seg-task": Dataset(
        "Task10_Colon", "colon", {**BACKGROUND, "1": "colon cancer primaries"}, CT,
        _trunk(_colon, -40.0, 310.0, 4.3, 84, colon=1), cases=5,
    ),
    "hepaticvessel-seg-task": Dataset(
        "Task08_HepaticVessel", "hepaticvessel", {**BACKGROUND, "1": "Vessel", "2": "Tumour"}, CT,
        _trunk(_vessels, -150.0, 190.0, 3.1, 112, liver=2), cases=5, with_finding=3,
    ),
    "spleen-seg-task": Dataset(
        "Task09_Spleen", "spleen", {**BACKGROUND, "1": "spleen"}, CT, _trunk(_spleen, -140.0, 170.0, 3.5, 100),
    ),
    "heart-seg-task": Dataset(
        "Task02_Heart", "la", {**BACKGROUND, "1": "left atrium"}, {"0": "MRI"}, _heart, cases=5
    ),
    "prostate-seg-task": Dataset(
        "Task05_Prostate", "prostate", {**BACKGROUND, "1": "PZ", "2": "TZ"}, {"0": "T2", "1": "ADC"}, _prostate
    ),
}  # fmt: skip
PANCREAS = Dataset(
    "Task07_Pancreas", "pancreas", {**BACKGROUND, "1": "pancreas", "2": "cancer"}, CT,
    _trunk(_pancreas, -105.0, 190.0, 3.5, 100, pancreas=1),
)  # fmt: skip
"""Task07, for tasks that restore its scans."""


def for_task(task_id: str) -> Dataset:
    """The phantom of one of the tasks that the Decathlon serves."""
    return DATASETS[task_id]
