"""Single CT slices of chest and abdomen with a finding, for upstreams that keep slices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hf_datasets.phantoms import abdomen, thorax
from hf_datasets.phantoms.shapes import Rng


def ct_slices(
    rng: Rng, count: int, size: int, spacing: tuple[float, float, float], *, chest: bool, finding: bool
) -> NDArray[np.int16]:
    """A short stack (slices, rows, columns) in HU, front up and the patient's right at the left.

    Parameters
    ----------
    spacing
        Millimetres between slices, rows and columns.
    finding
        A nodule in the chest, or a mass of a kidney in the abdomen.
    """
    shape, width = (count, size, size), size * spacing[1]
    if chest:
        nodule = (int(rng.choice([-1, 1])), float(rng.uniform(4, 9))) if finding else None
        hu = thorax.paint(thorax.random_chest(rng, width, nodule=nodule), shape, spacing, rng)
    else:
        plan = abdomen.random_abdomen(rng, width, lesions=int(finding), cysts=int(rng.integers(2)))
        hu = abdomen.paint(plan, shape, spacing, rng).hu
    return np.rint(hu).astype(np.int16)
