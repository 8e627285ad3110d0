"""Every metric by name: what it is, its range, which way is better, and where its definition comes from.

Command line, brief and Space read this table and nothing else. It imports no numeric library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "zero"]


@dataclass(frozen=True)
class MetricInfo:
    """``range`` is the interval of possible values with its unit; ``better`` says which end is good."""

    name: str
    definition: str
    range: str
    better: Better
    source: str


_OURS = "this project"
_RELOADED = "Maier-Hein et al., Nature Methods 2024 (Metrics Reloaded)"
_COCO = "Lin et al., ECCV 2014 (COCO), as in pycocotools"
_CHEXBERT = "Smit et al., EMNLP 2020 (CheXbert); label set of Irvin et al., AAAI 2019"
_RULES = "rules of this project on the labels of Irvin et al., AAAI 2019; not CheXpert's or CheXbert's output"

_UNIT = "[0, 1]"

_ALL = (
    # segmentation
    MetricInfo(
        "macro_dice",
        "Mean Dice over the task's targets within a case, then over cases; a target absent on both "
        "sides is left out.",
        _UNIT,
        "higher",
        "Dice, Ecology 1945; macro mean as published",
    ),
    MetricInfo("dice", "2|A∩B| / (|A|+|B|) of one target.", _UNIT, "higher", "Dice, Ecology 1945"),
    MetricInfo(
        "nsd_voxel",
        "Share of both surfaces' 6-connected border voxels within the target's tolerance, "
        "inclusive, of the other surface.",
        _UNIT,
        "higher",
        f"Nikolov et al., JMIR 2021, on border voxels as in {_RELOADED}",
    ),
    MetricInfo(
        "hd95_directed_max",
        "Larger of the two directed 95th percentiles of border-voxel distances; the volume's "
        "diagonal when one side is empty.",
        "[0, diagonal] mm",
        "lower",
        _RELOADED,
    ),
    MetricInfo(
        "volume_error", "Mean absolute volume difference over targets.", "[0, inf) ml", "lower", _OURS
    ),
    MetricInfo(
        "volume_error_ml", "Predicted minus reference volume of one target.", "(-inf, inf) ml", "zero", _OURS
    ),
    MetricInfo(
        "lesion_positive_dice",
        "Mean Dice over the cases whose reference holds the lesion.",
        _UNIT,
        "higher",
        _OURS,
    ),
    MetricInfo(
        "lesion_f1",
        "F1 over 26-connected lesions; a lesion counts as found when one of its voxels is predicted.",
        _UNIT,
        "higher",
        "lesion-wise detection as in the BraTS and autoPET challenges",
    ),
    # images
    MetricInfo(
        "ssim_gaussian",
        "Mean structural similarity with an 11x11 Gaussian window (sigma 1.5, K1 .01, K2 .03, a 5 pixel "
        "frame left out), mean over axial slices of a volume, on the task's fixed data range.",
        "[-1, 1]",
        "higher",
        "Wang et al., IEEE TIP 2004",
    ),
    MetricInfo(
        "psnr",
        "10 log10(range^2 / MSE) over all pixels, capped at 100.",
        "(-inf, 100] dB",
        "higher",
        "common definition",
    ),
    MetricInfo("mae", "Mean absolute error.", "[0, range] in the image's unit", "lower", "common definition"),
    MetricInfo(
        "rmse", "Root mean square error.", "[0, range] in the image's unit", "lower", "common definition"
    ),
    MetricInfo(
        "lpips_alex",
        "Learned perceptual distance, AlexNet, version 0.1; needs local weights.",
        "[0, inf)",
        "lower",
        "Zhang et al., CVPR 2018",
    ),
    # answers
    MetricInfo(
        "exact_match_normalised",
        "Share of answers equal to the reference in normal form; closed questions by their yes/no decision.",
        _UNIT,
        "higher",
        f"{_OURS}, after the VQA v2 and SQuAD normalisers",
    ),
    MetricInfo("open_exact_match", "Normalised exact match over open questions.", _UNIT, "higher", _OURS),
    MetricInfo(
        "option_accuracy", "Share of answers whose option letter is the reference's.", _UNIT, "higher", _OURS
    ),
    MetricInfo(
        "parse_rate",
        "Share of questions with an answer that names one of its options.",
        _UNIT,
        "higher",
        _OURS,
    ),
    MetricInfo(
        "token_f1",
        "F1 of the bags of normalised tokens.",
        _UNIT,
        "higher",
        "Rajpurkar et al., EMNLP 2016 (SQuAD)",
    ),
    MetricInfo(
        "yes_no_accuracy",
        "Share of right decisions over yes/no questions.",
        _UNIT,
        "higher",
        "common definition",
    ),
    MetricInfo(
        "em_f1_mean", "Mean of exact match and token F1.", _UNIT, "higher", "published open-answer score"
    ),
    # reports
    MetricInfo(
        "report_mean",
        "The score of the metric set that was used: mlrg7, obs_rouge or bleu_rouge.",
        _UNIT,
        "higher",
        _OURS,
    ),
    MetricInfo(
        "mlrg7",
        "Unweighted mean of bleu, meteor, rouge_l, f1_radgraph and CheXbert-14 micro precision, recall "
        "and F1; needs local weights.",
        _UNIT,
        "higher",
        "published report score",
    ),
    MetricInfo(
        "obs_rouge",
        "0.7 observation F1 + 0.3 ROUGE-L, mean over cases; needs no weights.",
        _UNIT,
        "higher",
        "published lightweight report score",
    ),
    MetricInfo(
        "bleu_rouge",
        "Half the mean of a case's BLEU-1 to BLEU-4, half its ROUGE-L, mean over cases; for captions, whose content "
        "no chest observation describes; needs no weights.",
        _UNIT,
        "higher",
        _OURS,
    ),
    MetricInfo("bleu", "Mean of corpus BLEU-1 to BLEU-4.", _UNIT, "higher", "Papineni et al., ACL 2002"),
    *(
        MetricInfo(f"bleu_{n}", f"Corpus BLEU-{n}, unsmoothed.", _UNIT, "higher", "Papineni et al., ACL 2002")
        for n in (1, 2, 3, 4)
    ),
    MetricInfo(
        "meteor",
        "METEOR with WordNet synonyms, NLTK's parameters; needs the WordNet files.",
        _UNIT,
        "higher",
        "Banerjee and Lavie, ACL workshop 2005; not Meteor 1.5",
    ),
    MetricInfo(
        "meteor_exact_stem",
        "METEOR with exact and stem matches only.",
        _UNIT,
        "higher",
        "Banerjee and Lavie, ACL workshop 2005",
    ),
    MetricInfo(
        "rouge_l", "F1 of the longest common subsequence of words.", _UNIT, "higher", "Lin, ACL workshop 2004"
    ),
    MetricInfo(
        "cider_d",
        "Clipped tf-idf cosine of 1- to 4-grams with length penalty, frequencies of the whole reference set.",
        "[0, 10]",
        "higher",
        "Vedantam et al., CVPR 2015",
    ),
    MetricInfo(
        "f1_radgraph",
        "F1 of entities with label and presence of relations (partial); needs local weights.",
        _UNIT,
        "higher",
        "Delbrouck et al., EMNLP Findings 2022",
    ),
    *(
        MetricInfo(
            f"chexbert14_micro_{part}",
            f"Micro-averaged {part} over 14 CheXbert labels, uncertain counted as positive; needs "
            f"local weights.",
            _UNIT,
            "higher",
            _CHEXBERT,
        )
        for part in ("precision", "recall", "f1")
    ),
    MetricInfo("chexlabel_rule_f1", "Micro F1 over 14 chest labels read by rules.", _UNIT, "higher", _RULES),
    *(
        MetricInfo(
            f"chexlabel_rule_{part}_micro",
            f"{part.capitalize()} over cases and 14 chest labels read by rules, uncertain counted "
            f"as positive.",
            _UNIT,
            "higher",
            _RULES,
        )
        for part in ("precision", "recall", "f1")
    ),
    MetricInfo(
        "chexlabel_rule_f1_macro",
        "Mean F1 over the chest labels that occur on either side, read by rules.",
        _UNIT,
        "higher",
        _RULES,
    ),
    *(
        MetricInfo(
            f"observation_{part}",
            f"{part.capitalize()} of twelve chest observations read by rules, mean over cases; "
            "1 when neither report affirms any.",
            _UNIT,
            "higher",
            f"{_OURS}, on the concepts of the published lightweight score",
        )
        for part in ("precision", "recall", "f1")
    ),
    MetricInfo(
        "distinct_reports",
        "Share of distinct texts among the reports; low for a template.",
        _UNIT,
        "higher",
        _OURS,
    ),
    MetricInfo(
        "distinct_answers",
        "Share of distinct answers among those given, case and spaces left aside; low for a constant answer.",
        _UNIT,
        "higher",
        _OURS,
    ),
    # boxes
    MetricInfo(
        "map50_coco101",
        "Mean over the classes that occur of 101-point average precision at IoU 0.5, 100 detections "
        "per image and class.",
        _UNIT,
        "higher",
        _COCO,
    ),
    MetricInfo("map_coco", "The same, mean over IoU 0.50, 0.55, ... 0.95.", _UNIT, "higher", _COCO),
    MetricInfo(
        "ap50_coco101",
        "101-point average precision at IoU 0.5 of one class; none without a reference.",
        _UNIT,
        "higher",
        _COCO,
    ),
    MetricInfo(
        "ap50_voc_all_points",
        "Mean over classes of the area under the precision envelope at IoU 0.5; each detection is held "
        "against its best reference only.",
        _UNIT,
        "higher",
        "Everingham et al., IJCV 2010 (PASCAL VOC)",
    ),
    MetricInfo(
        "recall_at_fppi",
        "Recall at IoU 0.5 with at most that many false positives per image, classes pooled.",
        _UNIT,
        "higher",
        "free-response ROC, Bunch et al., 1978",
    ),
    MetricInfo(
        "f1_iou50", "F1 of an image's boxes at IoU 0.5, whatever their score.", _UNIT, "higher", _OURS
    ),
    # classes
    MetricInfo("accuracy", "Share of right classes.", _UNIT, "higher", "common definition"),
    MetricInfo(
        "balanced_accuracy",
        "Mean recall over the classes of the reference.",
        _UNIT,
        "higher",
        "Brodersen et al., ICPR 2010",
    ),
    MetricInfo("macro_f1", "Mean F1 over the task's classes.", _UNIT, "higher", "common definition"),
    MetricInfo(
        "auroc_macro",
        "Mean one-against-rest area under the ROC curve, ties counting one half; none for a class "
        "without contrast.",
        _UNIT,
        "higher",
        "Hanley and McNeil, Radiology 1982",
    ),
)

METRICS: dict[str, MetricInfo] = {metric.name: metric for metric in _ALL}


def metric_info(name: str) -> MetricInfo | None:
    """The entry of a metric, or of the one a target or rate was appended to (``dice_kidney``.

    ``recall_at_fppi_0.5``).
    """
    stem = name
    while stem not in METRICS and "_" in stem:
        stem = stem.rpartition("_")[0]
    return METRICS.get(stem)
