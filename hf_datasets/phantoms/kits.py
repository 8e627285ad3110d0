"""KiTS19: ``case_NNNNN/{imaging,segmentation}.nii.gz`` and ``kits.json``.

As upstream, the first array axis runs through the slices from the top of the patient and the affine says
so; labels are 0 background, 1 kidney (cysts included), 2 tumour.
"""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms.abdomen import paint, random_abdomen
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import rng_for

CASES = 6
WITH_TUMOUR = 4
SIZE = 104


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six cases, four of them with tumours."""
    order = rng_for(seed, "kits").permutation(CASES)
    records = [
        _write_case(out, seed, index, lesions=bool(order[index] < WITH_TUMOUR)) for index in range(CASES)
    ]
    (out / "kits.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return {}


def _write_case(out: Path, seed: int, index: int, *, lesions: bool) -> dict[str, object]:
    rng = rng_for(seed, "kits", index)
    pixel = float(np.round(rng.uniform(2.3, 2.75), 3))
    thickness = float(rng.choice([3.5, 4.0, 5.0]))
    shape = (int(rng.integers(36, 45)), SIZE, SIZE)
    plan = random_abdomen(
        rng, SIZE * pixel, lesions=int(rng.integers(1, 3)) if lesions else 0, cysts=int(rng.integers(3))
    )
    painting = paint(plan, shape, (thickness, pixel, pixel), rng)
    labels = painting.kidney.astype(np.uint8) + 2 * painting.tumour.astype(np.uint8)
    name = f"case_{index:05d}"
    folder = out / name
    folder.mkdir()
    affine = kits_affine(thickness, pixel)
    nibabel.save(
        nibabel.Nifti1Image(np.rint(painting.hu).astype(np.int16), affine), folder / "imaging.nii.gz"
    )
    nibabel.save(nibabel.Nifti1Image(labels, affine), folder / "segmentation.nii.gz")
    return {"case_id": name, "captured_pixel_width": pixel, "captured_slice_thickness": thickness}


def kits_affine(thickness: float, pixel: float) -> np.ndarray:
    """The upstream's affine: axes run inferior, posterior, left."""
    affine = np.zeros((4, 4))
    affine[0, 2] = affine[1, 1] = -pixel
    affine[2, 0] = -thickness
    affine[3, 3] = 1
    return affine
