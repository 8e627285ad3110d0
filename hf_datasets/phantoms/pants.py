"""PanTS: ``ImageTr/PanTS_NNNNNNNN/ct.nii.gz``, ``LabelTr/PanTS_NNNNNNNN/segmentations/`` with upstream's 28 masks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms.canvas import Canvas
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Mask, rng_for
from hf_datasets.phantoms.trunk import PARTS_OF_PANCREAS, liver_mask, paint_trunk, random_trunk
from hf_datasets.staging.pants import STRUCTURES


@dataclass(frozen=True)
class Scans:
    """How many patients are drawn, how many of them with a pancreatic lesion, and what their scans cover.

    ``top`` and ``height`` in mm: where the scan begins and how far it goes; ``thickness`` and ``pixel`` in mm.
    """

    name: str
    cases: int
    with_lesion: int
    top: float
    height: float
    thickness: float
    pixel: float
    side: int

    def generate(self, out: Path, seed: int) -> dict[str, RealImage]:
        """Write the cases in upstream's layout."""
        order = rng_for(seed, self.name).permutation(self.cases)
        for index in range(self.cases):
            self._write_case(out, seed, index, lesion=bool(order[index] < self.with_lesion))
        return {}

    def _write_case(self, out: Path, seed: int, index: int, *, lesion: bool) -> None:
        rng = rng_for(seed, self.name, index)
        pixel = float(np.round(self.pixel * rng.uniform(0.95, 1.04), 3))
        thickness = float(np.round(self.thickness * rng.uniform(0.95, 1.05), 2))
        shape = (round(self.height / thickness), self.side, self.side)
        plan = random_trunk(rng, self.side * pixel, male=index % 2 == 0, pancreas=lesion)
        canvas = paint_trunk(plan, shape, (thickness, pixel, pixel), self.top, rng)
        affine = np.diag([-pixel, -pixel, thickness, 1.0])
        name = f"PanTS_{index + 1:08d}"
        image, labels = out / "ImageTr" / name, out / "LabelTr" / name / "segmentations"
        image.mkdir(parents=True)
        labels.mkdir(parents=True)
        save(image / "ct.nii.gz", np.rint(canvas.values).astype(np.int16), affine)
        for structure in STRUCTURES:
            save(labels / f"{structure}.nii.gz", _mask(canvas, structure).astype(np.uint8), affine)


SCANS = {
    "pancreas-seg-task": Scans("pants-tumour", 6, 4, -105.0, 190.0, 5.0, 3.55, 96),
    "pancreas-oar-seg-task": Scans("pants-organs", 5, 3, -200.0, 585.0, 8.0, 4.6, 78),
}


def for_task(task_id: str) -> Scans:
    """The phantom of one of the tasks that PanTS serves."""
    return SCANS[task_id]


def save(path: Path, data: NDArray[np.generic], affine: NDArray[np.float64]) -> None:
    """Write a volume painted from the top as one whose axes run left, backwards and upwards."""
    nibabel.save(nibabel.Nifti1Image(np.ascontiguousarray(data[::-1].transpose(2, 1, 0)), affine), path)


def _mask(canvas: Canvas, structure: str) -> Mask:
    match structure:
        case "pancreas":
            return canvas.mask(*PARTS_OF_PANCREAS, "pancreatic_duct", "pancreatic_lesion")
        case "liver":
            return liver_mask(canvas)
    return canvas.mask(structure)
