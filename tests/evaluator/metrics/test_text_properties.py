"""Text metrics: laws, and agreement with sacrebleu, rouge and NLTK."""

from __future__ import annotations

import random

import pytest

from evaluator.metrics.text import bleu, cider_d, document_frequencies, rouge_l, tokenise, words

VOCABULARY = [
    "the",
    "heart",
    "is",
    "normal",
    "in",
    "size",
    ".",
    "lungs",
    "are",
    "clear",
    "no",
    "pleural",
    "effusion",
    "or",
    "pneumothorax",
    ",",
    "there",
    "seen",
    "mild",
    "edema",
    "left",
    "right",
    "lobe",
    "opacity",
    "may",
    "represent",
    "atelectasis",
    "2.5",
    "cm",
]


def texts(seed: int, n: int, low: int = 8, high: int = 40) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(VOCABULARY, k=generator.randint(low, high))) for _ in range(n)]


def edited(text: str, seed: int) -> str:
    generator = random.Random(seed)
    return " ".join(word for word in text.split() if generator.random() > 0.2) or "x"


def test_tokens() -> None:
    assert tokenise("The Lungs\nare CLEAR.  2.5cm x-ray, 1,000 (patient's)") == [
        *("the", "lungs", "are", "clear", ".", "2.5cm", "x-ray", ",", "1,000", "(", "patient's", ")"),
    ]
    assert tokenise("XXXX-year-old with XXXX and ___ mass") == ["xxxx-year-old", "with", "and", "mass"]
    assert words("Heart-size 2.5 ＣＭ!") == ["heart", "size", "2", "5", "cm"]
    assert tokenise("") == words("") == []


def test_identity_is_best_even_for_one_word() -> None:
    for corpus in (texts(0, 5), ["normal"], ["no effusion", "normal"]):
        assert bleu(corpus, corpus) == (1.0, 1.0, 1.0, 1.0)
        assert all(rouge_l(text, text) == 1.0 for text in corpus)
    corpus = texts(0, 5)
    assert cider_d(corpus, corpus, document_frequencies(corpus))[0] == pytest.approx(10.0)


def test_typography_does_not_matter() -> None:
    plain = ["the lungs are clear. no effusion."]
    for other in ("The lungs are CLEAR.\nNo effusion.", "the  lungs are clear . no effusion ."):
        assert bleu([other], plain) == (1.0, 1.0, 1.0, 1.0)
        assert rouge_l(other, plain[0]) == 1.0


def test_empty_sides_are_worst() -> None:
    reference = "the lungs are clear"
    assert bleu([""], [reference]) == bleu([reference], [""]) == (0.0, 0.0, 0.0, 0.0)
    assert rouge_l("", reference) == rouge_l(reference, "") == rouge_l("", "") == 0.0
    assert cider_d([""], [reference], document_frequencies(texts(0, 5)))[0] == 0.0


def test_short_predictions_gain_nothing_from_missing_orders() -> None:
    assert bleu(["no effusion"], ["no pleural effusion is seen"])[2:] == (0.0, 0.0)


def test_order_of_cases_does_not_matter() -> None:
    references = texts(1, 20)
    predictions = [edited(text, seed) for seed, text in enumerate(references)]
    order = random.Random(0).sample(range(20), 20)
    turned = [predictions[i] for i in order], [references[i] for i in order]
    assert bleu(*turned) == pytest.approx(bleu(predictions, references), abs=1e-12)
    frequencies = document_frequencies(references)
    assert cider_d(*turned, frequencies)[0] == pytest.approx(cider_d(predictions, references, frequencies)[0])


def test_frozen_frequencies_make_a_subset_score_the_same() -> None:
    references = texts(1, 20)
    predictions = [edited(text, seed) for seed, text in enumerate(references)]
    frequencies = document_frequencies(references)
    each = cider_d(predictions, references, frequencies)[1]
    assert cider_d(predictions[:3], references[:3], frequencies)[1] == each[:3]


def test_one_reference_document_gives_no_cider() -> None:
    assert cider_d(["a b c d e"], ["a b c d e"], document_frequencies(["a b c d e"]))[0] == 0.0


def test_rouge_is_symmetric_and_falls_with_every_dropped_word() -> None:
    text = " ".join(f"word{i}" for i in range(30))
    scores = [rouge_l(" ".join(text.split()[: 30 - n]), text) for n in range(30)]
    assert scores == sorted(scores, reverse=True)
    a, b = texts(3, 2)
    assert rouge_l(a, b) == rouge_l(b, a)


def test_counts_must_fit() -> None:
    with pytest.raises(ValueError, match="2 predictions but 1"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no text"):
        bleu([], [])


def _cross_check(cases: int) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    for seed in range(cases):
        references = texts(seed, 4)
        predictions = [edited(text, seed) for text in references]
        for order, ours in enumerate(bleu(predictions, references), 1):
            oracle = sacrebleu.BLEU(lowercase=True, max_ngram_order=order, smooth_method="none")
            expected = oracle.corpus_score(predictions, [references]).score / 100
            assert ours == pytest.approx(expected, abs=1e-6)


def _cross_check_rouge(cases: int) -> None:
    rouge = pytest.importorskip("rouge_score_rs")
    scorer = rouge.RougeScorer(["rougeL"])
    for seed in range(cases):
        a, b = texts(seed, 2)
        expected = scorer.score(b, a)["rougeL"]
        assert rouge_l(a, b) == pytest.approx(expected.fmeasure, abs=1e-6)


def test_cross_checks() -> None:
    _cross_check(20)


def test_cross_check_of_rouge() -> None:
    _cross_check_rouge(50)


@pytest.mark.slow
def test_cross_checks_on_1000_cases() -> None:
    _cross_check(1000)


@pytest.mark.slow
def test_cross_check_of_rouge_on_1000_cases() -> None:
    _cross_check_rouge(1000)
