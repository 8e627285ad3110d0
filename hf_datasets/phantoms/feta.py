"""FeTA: BIDS with ``sub-NNN/anat/sub-NNN_rec-{mial,irtk}_{T2w,dseg}.nii.gz`` and ``participants.tsv``.

As upstream, subjects up to 40 were reconstructed with one method and the others with another.
"""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms.fetal_brain import Fetus, draw_brain, t2_weighted
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for

CASES = 6
PATHOLOGICAL = 3


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write six subjects, three of them with wide ventricles."""
    rng = rng_for(seed, "feta")
    numbers = sorted(int(number) for number in 1 + rng.choice(80, CASES, replace=False))
    wide = set(rng.choice(CASES, PATHOLOGICAL, replace=False).tolist())
    lines = ["participant_id\tPathology\tGestational age"]
    for index, number in enumerate(numbers):
        own = rng_for(seed, "feta", number)
        fetus = Fetus(
            weeks=float(np.round(own.uniform(21, 34), 1)),
            widening=float(own.uniform(2.2, 3.6)) if index in wide else float(own.uniform(0.8, 1.2)),
        )
        _write_case(out, f"sub-{number:03d}", "mial" if number <= 40 else "irtk", fetus, own)
        kind = "Pathological" if index in wide else "Neurotypical"
        lines.append(f"sub-{number:03d}\t{kind}\t{fetus.weeks}")
    (out / "participants.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {}


def _write_case(out: Path, name: str, method: str, fetus: Fetus, rng: Rng) -> None:
    spacing = float(np.round(fetus.half_width / 30 * rng.uniform(1.0, 1.1), 4))
    labels = draw_brain(fetus, (68, 84, 70), spacing, rng)
    affine = np.diag([-spacing, -spacing, spacing, 1.0])
    affine[:3, 3] = np.round(rng.uniform(-60, 60, 3), 3)
    folder = out / name / "anat"
    folder.mkdir(parents=True)
    for kind, data in (("T2w", t2_weighted(labels, rng)), ("dseg", labels)):
        nibabel.save(nibabel.Nifti1Image(data, affine), folder / f"{name}_rec-{method}_{kind}.nii.gz")
