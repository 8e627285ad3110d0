"""Scans of three upstreams whose slices staging makes thick: CT-ORG is drawn here, the others by their own modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms import totalsegmentator
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.msd import PANCREAS
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.trunk import liver_mask, paint_trunk, random_trunk

VOLUMES = 5
SIDE = 96
FOLDER = "OrganSegmentations"


@dataclass(frozen=True)
class Drawing:
    """How the phantom of one task is written."""

    generate: Callable[[Path, int], dict[str, RealImage]]


def _ct_org(out: Path, seed: int) -> dict[str, RealImage]:
    """Five scans of the upper abdomen with labels, liver lesions in three of them."""
    (out / FOLDER).mkdir()
    for index in range(VOLUMES):
        rng = rng_for(seed, "ctorg", index)
        pixel, thickness = float(np.round(rng.uniform(3.5, 3.9), 3)), float(rng.choice([4.0, 5.0]))
        plan = random_trunk(
            rng, SIDE * pixel, male=bool(rng.random() < 0.5), liver=index % 2 * 2, pancreas=False, colon=False
        )
        slices = 36 + 4 * int(rng.integers(3)) + int(rng.integers(4))
        canvas = paint_trunk(plan, (slices, SIDE, SIDE), (thickness, pixel, pixel), -130.0, rng)
        affine = np.diag([pixel, pixel, thickness, 1.0])
        labels = liver_mask(canvas) + 4 * canvas.mask("kidney_left", "kidney_right")
        for name, data in (
            ("volume", np.rint(canvas.values).astype(np.int16)),
            ("labels", labels.astype(np.uint8)),
        ):
            turned = np.ascontiguousarray(data[::-1, ::-1, ::-1].swapaxes(0, 2))
            nibabel.save(nibabel.Nifti1Image(turned, affine), out / FOLDER / f"{name}-{7 * index}.nii.gz")
    return {}


DRAWINGS = {
    "ctorg-ctsr-task": Drawing(_ct_org),
    "msd-pancreas-ctsr-task": Drawing(PANCREAS.generate),
    "totalsegmentator-ctsr-task": Drawing(totalsegmentator.generate),
}


def for_task(task_id: str) -> Drawing:
    """The phantom of one of the tasks."""
    return DRAWINGS[task_id]
