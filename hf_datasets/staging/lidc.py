"""LIDC-IDRI: ``LIDC-IDRI-nnnn/<study>/<series>/*.dcm`` with the readers' XML beside the slices; one slice a patient.

Nothing but pixels, rescaled to Hounsfield units, leaves a DICOM file.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np

from evaluator.readers.dicom import read_dicom
from evaluator.readers.errors import ReadError
from hf_datasets.staging.base import CaseFolders, StagingError, listing
from hf_datasets.staging.degrade import NOISE_NOTE
from hf_datasets.staging.planes import middle_third, window, write_noisy

LOW, HIGH = -1000.0, 1000.0
NOTES = {
    **NOISE_NOTE,
    "reference": f"stored value x slope + intercept; window {LOW:g} to {HIGH:g} HU mapped to [0, 1]",
    "slice": "of a patient's largest CT series the slice on which most readers outlined a nodule of 3 mm or more (the "
    "lowest of equals), otherwise one drawn from the middle third",
    "identity": "pixels only; no DICOM attribute is kept",
}
OUTLINE = 4
"""Points of an outline; a smaller nodule is marked by one point only."""

_PATIENT = re.compile(r"LIDC-IDRI-\d{4}")
_TAGS = ["Modality", "PatientID", "SeriesInstanceUID", "SOPInstanceUID", "ImagePositionPatient"]


@dataclass(frozen=True)
class LidcCase:
    """One CT series of a patient."""

    patient: str
    series: Path
    image: str = ""

    @property
    def origin(self) -> str:
        return self.patient

    @property
    def files(self) -> Sequence[Path]:
        return (*_slices(self.series), *sorted(self.series.glob("*.xml")))

    def write(self, to: CaseFolders) -> None:
        headers = sorted(
            ((_height(path, header), path, header) for path, header in self._headers()), key=lambda h: h[0]
        )
        if len({str(header.SOPInstanceUID) for _, _, header in headers}) < len(headers):
            raise StagingError(
                f"{self.series}: expected each slice once, found one in two files; remove its copy"
            )
        readers = self._readers(str(headers[0][2].SeriesInstanceUID))
        most = max((readers[str(header.SOPInstanceUID)] for _, _, header in headers), default=0)
        marked = [
            index
            for index, (_, _, header) in enumerate(headers)
            if readers[str(header.SOPInstanceUID)] == most
        ]
        index = marked[0] if most else middle_third(len(headers), np.random.default_rng(to.seed))
        path = headers[index][1]
        try:
            hu = read_dicom(path).data
        except ReadError as error:
            raise StagingError(f"{path}: {error.message}; download the series again") from None
        if min(hu.shape) < 64 or hu.max() < 0 or hu.min() > -200:
            raise StagingError(
                f"{path}: expected a chest slice in HU, found {hu.shape} of {hu.min():.0f} to {hu.max():.0f}"
            )
        write_noisy(to, window(hu, LOW, HIGH))

    def _headers(self) -> list[tuple[Path, Any]]:
        headers = [(path, _header(path)) for path in _slices(self.series)]
        for path, header in headers:
            if str(header.get("PatientID", "")) != self.patient:
                raise StagingError(
                    f"{path}: expected a slice of {self.patient}, found one of another patient"
                )
            if header.get("SeriesInstanceUID") != headers[0][1].get("SeriesInstanceUID"):
                raise StagingError(f"{path}: expected one series in a folder, found two; unpack them apart")
        return headers

    def _readers(self, series_uid: str) -> Counter[str]:
        """How many readers outlined a nodule, by slice."""
        count: Counter[str] = Counter()
        for path in sorted(self.series.glob("*.xml")):
            root = _xml(path)
            named = [_text(node) for node in root.iter() if _tag(node) == "SeriesInstanceUid"]
            if named[:1] != [series_uid]:
                raise StagingError(
                    f"{path}: expected the readings of this folder's series, found those of another; is it misplaced?"
                )
            for session in (node for node in root.iter() if _tag(node) == "readingSession"):
                count.update({_text(_child(roi, "imageSOP_UID")) for roi in _outlines(session)})
        return count


def find(source: Path) -> Sequence[LidcCase]:
    """The largest CT series of every patient."""
    patients = sorted(path for path in source.rglob("LIDC-IDRI-*") if path.is_dir())
    if not patients:
        raise StagingError(
            f"{source}: expected patient folders such as LIDC-IDRI-0001, found {listing(source)}"
        )
    cases = []
    for folder in patients:
        if not _PATIENT.fullmatch(folder.name):
            raise StagingError(f"{folder}: expected a name such as LIDC-IDRI-0001")
        series = {path.parent for path in folder.rglob("*.dcm")}
        scans = [path for path in sorted(series) if _header(_slices(path)[0]).get("Modality") == "CT"]
        if not scans:
            raise StagingError(f"{folder}: expected a CT series of .dcm files, found {listing(folder)}")
        cases.append(LidcCase(folder.name, max(scans, key=lambda path: len(_slices(path)))))
    return cases


def _slices(series: Path) -> list[Path]:
    return sorted(series.glob("*.dcm"))


def _header(path: Path) -> Any:
    import pydicom

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_TAGS)
    except Exception as error:  # pydicom raises what a broken field happens to raise
        raise StagingError(
            f"{path}: not a DICOM file ({type(error).__name__}); download the series again"
        ) from None


def _height(path: Path, header: Any) -> float:
    try:
        return float(header.ImagePositionPatient[2])
    except Exception:  # a missing or garbled field
        raise StagingError(f"{path}: expected ImagePositionPatient, found none that can be used") from None


def _xml(path: Path) -> Xml.Element:
    try:
        return Xml.parse(path).getroot()
    except Xml.ParseError as error:
        raise StagingError(f"{path}: not well-formed XML ({error}); download the series again") from None


def _outlines(session: Xml.Element) -> list[Xml.Element]:
    rois = [node for node in session.iter() if _tag(node) == "roi"]
    return [roi for roi in rois if sum(_tag(node) == "edgeMap" for node in roi) >= OUTLINE]


def _tag(node: Xml.Element) -> str:
    """The name without its namespace, which differs between the readers' programs."""
    return node.tag.rpartition("}")[2]


def _child(node: Xml.Element, name: str) -> Xml.Element | None:
    return next((child for child in node if _tag(child) == name), None)


def _text(node: Xml.Element | None) -> str:
    return "" if node is None else (node.text or "").strip()
