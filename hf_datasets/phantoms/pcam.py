"""PatchCamelyon: ``camelyonpatch_level_2_split_test_{x,y}.h5.gz``, patches (n, 96, 96, 3) and labels (n, 1, 1, 1)."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import h5py
import numpy as np

from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.tissue import node_patch

SIZE, POSITIVE, MARGIN, NEGATIVE = 96, 10, 5, 12
PREFIX = "camelyonpatch_level_2_split_test"


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write patches in random order: with tumour in the middle, with tumour at the border only, and without."""
    kinds = [(True, False)] * POSITIVE + [(False, True)] * MARGIN + [(False, False)] * (NEGATIVE - MARGIN)
    order = rng_for(seed, "pcam").permutation(len(kinds))
    chosen = [kinds[index] for index in order]
    patches = np.stack(
        [
            node_patch(tumour=tumour, margin=margin, size=SIZE, rng=rng_for(seed, "pcam", index))
            for index, (tumour, margin) in enumerate(chosen)
        ]
    )
    labels = np.array([tumour for tumour, _ in chosen], dtype=np.uint8).reshape(-1, 1, 1, 1)
    for name, values in (("x", patches), ("y", labels)):
        buffer = io.BytesIO()
        with h5py.File(buffer, "w", track_order=False) as file:
            file.create_dataset(name, data=values, track_times=False)
        (out / f"{PREFIX}_{name}.h5.gz").write_bytes(gzip.compress(buffer.getvalue(), 6, mtime=0))
    return {}
