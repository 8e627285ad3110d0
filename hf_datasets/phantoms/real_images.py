"""Real images that nibabel and scikit-image ship, read from the installed packages, never copied here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import nibabel
import numpy as np
from PIL import Image

from evaluator.files import sha256_file
from hf_datasets.phantoms.marker import RealImage


@dataclass(frozen=True)
class Shipped:
    """One image of a package and what anyone who looks at it can say about it."""

    name: str
    package: str
    member: str
    license: str
    organ: str
    questions: tuple[tuple[str, str], ...]


SHIPPED = (
    Shipped(
        "anatomical", "nibabel", "nibabel/tests/data/anatomical.nii", "MIT (nibabel)", "HEAD",
        (("What imaging modality was used?", "MRI"), ("In what plane is this image?", "axial"),
         ("What organ is shown in this image?", "brain")),
    ),
    Shipped(
        "example4d", "nibabel", "nibabel/tests/data/example4d.nii.gz", "MIT (nibabel)", "HEAD",
        (("Is this an MRI of the brain?", "yes"), ("Is this image in the sagittal plane?", "no")),
    ),
    Shipped(
        "retina", "scikit-image", "skimage/data/retina.jpg", "CC0-1.0 (scikit-image data)", "EYE",
        (("What organ is shown in this image?", "eye"), ("Is the optic disc visible?", "yes")),
    ),
    Shipped(
        "ihc", "scikit-image", "skimage/data/ihc.png", "no known copyright restrictions (scikit-image data)",
        "ABD",
        (("Is this a radiograph?", "no"),),
    ),
)  # fmt: skip


def shipped_images() -> list[tuple[Shipped, np.ndarray, RealImage]]:
    """Pixels (uint8, grey or RGB) and origin of each image that the installed packages really hold.

    A distribution may strip a package's data; then that image is simply not among the result.
    """
    found = []
    for item in SHIPPED:
        path = _locate(item)
        if path is not None:
            found.append((item, _pixels(path), _origin(item, path)))
    return found


def _locate(item: Shipped) -> Path | None:
    try:
        path = Path(str(distribution(item.package).locate_file(item.member)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None


def _origin(item: Shipped, path: Path) -> RealImage:
    return RealImage(
        file=f"{item.name}.jpg",
        package=item.package,
        version=distribution(item.package).version,
        member=item.member,
        sha256=sha256_file(path),
        license=item.license,
    )


def _pixels(path: Path) -> np.ndarray:
    if path.name.endswith((".nii", ".nii.gz")):
        return _axial_slice(path)
    with Image.open(path) as image:
        picture = image.convert("RGB")
        picture.thumbnail((512, 512))
        return np.asarray(picture)


def _axial_slice(path: Path) -> np.ndarray:
    """The middle axial slice as radiologists see it (front up, patient's right left), in square pixels."""
    canonical = nibabel.as_closest_canonical(nibabel.load(path))
    volume = np.asarray(canonical.dataobj, dtype=np.float32)
    volume = volume[..., 0] if volume.ndim == 4 else volume
    plane = volume[::-1, ::-1, int(volume.shape[2] * 0.55)].T
    scaled = np.clip(plane / np.percentile(plane, 99.5), 0, 1) * 255
    width, height = (
        int(n * float(s)) for n, s in zip(plane.shape[::-1], canonical.header.get_zooms()[:2], strict=True)
    )
    factor = 256 / max(width, height)
    size = (round(width * factor), round(height * factor))
    return np.asarray(Image.fromarray(scaled.astype(np.uint8)).resize(size, Image.Resampling.BICUBIC))
