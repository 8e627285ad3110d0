"""IXI: ``IXI-T1.tar`` with scans such as ``IXI002-Guys-0828-T1.nii.gz``, acquired in sagittal planes."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms import head
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for, smooth_noise

SUBJECTS = 6
SITES = ("Guys", "HH", "IOP")
SIZE, PLANES = 128, 9
PIXEL, THICKNESS = 1.85, 15.0


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write the tar of six healthy subjects."""
    rng = rng_for(seed, "ixi")
    with tarfile.open(out / "IXI-T1.tar", "w") as tar:
        for number in sorted(
            int(number) for number in rng.choice(np.arange(2, 663), SUBJECTS, replace=False)
        ):
            content = _scan(rng_for(seed, "ixi", number))
            member = tarfile.TarInfo(
                f"IXI{number:03d}-{rng.choice(SITES)}-{rng.integers(600, 2900):04d}-T1.nii.gz"
            )
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return {}


def _scan(rng: Rng) -> bytes:
    """Array axes run to the back, to the feet and to the left, as the affine says."""
    plan = head.random_head(rng)
    y = ((np.arange(SIZE, dtype=np.float32) - (SIZE - 1) / 2) * PIXEL)[:, None, None]
    z = (np.float32(88) - np.arange(SIZE, dtype=np.float32) * PIXEL + 20)[None, :, None]
    x = ((np.arange(PLANES, dtype=np.float32) - (PLANES - 1) / 2 + 0.3) * THICKNESS)[None, None, :]
    signal = head.paint(plan, x, y, z, head.T1, PIXEL)
    signal *= 1 + 0.06 * smooth_noise(signal.shape, (25, 25, 1), rng)
    noise = 0.018 * rng.standard_normal((2, *signal.shape))
    magnitude = np.hypot(signal + noise[0], noise[1])
    affine = np.array(
        [[0, 0, -THICKNESS, 90], [-PIXEL, 0, 0, 120], [0, -PIXEL, 0, 110], [0, 0, 0, 1]], dtype=np.float64
    )
    image = nibabel.Nifti1Image(np.clip(700 * magnitude, 0, None).astype(np.int16), affine)
    path = io.BytesIO()
    with gzip.GzipFile(fileobj=path, mode="wb", mtime=0, compresslevel=6) as stream:
        stream.write(image.to_bytes())
    return path.getvalue()
