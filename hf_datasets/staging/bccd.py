"""BCCD: Pascal-VOC annotations of blood cells, at the source's top or under ``BCCD/``; its test split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, some
from hf_datasets.staging.boxes import Box, box_inside, write_detection_case
from hf_datasets.staging.images import read_picture

NOTES = {
    "split": "ImageSets/Main/test.txt",
    "boxes": "upstream's xmin, ymin, xmax, ymax as half-open pixel corners, cut at the image's border; "
    "boxes less than one pixel wide or high after that (xmin >= xmax included) are dropped",
}
CLASSES = {"RBC": "rbc", "WBC": "wbc", "Platelets": "platelets"}
SPLIT = "test"


@dataclass(frozen=True)
class BccdCase:
    """An annotation and its picture."""

    annotation: Path
    picture: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.picture.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.annotation, self.picture)

    def write(self, to: CaseFolders) -> None:
        pixels = read_picture(self.picture)
        root = _parse(self.annotation)
        self._check_identity(root, pixels.shape[1], pixels.shape[0])
        boxes = [
            box for item in root.iter("object") if (box := self._box(item, pixels.shape[1], pixels.shape[0]))
        ]
        write_detection_case(to, pixels, boxes)

    def _check_identity(self, root: Xml.Element, width: int, height: int) -> None:
        named = Path(root.findtext("filename", "")).stem
        if named != self.origin:
            raise StagingError(
                f"{self.annotation}: expected filename {self.picture.name}, found {named or 'none'}"
            )
        stated = (root.findtext("size/width", "?"), root.findtext("size/height", "?"))
        if stated != (str(width), str(height)):
            raise StagingError(
                f"{self.annotation}: expected the size of {self.picture.name}, {width}x{height}, "
                f"found {'x'.join(stated)}"
            )

    def _box(self, item: Xml.Element, width: int, height: int) -> Box | None:
        name = item.findtext("name", "")
        if name not in CLASSES:
            raise StagingError(
                f"{self.annotation}: expected one of {', '.join(CLASSES)}, found class {name!r}"
            )
        try:
            x1, y1, x2, y2 = (
                float(item.findtext(f"bndbox/{tag}", "")) for tag in ("xmin", "ymin", "xmax", "ymax")
            )
        except ValueError:
            raise StagingError(
                f"{self.annotation}: expected four numbers in every bndbox, found fewer"
            ) from None
        return box_inside(CLASSES[name], (x1, y1, x2, y2), width, height)


def find(source: Path) -> Sequence[BccdCase]:
    """The cases of the test split, in the split's order."""
    root = folder_at(source, "Annotations", "BCCD/Annotations").parent
    split = root / "ImageSets" / "Main" / f"{SPLIT}.txt"
    if not split.is_file():
        raise StagingError(f"{split}: expected the list of the {SPLIT} split, found no such file")
    names = split.read_text(encoding="utf-8").split()
    if not names or len(set(names)) != len(names):
        raise StagingError(
            f"{split}: expected distinct image names, found {len(names)} of which {len(set(names))} distinct"
        )
    _check_pairs(root)
    cases = [
        BccdCase(root / "Annotations" / f"{name}.xml", root / "JPEGImages" / f"{name}.jpg") for name in names
    ]
    for case in cases:
        for path in case.files:
            if not path.is_file():
                raise StagingError(f"{path}: listed in {split.name} but not there")
    return cases


def _check_pairs(root: Path) -> None:
    annotated = {path.stem for path in (root / "Annotations").iterdir() if not path.name.startswith(".")}
    pictured = {
        path.stem for path in folder_at(root, "JPEGImages").iterdir() if not path.name.startswith(".")
    }
    if alone := annotated ^ pictured:
        raise StagingError(
            f"{root}: expected one annotation a picture, found only one of the two for {some(alone)}"
        )


def _parse(path: Path) -> Xml.Element:
    try:
        return Xml.parse(path).getroot()
    except Xml.ParseError as error:
        raise StagingError(f"{path}: not well-formed XML ({error})") from None
