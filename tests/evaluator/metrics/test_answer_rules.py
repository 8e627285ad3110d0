"""Answers: the rules of the normal form, decisions and option letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics.answers import exact_match, normalise, option_letter, token_f1, yes_no

TEXT = st.text(max_size=30)
WORDS = st.lists(
    st.sampled_from(
        [
            "left",
            "right",
            "lung",
            "the",
            "a",
            "an",
            "two",
            "2.0",
            "none",
            "no",
            "yes",
            "x-ray",
            "1,000",
            "5cm",
            "don't",
            "(mass)",
        ]
    )
)


@given(TEXT)
def test_normal_form_is_stable(text: str) -> None:
    assert normalise(normalise(text)) == normalise(normalise(normalise(text)))
    assert "  " not in normalise(text)


@given(WORDS.map(" ".join))
def test_identity_matches_unless_nothing_is_left(text: str) -> None:
    assert exact_match(text, text) == bool(normalise(text))
    assert token_f1(text, text) == float(bool(normalise(text)))
    assert exact_match(text.upper(), f"  {text}.\n") == bool(normalise(text))


@given(WORDS.map(" ".join), WORDS.map(" ".join))
def test_f1_is_symmetric_and_bounded_by_the_match(a: str, b: str) -> None:
    assert 0.0 <= token_f1(a, b) <= 1.0
    if "none" not in a + b:  # "none" equals 0 as an answer, not the other way round
        assert token_f1(a, b) == pytest.approx(token_f1(b, a))


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("hepatitis A", "hepatitis", False),
        ("the left lung", "left lung", True),
        ("vitamin a", "vitamin", False),
        ("X-Ray", "x ray", True),
        ("X-Ray", "xray", True),
        ("grade 1-2", "grade 12", False),
        ("T2-weighted", "T2 weighted", True),
        ("two", "2", True),
        ("twenty-one", "21", True),
        ("forty two", "42", True),
        ("twenty lesions", "20 lesions", True),
        ("2.50", "2.5", True),
        ("02", "2", True),
        (".5", "0.5", True),
        ("-3", "3", False),
        ("1.5", "15", False),
        ("1,000,000", "1000000", True),
        ("1,5", "15", False),
        ("5cm", "5 cm", True),
        ("T2", "T 2", False),
        ("50%", "50", False),
        ("5°", "5", False),
        ("", "", False),
        ("?!", "...", False),
        ("the", "a", False),
        ("Ｙｅｓ", "yes", True),
        ("STRASSE", "straße", True),
        ("Parkinson’s", "parkinsons", True),
        ("left lung; right lung", "left lung, right lung", True),
        ("none", "0", True),
        ("0", "none", False),
    ],
)
def test_pairs(a: str, b: str, equal: bool) -> None:
    assert exact_match(a, b) is equal


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Yes", True),
        ("yes, there is a mass", True),
        ("No, there is none", False),
        ("none", False),
        ("The answer is yes.", True),
        ("Answer: no", False),
        ("yes and no", None),
        ("not seen", None),
        ("normal", None),
        ("nodule", None),
        ("there is no mass", None),
        ("", None),
    ],
)
def test_decisions(text: str, decision: bool | None) -> None:
    assert yes_no(text) is decision


def test_closed_questions_go_by_the_key() -> None:
    assert exact_match("No, there is none", "no", closed=True)
    assert not exact_match("yes and no", "yes", closed=True)
    assert not exact_match("left", "yes", closed=True)
    assert exact_match("left", "left", closed=True)
    assert not exact_match("yes it is", "yes")


OPTIONS = {
    "A": "Pneumothorax",
    "B": "Pleural effusion",
    "C": "Edema",
    "D": "None of the above",
    "I": "Normal",
}


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("c", "C"),
        (" (c). ", "C"),
        ("**B**", "B"),
        ("B) Pleural effusion", "B"),
        ("B. It blunts the angle", "B"),
        ("Answer: B", "B"),
        ("The correct answer is option C because of the lines", "C"),
        ("The answer is (d).", "D"),
        ("Option B is tempting, but the answer is C.", "C"),
        ("It might be A. Final answer: \\boxed{B}", "B"),
        ("$\\boxed{\\text{B}}$", "B"),
        ("The answer is A or B", None),
        ("The answer is a mass", None),
        ("A mass is seen", None),
        ("I think it is edema", None),
        ("I choose B", "B"),
        ("I", "I"),
        ("So it is (B)", "B"),
        ("between (A) and (B)", None),
        ("pleural effusion", "B"),
        ("Pleural Effusion.", "B"),
        ("none of the above", "D"),
        ("Answer", None),
        ("E", None),
        ("The answer is E", None),
        ("Ｂ", "B"),
        ("Β", None),
        ("A pretty clear case, so C", "C"),
        ("A and B", None),
    ],
)
def test_letters(text: str, letter: str | None) -> None:
    assert option_letter(text, OPTIONS) == letter


def test_options_as_texts_or_letters() -> None:
    assert option_letter("edema", ["Mass", "Edema"]) == "B"
    assert option_letter("b", ["Mass", "Edema"]) == "B"
    assert option_letter("c", ["Mass", "Edema"]) is None
    assert option_letter("C", "ABCD") == "C"
    assert option_letter("edema", {"a": "Edema", "b": "Oedema; edema"}) == "A"
    assert option_letter("edema", {"a": "Edema", "b": "edema."}) is None


@given(TEXT)
def test_a_letter_is_one_of_the_options(text: str) -> None:
    assert option_letter(text, OPTIONS) in {None, *OPTIONS}
