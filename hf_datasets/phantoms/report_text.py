"""Words for drawn findings: nothing is said that the picture does not show, nothing shown is left out."""

from __future__ import annotations

from hf_datasets.phantoms.chest_xray import Findings
from hf_datasets.phantoms.shapes import Rng

_LOBE = {"upper": "upper lobe", "mid": "mid lung", "lower": "lower lobe"}


def findings_text(found: Findings, rng: Rng) -> str:
    """The FINDINGS section: heart, devices, lungs, pleura, bones, in a wording that varies."""
    sentences = [_heart(found, rng), *_devices(found, rng), *_lungs(found, rng), *_pleura(found, rng)]
    sentences.append(
        _one(
            rng,
            "No acute bony abnormality.",
            "The visualized osseous structures are intact.",
            "Bony thorax is unremarkable.",
        )
    )
    return " ".join(sentences)


def impression_text(found: Findings, rng: Rng) -> str:
    """The IMPRESSION section: one numbered line a finding, or none acute."""
    lines = []
    if found.pneumothorax:
        lines.append(f"{found.pneumothorax.capitalize()} pneumothorax with partial collapse of the lung.")
    if found.consolidation:
        side, zone = found.consolidation
        lines.append(
            _one(
                rng,
                f"{side.capitalize()} {_LOBE[zone]} consolidation, suspicious for pneumonia.",
                f"Airspace consolidation in the {side} {_LOBE[zone]}.",
            )
        )
    if found.effusion:
        lines.append(f"{found.effusion.capitalize()} pleural effusion.")
    if found.cardiomegaly:
        lines.append(_one(rng, "Cardiomegaly.", "Enlarged cardiac silhouette consistent with cardiomegaly."))
    if found.nodule:
        lines.append(f"Calcified granuloma in the {found.nodule[0]} {_LOBE[found.nodule[1]]}.")
    if not lines:
        return _one(
            rng,
            "No acute cardiopulmonary abnormality.",
            "No acute cardiopulmonary process.",
            "No evidence of acute cardiopulmonary disease.",
        )
    return (
        " ".join(f"{number}. {line}" for number, line in enumerate(lines, 1)) if len(lines) > 1 else lines[0]
    )


def mesh_terms(found: Findings) -> list[str]:
    """Open-i style index terms."""
    terms = []
    if found.effusion:
        terms.append(f"Pleural Effusion/{found.effusion}")
    if found.pneumothorax:
        terms.append(f"Pneumothorax/{found.pneumothorax}")
    if found.consolidation:
        side, zone = found.consolidation
        terms.append(f"Consolidation/lung/{'middle' if zone == 'mid' else zone} lobe/{side}")
    if found.nodule:
        terms.append(f"Calcified Granuloma/lung/{found.nodule[0]}")
    if found.cardiomegaly:
        terms.append("Cardiomegaly")
    if found.pacemaker:
        terms.append("Implanted Medical Device")
    if found.catheter:
        terms.append("Catheters, Indwelling")
    return terms or ["normal"]


def _one(rng: Rng, *choices: str) -> str:
    return choices[int(rng.integers(len(choices)))]


def _heart(found: Findings, rng: Rng) -> str:
    if found.cardiomegaly:
        return _one(
            rng, "The heart is enlarged.", "There is cardiomegaly.", "The cardiac silhouette is enlarged."
        )
    return _one(
        rng,
        "The heart is normal in size.",
        "Heart size is within normal limits.",
        "The cardiomediastinal silhouette is normal in size and contour.",
    )


def _devices(found: Findings, rng: Rng) -> list[str]:
    said = []
    if found.pacemaker:
        said.append(
            _one(
                rng,
                "A left chest wall pacemaker with its lead over the right ventricle is present.",
                "Left-sided pacemaker is in place.",
            )
        )
    if found.catheter:
        said.append(
            _one(
                rng,
                "A right central venous catheter ends in the superior vena cava.",
                "Right-sided central line tip projects over the SVC.",
            )
        )
    return said


def _lungs(found: Findings, rng: Rng) -> list[str]:
    said = []
    if found.consolidation:
        side, zone = found.consolidation
        said.append(
            _one(
                rng,
                f"There is focal consolidation in the {side} {_LOBE[zone]}.",
                f"Airspace opacity consistent with consolidation is seen in the {side} {_LOBE[zone]}.",
            )
        )
    if found.nodule:
        said.append(
            _one(
                rng,
                f"A calcified granuloma is noted in the {found.nodule[0]} {_LOBE[found.nodule[1]]}.",
                f"Dense nodule in the {found.nodule[0]} {_LOBE[found.nodule[1]]} is a calcified granuloma.",
            )
        )
    if not said:
        said.append(
            _one(
                rng,
                "The lungs are clear.",
                "Lungs are clear bilaterally without focal consolidation.",
                "No focal airspace disease.",
            )
        )
    return said


def _pleura(found: Findings, rng: Rng) -> list[str]:
    if not (found.effusion or found.pneumothorax):
        return [
            _one(rng, "No pleural effusion or pneumothorax.", "There is no pneumothorax or pleural effusion.")
        ]
    said = []
    if found.effusion:
        said.append(
            _one(
                rng,
                f"There is a {found.effusion} pleural effusion.",
                f"Blunting of the {found.effusion} costophrenic angle is due to a pleural effusion.",
            )
        )
    else:
        said.append("No pleural effusion.")
    if found.pneumothorax:
        said.append(
            _one(
                rng,
                f"There is a {found.pneumothorax} pneumothorax.",
                f"A {found.pneumothorax}-sided pneumothorax is present with a visible pleural line.",
            )
        )
    else:
        said.append("No pneumothorax is seen.")
    return said
