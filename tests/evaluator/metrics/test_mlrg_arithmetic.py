"""The mlrg7 set on stored graphs and labels, and the names of what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from evaluator.metrics import lpips, mlrg
from evaluator.metrics.chest import LABELS
from evaluator.metrics.meteor import exact_stem_meteor, wordnet_meteor
from evaluator.metrics.radgraph import Graph, graph_f1
from evaluator.metrics.text import bleu, rouge_l

REFERENCES = ["small left pleural effusion .", "no pneumothorax . the lungs are clear ."]
PREDICTIONS = ["left effusion .", "no pneumothorax . the lungs are clear ."]


def entity(words: str, label: str, *relations: list[str]) -> dict[str, object]:
    return {"tokens": words, "label": label, "relations": list(relations)}


PRESENT, WHERE = "Observation::definitely present", "Anatomy::definitely present"
GRAPHS: dict[str, Graph] = {
    REFERENCES[0]: {
        "entities": {
            "1": entity("small", PRESENT, ["modify", "3"]),
            "2": entity("pleural", WHERE),
            "3": entity("effusion", PRESENT, ["located_at", "2"]),
        }
    },
    PREDICTIONS[0]: {
        "entities": {"1": entity("Effusion", PRESENT, ["located_at", "2"]), "2": entity("left", WHERE)}
    },
    REFERENCES[1]: {"entities": {"1": entity("pneumothorax", "Observation::definitely absent")}},
    "": {"entities": {}},
}
LABELLED = {
    REFERENCES[0]: {"Pleural Effusion"},
    PREDICTIONS[0]: {"Pleural Effusion", "Edema"},
    REFERENCES[1]: {"No Finding"},
    "": {"No Finding"},
}


def stored_models() -> mlrg.Models:
    def graphs(reports: Sequence[str]) -> list[Graph]:
        return [GRAPHS[report] for report in reports]

    def labels(reports: Sequence[str]) -> list[set[str]]:
        return [LABELLED[report] for report in reports]

    return mlrg.Models(lambda prediction, reference: 0.25 if prediction != reference else 1.0, graphs, labels)


def test_arithmetic_by_hand() -> None:
    found = mlrg.mlrg7(PREDICTIONS, REFERENCES, stored_models())
    assert tuple(found) == (*mlrg.COMPONENTS, "mlrg7")
    assert found["bleu"] == pytest.approx(sum(bleu(PREDICTIONS, REFERENCES)) / 4)
    assert found["rouge_l"] == pytest.approx((rouge_l(PREDICTIONS[0], REFERENCES[0]) + 1) / 2)
    assert found["meteor"] == pytest.approx((0.25 + 1) / 2)
    assert found["f1_radgraph"] == pytest.approx((2 * 1 / 5 + 1) / 2)
    assert found["chexbert14_micro_precision"] == pytest.approx(2 / 3)
    assert found["chexbert14_micro_recall"] == 1.0
    assert found["chexbert14_micro_f1"] == pytest.approx(0.8)
    assert found["mlrg7"] == pytest.approx(sum(found[name] for name in mlrg.COMPONENTS) / 7)


def test_identity_is_best() -> None:
    assert set(mlrg.mlrg7(REFERENCES, REFERENCES, stored_models()).values()) == {1.0}


def test_empty_reports_earn_nothing() -> None:
    found = mlrg.mlrg7(["", ""], REFERENCES, stored_models())
    assert found.pop("meteor") == 0.25  # the stored stand-in; the real one is tested below
    assert found.pop("mlrg7") == pytest.approx(0.25 / 7)
    assert set(found.values()) == {0.0}


def test_levels_of_graph_agreement() -> None:
    ours, theirs = GRAPHS[PREDICTIONS[0]], GRAPHS[REFERENCES[0]]
    assert graph_f1(ours, theirs, "entity_only") == pytest.approx(2 / 5)
    assert graph_f1(ours, theirs, "partial") == pytest.approx(2 / 5)
    assert graph_f1(ours, theirs, "complete") == 0.0
    assert graph_f1(GRAPHS[""], GRAPHS[""]) == 0.0


def _cross_check_micro(cases: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    for _ in range(cases):
        truth, found = generator.random((2, 8, 14)) < 0.25
        sets = [[{LABELS[i] for i in np.flatnonzero(row)} for row in table] for table in (found, truth)]
        expected = metrics.precision_recall_fscore_support(truth, found, average="micro", zero_division=0)[:3]
        assert mlrg.micro_scores(sets[0], sets[1]) == pytest.approx(expected, abs=1e-9)


def test_micro_scores_agree_with_scikit_learn() -> None:
    _cross_check_micro(20)


@pytest.mark.slow
def test_micro_scores_agree_with_scikit_learn_on_1000_cases() -> None:
    _cross_check_micro(1000)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mlrg.WEIGHTS_VARIABLE, raising=False)
    missing = mlrg.available()
    assert set(missing) == {"meteor", "f1_radgraph", "chexbert14"}
    assert all("not installed" in reason or mlrg.WEIGHTS_VARIABLE in reason for reason in missing.values())
    assert all(
        "not installed" in reason or "not in the weights folder" in reason
        for reason in mlrg.available(tmp_path).values()
    )
    with pytest.raises(RuntimeError, match="mlrg7 is unavailable: meteor: "):
        mlrg.load_models(tmp_path)


def test_exact_and_stem_meteor() -> None:
    score_module = pytest.importorskip("nltk.translate.meteor_score")
    meteor = exact_stem_meteor()
    assert meteor("normal", "normal") == 1.0
    assert meteor("", "normal") == meteor("normal", "") == 0.0
    assert meteor("opacities are increasing", "opacity is increased") == pytest.approx(1 / 3)
    assert meteor("clear are lungs the", "the lungs are clear") == pytest.approx(0.5)

    class NoSynonyms:
        def synsets(self, word: str) -> list[object]:
            return []

    a, b = "the heart is enlarged in size", "the heart size is normal"
    expected = score_module.single_meteor_score(b.split(), a.split(), wordnet=NoSynonyms())
    assert meteor(a, b) == pytest.approx(expected)


def tiny_wordnet(weights: Path) -> Path:
    """A WordNet of one synset, in the dictionary format: doctor and physician."""
    folder = weights / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    kinds = [
        "adj.all",
        "adj.pert",
        "adv.all",
        *(f"noun.{n}" for n in range(26)),
        *(f"verb.{n}" for n in range(15)),
        "adj.ppl",
    ]
    (folder / "lexnames").write_text("".join(f"{n:02}\t{name}\t1\n" for n, name in enumerate(kinds)))
    for part in ("noun", "verb", "adj", "adv"):
        for kind in ("index", "data"):
            (folder / f"{kind}.{part}").write_text("")
        (folder / f"{part}.exc").write_text("")
    (folder / "data.adj").write_text("  1 WordNet 3.0 Copyright of no one\n")
    (folder / "data.noun").write_text("00000000 18 n 02 doctor 0 physician 0 000 | who treats the ill\n")
    (folder / "index.noun").write_text("doctor n 1 0 1 0 00000000\nphysician n 1 0 1 0 00000000\n")
    (folder / "index.sense").write_text("doctor%1:18:00:: 00000000 1 0\nphysician%1:18:00:: 00000000 1 0\n")
    return weights


def test_meteor_with_a_wordnet_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", list(data.path))
    weights = tiny_wordnet(tmp_path)
    assert "meteor" not in mlrg.available(weights)
    meteor, without = wordnet_meteor(weights), exact_stem_meteor()
    said, meant = "the doctor saw a mass", "the physician saw a mass"
    assert meteor(said, meant) > 0.99 > without(said, meant)
    assert meteor(said, said) == 1.0
    assert meteor("", meant) == 0.0


def test_lpips_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = lpips.unavailable(tmp_path)
    assert reason is not None
    with pytest.raises(RuntimeError, match="lpips is unavailable"):
        lpips.load_lpips(tmp_path, (0.0, 1.0))
    monkeypatch.setattr(lpips.importlib.util, "find_spec", lambda name: object())
    assert lpips.unavailable(None) == f"no weights folder: set {mlrg.WEIGHTS_VARIABLE}"
    assert lpips.unavailable(tmp_path) == "alexnet.pth is not in the weights folder"
    (tmp_path / "alexnet.pth").write_bytes(b"other")
    assert "expected 7be5be79" in str(lpips.unavailable(tmp_path))
