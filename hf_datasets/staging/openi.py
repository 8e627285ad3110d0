"""Open-i's Indiana collection: ``ecgen-radiology/*.xml`` and the PNG files of ``NLMCXR_png/``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

from evaluator.metrics.chest import extract
from hf_datasets.staging.base import CaseFolders, StagingError, folder_at, some
from hf_datasets.staging.images import grey, read_picture
from hf_datasets.staging.studies import (
    SHORT_NOTE,
    Section,
    is_deliverable,
    text_of,
    without_marks,
    write_study,
)

NOTES = {
    "report": "FINDINGS and IMPRESSION, each one line; upstream's XXXX marks of de-identification removed",
    "left out": f"studies without an image, or with neither FINDINGS nor IMPRESSION; {SHORT_NOTE}",
    "images": "8-bit grey JPEG, quality 95, in the order of the report's parentImage entries",
}
TASK = "iu-xray-report-task"
REPORTS = "ecgen-radiology"
IMAGES = ("NLMCXR_png", "images")


@dataclass(frozen=True)
class OpeniCase:
    """One study."""

    report: Path
    uid: str
    pictures: tuple[Path, ...]
    sections: tuple[Section, ...]
    mesh: tuple[str, ...]
    image: str = ""

    @property
    def origin(self) -> str:
        return self.uid

    @property
    def files(self) -> Sequence[Path]:
        return (self.report, *self.pictures)

    def write(self, to: CaseFolders) -> None:
        pictures = [grey(read_picture(picture)) for picture in self.pictures]
        labels = {"observations": extract(text_of(self.sections)), "mesh": list(self.mesh)}
        write_study(to, pictures, self.sections, labels)


def find(source: Path) -> Sequence[OpeniCase]:
    """The studies that have pictures and a report."""
    reports = folder_at(source, REPORTS, f"NLMCXR_reports/{REPORTS}")
    pictures = folder_at(source, *IMAGES)
    entries = sorted(path for path in reports.iterdir() if not path.name.startswith("."))
    strange = [path.name for path in entries if path.suffix != ".xml"]
    if strange:
        raise StagingError(f"{reports}: unexpected {some(strange)} among the reports; expected <n>.xml only")
    studies = [study for path in entries if (study := _study(path, pictures))]
    if not studies:
        raise StagingError(
            f"{reports}: expected reports with findings and images, found none in {len(entries)} files"
        )
    _refuse_shared(reports, studies)
    return studies


def _study(path: Path, pictures: Path) -> OpeniCase | None:
    try:
        root = Xml.parse(path).getroot()
    except Xml.ParseError as error:
        raise StagingError(f"{path}: not well-formed XML ({error}); unpack the archive again") from None
    identity = root.find("uId")
    uid = "" if identity is None else identity.get("id", "")
    if uid != f"CXR{path.stem}":
        raise StagingError(
            f"{path}: expected uId CXR{path.stem}, found {uid or 'none'}; is the file misnamed?"
        )
    named = [parent.get("id", "") for parent in root.iter("parentImage")]
    sections = tuple(
        Section(label.lower(), text)
        for label in ("FINDINGS", "IMPRESSION")
        if (text := _section(root, label))
    )
    if not named or not is_deliverable(TASK, sections):
        return None
    files = tuple(pictures / f"{name}.png" for name in named)
    for name, file in zip(named, files, strict=True):
        if not name.startswith(f"{uid}_"):
            raise StagingError(f"{path}: expected images named {uid}_..., found {name}")
        if not file.is_file():
            raise StagingError(f"{path}: names image {file.name}, which is not in {pictures}")
    mesh = tuple(
        " ".join((term.text or "").split()) for term in root.iterfind("MeSH/*") if (term.text or "").strip()
    )
    return OpeniCase(path, uid, files, sections, mesh)


def _section(root: Xml.Element, label: str) -> str:
    for item in root.iter("AbstractText"):
        if item.get("Label", "").upper() == label:
            return without_marks(item.text or "")
    return ""


def _refuse_shared(reports: Path, studies: list[OpeniCase]) -> None:
    owner: dict[Path, str] = {}
    for study in studies:
        for picture in study.pictures:
            if owner.setdefault(picture, study.uid) != study.uid:
                raise StagingError(
                    f"{reports}: {picture.name} belongs to {owner[picture]} and to {study.uid}"
                )
