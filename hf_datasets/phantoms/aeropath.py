"""AeroPath: ``N/{N_CT_HR,N_CT_HR_label_airways,N_CT_HR_label_lungs}.nii.gz``.

As upstream, the lungs are ill in ways that make airways hard to follow: masses, consolidation, emphysema.
"""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np

from hf_datasets.phantoms.airway_tree import Branch, covered, grow
from hf_datasets.phantoms.anatomy import Person
from hf_datasets.phantoms.body import Canvas, Grid, Part, draw, egg
from hf_datasets.phantoms.ct_body import draw_body, hounsfield
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.shapes import Rng, rng_for

ILLNESSES = ("none", "mass", "emphysema", "consolidation", "mass")
LUNGS = (
    "lung_upper_lobe_left",
    "lung_lower_lobe_left",
    "lung_upper_lobe_right",
    "lung_middle_lobe_right",
    "lung_lower_lobe_right",
)


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write five cases."""
    order = rng_for(seed, "aeropath").permutation(len(ILLNESSES))
    for index, illness in enumerate(order, 1):
        _write_case(out / str(index), ILLNESSES[int(illness)], rng_for(seed, "aeropath", index))
    return {}


def _write_case(folder: Path, illness: str, rng: Rng) -> None:
    step, thickness = float(np.round(rng.uniform(3.0, 3.25), 3)), float(rng.choice([3.25, 3.5]))
    centre = (0.0, 8.0, 274.0)
    grid = Grid(
        (round(232 / thickness), round(208 / step), round(296 / step)), (thickness, step, step), centre
    )
    canvas = draw_body(grid, Person(girth=float(rng.uniform(0.7, 1.2))), rng)
    lungs = canvas.of(*LUNGS)
    tree = grow(lambda point: _is_in(canvas, lungs, point), rng)
    healthy = canvas.paint.copy()
    draw(canvas, _illness(illness, tree, rng))
    canvas.paint[~lungs] = healthy[~lungs]
    canvas.paint[canvas.of("trachea")] = canvas.colour("", "muscle")
    wall, lumen = covered(canvas, tree, 1.6), covered(canvas, tree, 0.0)
    canvas.paint[wall] = canvas.colour("", "airway wall")
    canvas.paint[lumen] = canvas.colour("airway", "gas")
    others = {"airway wall": -120.0, "mass": 45.0, "consolidation": 10.0, "emphysema": -970.0}
    hu = hounsfield(canvas, rng, noise=float(rng.uniform(9, 14)), **others)
    affine = np.diag([-step, -step, thickness, 1.0])
    affine[:3, 3] = np.round(rng.uniform(-200, 200, 3), 3)
    folder.mkdir()
    ill = canvas.of("illness")
    for name, data in (
        ("", np.rint(hu).astype(np.int16)),
        ("_label_airways", lumen.astype(np.uint8)),
        ("_label_lungs", ((canvas.of(*LUNGS) | ill | (lungs & wall)) & ~lumen).astype(np.uint8)),
    ):
        nibabel.save(nibabel.Nifti1Image(data.T, affine), folder / f"{folder.name}_CT_HR{name}.nii.gz")


def _is_in(canvas: Canvas, lungs: np.ndarray, point: np.ndarray) -> bool:
    index = tuple(int(np.searchsorted(canvas.grid.axis(i), point[2 - i])) for i in range(3))
    return all(0 < i < n for i, n in zip(index, lungs.shape, strict=True)) and bool(lungs[index])


def _illness(kind: str, tree: list[Branch], rng: Rng) -> list[Part]:
    """What is drawn around the ends of a few branches, or nothing."""
    ends = [branch.end for branch in tree if branch.radius < 4 and abs(branch.end[0]) > 50]
    chosen = [
        ends[int(i)] for i in rng.choice(len(ends), min(len(ends), 1 if kind == "mass" else 6), replace=False)
    ]
    radius = {"none": 0.0, "mass": 17.0, "emphysema": 9.0, "consolidation": 11.0}[kind]
    return [
        egg("illness", kind, (float(x), float(y), float(z)), tuple(radius * rng.uniform(0.8, 1.2, 3)))
        for x, y, z in chosen
        if radius
    ]
