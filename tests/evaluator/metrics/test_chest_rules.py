"""Chest labels and observations: negation, doubt, scope, and what an empty or template report earns."""

from __future__ import annotations

import pytest

from evaluator.metrics.chest import LABELS, chexlabel_rule_f1, extract
from evaluator.metrics.observation import CONCEPTS, obs_rouge, observation_f1, observations

P, A, U = "present", "absent", "uncertain"


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ("No pneumothorax or pleural effusion.", {"Pneumothorax": A, "Pleural Effusion": A}),
        (
            "No definite pneumothorax, but there is a small effusion.",
            {"Pneumothorax": A, "Pleural Effusion": P},
        ),
        ("Pneumonia cannot be excluded.", {"Pneumonia": U}),
        ("Cannot exclude early pneumonia.", {"Pneumonia": U}),
        ("No evidence to suggest pneumonia.", {"Pneumonia": A}),
        ("Possible left pneumothorax.", {"Pneumothorax": U}),
        ("The effusion has not resolved.", {"Pleural Effusion": P}),
        ("Interval resolution of the pneumothorax.", {"Pneumothorax": A}),
        ("Chest tube has been removed.", {"Support Devices": A}),
        ("Without change in cardiomegaly.", {"Cardiomegaly": P}),
        ("The heart is not enlarged.", {"Cardiomegaly": A}),
        ("Mild cardiomegaly. Heart size was normal before.", {"Cardiomegaly": P}),
        (
            "Normal heart size. Mediastinal contours are unremarkable.",
            {"Cardiomegaly": A, "Enlarged Cardiomediastinum": A},
        ),
        ("Widened mediastinum.", {"Enlarged Cardiomediastinum": P}),
        ("Opacity in the left base, likely atelectasis.", {"Lung Opacity": P, "Atelectasis": U}),
        ("Healed rib fractures.", {"Fracture": P}),
        ("No pericardial effusion.", {}),
        ("Portable view.", {}),
        ("NO PNEUMOTHORAX", {"Pneumothorax": A}),
        (
            "no focal consolidation,\neffusion,\nor pneumothorax",
            {"Consolidation": A, "Pleural Effusion": A, "Pneumothorax": A},
        ),
    ],
)
def test_assertions(report: str, expected: dict[str, str]) -> None:
    found = extract(report)
    found.pop("No Finding", None)
    assert found == expected


def test_no_finding() -> None:
    assert extract("The lungs are clear.")["No Finding"] == P
    assert extract("No consolidation, effusion or pneumothorax.")["No Finding"] == P
    assert extract("Pacemaker in place. No acute cardiopulmonary process.")["No Finding"] == P
    assert "No Finding" not in extract("No pneumothorax.")
    assert "No Finding" not in extract("The lungs are clear. Small effusion.")
    assert extract("") == {}


def test_every_label_can_be_found() -> None:
    report = (
        "Enlarged mediastinum. Cardiomegaly. Opacities. A nodule. Edema. Consolidation. Pneumonia. Atelectasis. "
        "Pneumothorax. Effusion. Pleural thickening. A fracture. PICC line."
    )
    assert set(extract(report)) == set(LABELS) - {"No Finding"}


NORMAL = "The lungs are clear. Heart size is normal. No pneumothorax, effusion or consolidation."
ILL = "Large right pneumothorax. Chest tube in place. Cardiomegaly and pulmonary edema."


def test_label_f1() -> None:
    assert set(chexlabel_rule_f1([NORMAL, ILL], [NORMAL, ILL]).values()) == {1.0}
    assert chexlabel_rule_f1([NORMAL], [ILL])["chexlabel_rule_f1_micro"] == 0.0
    part = chexlabel_rule_f1(["Pneumothorax."], ["Pneumothorax. Effusion."])
    assert part["chexlabel_rule_precision_micro"] == 1.0
    assert part["chexlabel_rule_recall_micro"] == 0.5
    assert part["chexlabel_rule_f1_macro"] == 0.5
    assert set(chexlabel_rule_f1(["Dextrocardia"], ["A view"]).values()) == {1.0}
    assert (
        chexlabel_rule_f1(["Possible edema"], ["No edema"], uncertain_is_positive=False)[
            "chexlabel_rule_f1_micro"
        ]
        == 1.0
    )
    with pytest.raises(ValueError, match="1 predictions for 2"):
        chexlabel_rule_f1([""], ["a", "b"])


def test_one_dropped_no_costs_the_label() -> None:
    reference = "There is no large right pneumothorax. The heart is normal in size. No pleural effusion."
    assert (
        chexlabel_rule_f1([reference.replace("no large", "a large")], [reference])["chexlabel_rule_f1_micro"]
        < 1.0
    )


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ("The lungs are clear. No acute cardiopulmonary process.", {"clear_lungs", "no_acute_process"}),
        ("Low lung volumes.", {"low_lung_volumes"}),
        ("Calcified granuloma in the right lobe.", {"granuloma_or_calcified_nodule"}),
        (
            "Hilar adenopathy. Median sternotomy wires.",
            {"adenopathy_or_mass", "post_surgical_changes", "support_devices"},
        ),
        ("No mass or adenopathy.", set()),
        ("No pneumothorax.", set()),
        ("Pneumonia in the left lobe.", {"consolidation"}),
        (ILL, {"pneumothorax", "support_devices", "cardiomegaly", "pulmonary_edema"}),
    ],
)
def test_observations(report: str, expected: set[str]) -> None:
    assert observations(report) == expected
    assert expected <= set(CONCEPTS)


def test_observation_score_conventions() -> None:
    assert observation_f1(ILL, ILL) == (1.0, 1.0, 1.0)
    assert observation_f1("Dextrocardia.", "A frontal view.") == (1.0, 1.0, 1.0)
    assert observation_f1("", "A frontal view.") == (0.0, 0.0, 0.0)
    assert observation_f1("A frontal view.", ILL) == (0.0, 0.0, 0.0)
    assert obs_rouge(ILL, ILL) == 1.0
    assert obs_rouge("", ILL) == 0.0
    assert 0.0 < obs_rouge(NORMAL, ILL) < 0.3
