"""PanTS and PanTSMini: ``Image*/PanTS_N/ct.nii.gz`` with ``Label*/PanTS_N/segmentations/<structure>.nii.gz``.

The parts are ``Tr`` and ``Te``, at the source's top or under ``data/``. Labels come in one archive and images in
several, so labels without an image are left aside; an image without labels is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders, StagingError, listing, refuse_strangers, some
from hf_datasets.staging.nifti import Volume, as_stored, read_labels, read_volume, same_grid, write_volume

STRUCTURES = (
    "adrenal_gland_left", "adrenal_gland_right", "aorta", "bladder", "celiac_artery", "colon", "common_bile_duct",
    "duodenum", "femur_left", "femur_right", "gall_bladder", "kidney_left", "kidney_right", "liver", "lung_left",
    "lung_right", "pancreas", "pancreas_body", "pancreas_head", "pancreas_tail", "pancreatic_duct", "pancreatic_lesion",
    "postcava", "prostate", "spleen", "stomach", "superior_mesenteric_artery", "veins",
)  # fmt: skip
"""Upstream's 28 masks; the place in this list, from 1, is the id in a label map."""
LESION = "pancreatic_lesion"
NOT_TARGETS = frozenset(
    ("celiac_artery", "common_bile_duct", "pancreas_body", "pancreas_head", "pancreas_tail", "pancreatic_duct",
     "superior_mesenteric_artery")
)  # fmt: skip
TARGETS = {name: number for number, name in enumerate(STRUCTURES, 1) if name not in NOT_TARGETS}
IMAGE = "ct.nii.gz"
PARTS = ("Tr", "Te")

_CASE = re.compile(r"PanTS_\d{8}")


@dataclass(frozen=True)
class PantsCase:
    """One patient: an image folder and the masks that the task needs."""

    folder: Path
    masks: Path
    view: View
    image: str = ""

    @property
    def origin(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Sequence[Path]:
        return (self.folder / IMAGE, *(self.masks / f"{name}.nii.gz" for name in self.view.structures))

    def write(self, to: CaseFolders) -> None:
        scan = read_volume(self.folder / IMAGE)
        labels = self.view.files({name: self._mask(name, scan) for name in self.view.structures})
        write_volume(to.public / IMAGE, as_stored(scan), scan.affine)
        for name, data in labels.items():
            write_volume(to.private / name, data, scan.affine)

    def _mask(self, name: str, scan: Volume) -> NDArray[np.bool_]:
        path = self.masks / f"{name}.nii.gz"
        mask = read_labels(path, (0, 1))
        same_grid(self.folder / IMAGE, scan, path, mask)
        return np.asarray(mask.data > 0)


@dataclass(frozen=True)
class View:
    """What one task takes from the dataset."""

    structures: tuple[str, ...]
    NOTES: dict[str, str]

    def files(self, masks: Mapping[str, NDArray[np.bool_]]) -> dict[str, NDArray[np.uint8]]:
        """The private label maps of a case, made from its masks."""
        if len(self.structures) == 2:
            lesion = masks[LESION]
            organ = masks["pancreas"] | lesion
            return {"organ.nii.gz": organ.astype(np.uint8), "lesion.nii.gz": lesion.astype(np.uint8)}
        labels = np.zeros(next(iter(masks.values())).shape, dtype=np.uint8)
        for name in (*(name for name in self.structures if name != LESION), LESION):
            labels[masks[name]] = TARGETS[name]
        return {"dseg.nii.gz": labels}

    def find(self, source: Path) -> Sequence[PantsCase]:
        """Every case with an image, in order of number."""
        root = source / "data" if (source / "data").is_dir() else source
        images = [root / f"Image{part}" for part in PARTS if (root / f"Image{part}").is_dir()]
        if not images:
            raise StagingError(
                f"{source}: expected ImageTr/ or ImageTe/, found {listing(root)}; run upstream's scripts"
            )
        return [case for folder in images for case in self._part(folder)]

    def _part(self, images: Path) -> list[PantsCase]:
        labels = images.parent / images.name.replace("Image", "Label")
        if not labels.is_dir():
            raise StagingError(
                f"{labels}: expected the labels of {images.name} here, found {listing(images.parent)}"
            )
        folders = sorted(path for path in images.iterdir() if not path.name.startswith("."))
        if not folders:
            raise StagingError(f"{images}: expected folders PanTS_00000001, ..., found an empty folder")
        return [self._case(folder, labels / folder.name / "segmentations") for folder in folders]

    def _case(self, folder: Path, masks: Path) -> PantsCase:
        if not folder.is_dir() or _CASE.fullmatch(folder.name) is None:
            raise StagingError(
                f"{folder}: unexpected; expected folders such as PanTS_00000001 and nothing else"
            )
        names = [path.name for path in folder.iterdir()]
        if IMAGE not in names:
            raise StagingError(
                f"{folder}: expected {IMAGE}, found {listing(folder)}; unpack the image archive again"
            )
        refuse_strangers(folder, names, (IMAGE,))
        if not masks.is_dir():
            raise StagingError(f"{masks}: expected the masks of {folder.name}, found {listing(masks.parent)}")
        there = {path.name for path in masks.iterdir()}
        wanted = {f"{name}.nii.gz" for name in self.structures}
        if missing := wanted - there:
            raise StagingError(
                f"{masks}: expected {some(missing)}, found {len(there)} other files; unpack the labels again"
            )
        refuse_strangers(masks, there, [f"{name}.nii.gz" for name in STRUCTURES])
        return PantsCase(folder, masks, self)


_GRID = {"grid": "upstream's array axes and affine unchanged; fresh NIfTI headers"}
VIEWS = {
    "pancreas-seg-task": View(
        ("pancreas", LESION),
        {
            "labels": "organ = upstream pancreas or pancreatic_lesion, lesion = upstream pancreatic_lesion",
            **_GRID,
        },
    ),
    "pancreas-oar-seg-task": View(
        tuple(TARGETS),
        {
            "labels": "where upstream's masks overlap, the higher id counts, and the lesion before all",
            **_GRID,
        },
    ),
}


def for_task(task_id: str) -> View:
    """The view of one of the tasks that PanTS serves."""
    return VIEWS[task_id]
