"""Open-i (Indiana): ``ecgen-radiology/<n>.xml`` and ``NLMCXR_png/CXR<n>_IM-<k>-<view>.png``."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from PIL import Image

from hf_datasets.phantoms.chest_xray import Findings, deal, frontal, lateral
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.report_text import findings_text, impression_text, mesh_terms
from hf_datasets.phantoms.shapes import Rng, rng_for

STUDIES = 8
REPORTS, IMAGES = "ecgen-radiology", "NLMCXR_png"


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write eight studies of one or two views."""
    rng = rng_for(seed, "openi")
    (out / REPORTS).mkdir()
    (out / IMAGES).mkdir()
    numbers = sorted((1 + rng.choice(3999, STUDIES, replace=False)).tolist())
    for number, found in zip(numbers, deal(rng, STUDIES), strict=True):
        _write_study(out, number, found, rng_for(seed, "openi", number))
    return {}


def _write_study(out: Path, number: int, found: Findings, rng: Rng) -> None:
    exam = int(rng.integers(1, 2900))
    views = {f"CXR{number}_IM-{exam:04d}-1001": frontal(found, rng)}
    if rng.random() < 0.65:
        views[f"CXR{number}_IM-{exam:04d}-2001"] = lateral(found, rng)
    for name, pixels in views.items():
        Image.fromarray(pixels).save(out / IMAGES / f"{name}.png")
    (out / REPORTS / f"{number}.xml").write_bytes(_citation(number, list(views), found, rng))


def _citation(number: int, images: list[str], found: Findings, rng: Rng) -> bytes:
    root = Xml.Element("eCitation")
    Xml.SubElement(root, "meta", {"type": "rr"})
    Xml.SubElement(root, "uId", {"id": f"CXR{number}"})
    Xml.SubElement(root, "pmcId", {"id": str(number)})
    abstract = Xml.SubElement(
        Xml.SubElement(Xml.SubElement(root, "MedlineCitation", {"Owner": "Indiana University"}), "Article"),
        "Abstract",
    )
    sections = {
        "COMPARISON": "None." if rng.random() < 0.5 else "XXXX.",
        "INDICATION": f"{'Chest pain' if rng.random() < 0.5 else 'Cough'}, XXXX-year-old patient",
        "FINDINGS": _deidentified(findings_text(found, rng), len(images), rng),
        "IMPRESSION": impression_text(found, rng),
    }
    for label, text in sections.items():
        Xml.SubElement(abstract, "AbstractText", {"Label": label}).text = text
    mesh = Xml.SubElement(root, "MeSH")
    for term in mesh_terms(found):
        Xml.SubElement(mesh, "major").text = term
    for image in images:
        parent = Xml.SubElement(root, "parentImage", {"id": image})
        Xml.SubElement(parent, "caption").text = "Chest, " + ("1 view" if len(images) == 1 else "2 views")
    Xml.indent(root)
    return bytes(Xml.tostring(root, xml_declaration=True, encoding="utf-8")) + b"\n"


def _deidentified(text: str, views: int, rng: Rng) -> str:
    """Add the mark that upstream leaves where its de-identification cut words, in some reports."""
    named = (
        "Single XXXX view of the chest was obtained. "
        if views == 1
        else "PA and lateral XXXX of the chest were obtained. "
    )
    openings = ("", named, "XXXX XXXX reviewed. ")
    return openings[int(rng.integers(3))] + text
