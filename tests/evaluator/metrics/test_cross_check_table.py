"""Every metric is held against another implementation on 1,000 random cases; this table says where."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from evaluator.metrics.registry import METRICS

SEGMENTATION = "test_segmentation_properties:test_cross_checks_on_1000_cases"
IMAGE = "test_image_properties:test_cross_check_with_scikit_image_on_1000_cases"
TEXT = "test_text_properties:test_cross_checks_on_1000_cases"
ROUGE = "test_text_properties:test_cross_check_of_rouge_on_1000_cases"
COCO = "test_boxes_properties:test_cross_check_with_pycocotools_on_1000_cases"
CLASSES = "test_classification_properties:test_cross_check_with_scikit_learn_on_1000_cases"
MICRO = "test_mlrg_arithmetic:test_micro_scores_agree_with_scikit_learn_on_1000_cases"
PLAIN = "test_plain_definitions:test_1000_cases"

CHECKED = {
    SEGMENTATION: ["dice", "macro_dice", "lesion_positive_dice", "nsd_voxel", "hd95_directed_max"],
    IMAGE: ["ssim_gaussian", "psnr"],
    TEXT: ["bleu", "bleu_1", "bleu_2", "bleu_3", "bleu_4"],
    ROUGE: ["rouge_l"],
    COCO: ["map50_coco101", "ap50_coco101", "map_coco"],
    CLASSES: ["accuracy", "balanced_accuracy", "macro_f1", "auroc_macro"],
    MICRO: ["chexbert14_micro_precision", "chexbert14_micro_recall", "chexbert14_micro_f1"],
    PLAIN: [
        *("lesion_f1", "volume_error", "volume_error_ml", "mae", "rmse"),
        *("exact_match_normalised", "open_exact_match", "token_f1", "yes_no_accuracy", "option_accuracy"),
        *("cider_d", "meteor_exact_stem", "obs_rouge"),
        *("chexlabel_rule_precision_micro", "chexlabel_rule_recall_micro", "chexlabel_rule_f1_micro"),
        *("chexlabel_rule_f1", "chexlabel_rule_f1_macro"),
        *("observation_precision", "observation_recall", "observation_f1"),
        *("ap50_voc_all_points", "recall_at_fppi", "f1_iou50"),
    ],
}
BY_HAND = {
    "lpips_alex": "needs weights; its laws are tested on random ones",
    "meteor": "needs WordNet; NLTK's own, tested on a WordNet of one synset",
    "f1_radgraph": "needs weights; arithmetic on stored graphs",
    "mlrg7": "a mean; tested by hand",
    "report_mean": "the name of whichever set was used",
    "bleu_rouge": "half of each of two checked metrics",
    "em_f1_mean": "half of each of two checked metrics",
    "parse_rate": "counts what option_accuracy parses",
    "distinct_answers": "counts distinct texts",
    "distinct_reports": "counts distinct texts",
}


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"looked_at_{name}", Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_no_metric_is_left_unchecked() -> None:
    listed = [name for names in CHECKED.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) | set(BY_HAND) == set(METRICS)


@pytest.mark.parametrize("place", CHECKED)
def test_the_check_exists_and_is_run_as_a_slow_test(place: str) -> None:
    file, name = place.split(":")
    test = getattr(module(file), name)
    assert "slow" in {mark.name for mark in test.pytestmark}
