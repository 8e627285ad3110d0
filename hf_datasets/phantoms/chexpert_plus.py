"""CheXpert Plus: ``df_chexpert_plus_240401.csv`` and ``PNG/<split>/patient<n>/study<k>/view<v>_<side>.png``."""

from __future__ import annotations

import csv
from pathlib import Path

from PIL import Image

from hf_datasets.phantoms.chest_xray import Findings, deal, frontal, lateral
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.report_text import findings_text, impression_text
from hf_datasets.phantoms.shapes import Rng, rng_for

VALID, TRAIN = 8, 2
TABLE, FOLDER = "df_chexpert_plus_240401.csv", "PNG"
COLUMNS = (
    "path_to_image",
    "path_to_dcm",
    "frontal_lateral",
    "ap_pa",
    "deid_patient_id",
    "patient_report_date_order",
    "report",
    "section_narrative",
    "section_history",
    "section_comparison",
    "section_findings",
    "section_impression",
    "age",
    "sex",
    "split",
)


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write eight studies of the validation part, some with findings and impression, some with the latter only."""
    rng = rng_for(seed, "chexpert_plus")
    numbers = sorted(rng.choice(range(1, 64_740), VALID + TRAIN, replace=False).tolist())
    places = rng.permutation(len(numbers)).tolist()
    rows: list[dict[str, object]] = []
    for index, (number, found) in enumerate(zip(numbers, deal(rng, len(numbers)), strict=True)):
        split = "valid" if places[index] < VALID else "train"
        rows += _write_study(out, split, number, found, rng_for(seed, "chexpert_plus", number))
    with (out / TABLE).open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return {}


def _write_study(out: Path, split: str, number: int, found: Findings, rng: Rng) -> list[dict[str, object]]:
    study = f"{split}/patient{number:05d}/study{1 + int(rng.integers(3))}"
    (out / FOLDER / study).mkdir(parents=True)
    views = {"view1_frontal": frontal(found, rng)}
    if rng.random() < 0.4:
        views["view2_lateral"] = lateral(found, rng)
    findings, impression = findings_text(found, rng), impression_text(found, rng)
    if rng.random() < 0.25:
        findings, impression = "", f"{findings} {impression}"
    report = "NARRATIVE:\nCHEST RADIOGRAPH\n" + (f"FINDINGS:\n{findings}\n" if findings else "")
    rows: list[dict[str, object]] = []
    for name, pixels in views.items():
        Image.fromarray(pixels).save(out / FOLDER / study / f"{name}.png")
        side = name.split("_")[1]
        rows.append(
            {
                "path_to_image": f"{study}/{name}.jpg",
                "path_to_dcm": f"{study}/{name}.dcm",
                "frontal_lateral": side.capitalize(),
                "ap_pa": "AP" if side == "frontal" else "",
                "deid_patient_id": f"patient{number:05d}",
                "patient_report_date_order": 1,
                "report": f"{report}IMPRESSION:\n{impression}\n",
                "section_narrative": "CHEST RADIOGRAPH",
                "section_findings": f"\n{findings}\n" if findings else "",
                "section_impression": f"\n{impression}\n",
                "split": split,
            }
        )
    return rows
