"""The scoring contract of each track, on tiny data."""

from __future__ import annotations

import json
import shutil

import nibabel
import numpy as np
import pytest

from evaluator.metrics.registry import metric_info
from evaluator.reference_submissions import write_trivial
from evaluator.score import score
from evaluator.tracks.base import ReferenceMissing

TRACKS = [
    "segmentation",
    "labelmap",
    "enhancement",
    "synthesis",
    "vqa",
    "report",
    "detection",
    "classification",
]


def rewrite_mask(path, change) -> None:
    image = nibabel.load(path)
    data = np.asanyarray(image.dataobj).copy()
    nibabel.save(nibabel.Nifti1Image(change(data), image.affine), path)


def write_json(path, value) -> None:
    path.write_text(json.dumps(value))


def erased(data):
    return data * 0


@pytest.mark.parametrize("track", TRACKS)
def test_references_score_one_and_nothing_scores_zero(stage, track: str, tmp_path) -> None:
    staged = stage(track)
    report = staged.score()
    assert (report.task_score, report.task_score_ungated, report.completion) == (1.0, 1.0, 1.0)
    assert report.all_valid
    assert report.format_valid
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = staged.score(submission=empty)
    assert (nothing.task_score_ungated, nothing.completion, nothing.format_valid) == (0.0, 0.0, False)
    assert {case.status for case in nothing.cases} == {"missing"}
    assert all(case.score == 0 for case in nothing.cases)


@pytest.mark.parametrize("track", TRACKS)
def test_trivial_submission_is_valid_and_worse_than_perfect(stage, track: str, tmp_path) -> None:
    staged = stage(track)
    write_trivial(staged.task, staged.manifest, staged.public, tmp_path / "trivial")
    report = staged.score(submission=tmp_path / "trivial")
    assert report.all_valid
    assert report.task_score < 0.95


@pytest.mark.parametrize("track", TRACKS)
def test_every_number_has_a_definition(stage, track: str) -> None:
    report = stage(track).score()
    names = set(report.aggregates).union(*(case.metrics for case in report.cases))
    assert [name for name in sorted(names) if metric_info(name) is None] == []


@pytest.mark.parametrize(
    ("track", "side", "name"),
    [
        ("segmentation", "public", "ct.nii.gz"),
        ("segmentation", "private", "lesion.nii.gz"),
        ("enhancement", "public", "input.npy"),
        ("enhancement", "private", "reference.npy"),
        ("synthesis", "public", "mr.nii.gz"),
        ("vqa", "private", "answer.json"),
        ("report", "private", "report.txt"),
        ("detection", "private", "boxes.json"),
        ("classification", "private", "label.json"),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe neither this nor that"])
def test_a_broken_staged_file_is_never_the_submissions_fault(stage, track, side, name, content) -> None:
    staged = stage(track)
    path = staged.root / side / "c2" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReferenceMissing, match="c2"):
        staged.score()


# --- segmentation ---


def test_a_missing_case_gates_segmentation_and_not_the_ungated_score(stage) -> None:
    staged = stage("segmentation")
    staged.output("c2").unlink()
    report = staged.score()
    assert (report.task_score, report.task_score_ungated) == (0.0, pytest.approx(2 / 3))
    assert report.cases[1].error.code == "missing"
    assert report.format_valid
    assert not report.all_valid


def test_an_unreadable_case_gates_too(stage) -> None:
    staged = stage("segmentation")
    staged.output("c2").write_bytes(b"\x1f\x8bgarbage")
    report = staged.score()
    assert (report.task_score, report.task_score_ungated) == (0.0, pytest.approx(2 / 3))
    assert report.cases[1].status == "invalid"
    assert not report.format_valid


def test_a_broken_file_is_named_even_when_another_one_is_missing(stage) -> None:
    staged = stage("segmentation")
    staged.output("c1", "organ.nii.gz").unlink()
    staged.output("c1", "lesion.nii.gz").write_bytes(b"\x1f\x8bgarbage")
    assert staged.case("c1").status == "invalid"


def test_a_truly_absent_lesion_counts_one_and_is_flagged(stage) -> None:
    staged = stage("segmentation")
    case = staged.case("c3")
    assert case.metrics["dice_lesion"] == 1.0
    assert case.flags == ("true_negative:lesion",)


def test_positive_mean_leaves_true_negatives_out_but_not_missing_cases(stage) -> None:
    staged = stage("segmentation")
    rewrite_mask(staged.output("c1", "lesion.nii.gz"), erased)
    assert staged.score().aggregates["lesion_positive_dice"] == pytest.approx(0.5)
    staged.output("c2", "lesion.nii.gz").unlink()
    assert staged.score().aggregates["lesion_positive_dice"] == 0.0


def test_saying_nothing_about_an_absent_lesion_is_no_true_negative(stage) -> None:
    staged = stage("segmentation")
    staged.output("c3", "lesion.nii.gz").unlink()
    case = staged.case("c3")
    assert case.metrics["dice_lesion"] == 0.0
    assert case.flags == ()


def test_empty_prediction_gets_the_diagonal(stage) -> None:
    staged = stage("segmentation")
    rewrite_mask(staged.output("c1", "organ.nii.gz"), erased)
    case = staged.case("c1")
    assert case.metrics["dice_organ"] == 0.0
    assert case.metrics["nsd_voxel_organ"] == 0.0
    assert case.metrics["hd95_directed_max_organ"] == pytest.approx(
        np.linalg.norm([20 * 1.0, 24 * 1.5, 10 * 3.0])
    )


def test_absent_organ_is_left_out_and_a_false_one_counts_zero(stage) -> None:
    staged = stage("labelmap")
    assert staged.case("c2").metrics["dice_c"] is None
    assert staged.case("c2").score == 1.0

    def add_c(data):
        data[15, 20, 8] = 7
        return data

    rewrite_mask(staged.output("c2"), add_c)
    case = staged.case("c2")
    assert case.metrics["dice_c"] == 0.0
    assert case.score == pytest.approx(3 / 4)


def test_overlapping_targets_are_measured_on_their_own_union(stage) -> None:
    staged = stage("labelmap")

    def swap(data):
        return np.array([0, 2, 1, 3, 4, 5, 6, 7], np.uint8)[data]

    rewrite_mask(staged.output("c2"), swap)
    case = staged.case("c2")
    assert (case.metrics["dice_a"], case.metrics["dice_b"], case.metrics["dice_whole"]) == (0.0, 0.0, 1.0)


def test_another_orientation_of_the_same_mask_scores_the_same(stage) -> None:
    staged = stage("segmentation")
    path = staged.output("c1")
    image = nibabel.load(path)
    data, affine = np.asanyarray(image.dataobj), image.affine
    turned = nibabel.orientations.axcodes2ornt("SRA")
    reoriented = nibabel.Nifti1Image(data, affine).as_reoriented(
        nibabel.orientations.ornt_transform(nibabel.orientations.io_orientation(affine), turned)
    )
    nibabel.save(reoriented, path)
    assert staged.case("c1").score == 1.0


def _shifted_affine(path, millimetres: float = 0.5) -> None:
    image = nibabel.load(path)
    affine = image.affine.copy()
    affine[0, 3] += millimetres
    nibabel.save(nibabel.Nifti1Image(np.asanyarray(image.dataobj), affine), path)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: rewrite_mask(path, lambda data: data[:-1]), "wrong_shape"),
        (lambda path: rewrite_mask(path, lambda data: data * 2), "unknown_label"),
        (lambda path: rewrite_mask(path, lambda data: data * np.float32(np.nan)), "non_finite"),
        (lambda path: rewrite_mask(path, lambda data: data * np.float32(0.7)), "non_integer_labels"),
        (lambda path: rewrite_mask(path, lambda data: np.stack([data, data], 3)), "wrong_dimensions"),
        (_shifted_affine, "wrong_grid"),
    ],
)
def test_a_mask_that_breaks_the_contract_is_named(stage, spoil, code: str) -> None:
    staged = stage("segmentation")
    spoil(staged.output("c1"))
    case = staged.case("c1")
    assert (case.status, case.score, case.error.code) == ("invalid", 0.0, code)


def test_a_shift_within_the_tolerance_is_scored_and_one_between_staged_files_is_not_the_agents(stage) -> None:
    staged = stage("segmentation")
    _shifted_affine(staged.output("c1"), 0.0009)
    assert staged.case("c1").score == 1.0
    _shifted_affine(staged.private / "c1" / "lesion.nii.gz")
    with pytest.raises(ReferenceMissing, match="c1"):
        staged.score()


def test_skill_is_measured_from_the_declared_trivial_score(stage) -> None:
    staged = stage("segmentation")
    rewrite_mask(staged.output("c1"), erased)
    report = staged.score()
    assert report.skill == pytest.approx((report.task_score_ungated - 0.25) / 0.75)


# --- images ---


def test_values_outside_the_range_are_clipped(stage) -> None:
    staged = stage("enhancement")
    image = np.load(staged.output("c1"))
    reference = np.load(staged.private / "c1" / "reference.npy")
    reference[:10], image[:10] = 2000, 99_999
    np.save(staged.private / "c1" / "reference.npy", reference)
    np.save(staged.output("c1"), image)
    assert staged.case("c1").metrics["mae"] == 0.0


def test_a_negative_similarity_scores_zero_and_stays_visible(stage) -> None:
    staged = stage("enhancement")
    board = (300 * (-1.0) ** np.indices((40, 36)).sum(axis=0)).astype(np.float32)
    np.save(staged.private / "c1" / "reference.npy", board)
    np.save(staged.output("c1"), -board)
    case = staged.case("c1")
    assert case.metrics["ssim_gaussian"] < 0
    assert case.score == 0.0


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda image: image[:-1], "wrong_shape"),
        (lambda image: image * np.nan, "non_finite"),
        (lambda image: image.astype(complex), "unsupported_dtype"),
        (lambda image: image.astype(object), "pickled"),
    ],
)
def test_an_image_that_breaks_the_contract_is_named(stage, spoil, code: str) -> None:
    staged = stage("enhancement")
    np.save(staged.output("c1"), spoil(np.load(staged.output("c1"))))
    assert staged.case("c1").error.code == code


@pytest.mark.parametrize("dtype", ["<f8", ">f8", ">f4", "<i2", ">i4", "<i8", "<f2"])
def test_an_image_of_any_real_type_is_read_for_its_values(stage, dtype: str) -> None:
    staged = stage("enhancement")
    whole = np.rint(np.load(staged.output("c1")))
    np.save(staged.private / "c1" / "reference.npy", whole.astype(np.float32))
    np.save(staged.output("c1"), np.asfortranarray(whole).astype(dtype))
    assert staged.case("c1").score == pytest.approx(1.0)


@pytest.mark.parametrize("extreme", [1.7e308, -1.7e308, 5e-324])
def test_extreme_values_are_clipped_and_break_nothing(stage, extreme: float) -> None:
    staged = stage("enhancement")
    np.save(staged.output("c1"), np.full((40, 36), extreme))
    case = staged.case("c1")
    assert case.status == "scored"
    assert case.metrics["mae"] <= 2000


def test_an_enlarged_output_must_have_the_enlarged_shape(stage, tmp_path) -> None:
    staged = stage("enhancement", scale=2)
    for case in staged.cases:
        np.save(staged.private / case / "reference.npy", np.zeros((80, 72), np.float32))
    assert staged.case("c1").error.code == "wrong_shape"
    write_trivial(staged.task, staged.manifest, staged.public, tmp_path / "trivial")
    assert staged.score(submission=tmp_path / "trivial").all_valid


# --- answers ---


@pytest.mark.parametrize(
    ("content", "right", "code"),
    [
        ({"question_id": "c1", "predicted_answer": "no"}, True, None),
        ({"question_id": "c1", "predicted_answer": "No, there is none."}, True, None),
        ({"question_id": "c1", "predicted_answer": "normal"}, False, None),
        ({"question_id": "c1", "predicted_answer": "no", "confidence": 0.4}, True, None),
        ({"question_id": "c2", "predicted_answer": "no"}, False, "wrong_case"),
        ({"question_id": "c1", "predicted_answer": ""}, False, "missing_key"),
        ({"question_id": "c1", "predicted_answer": "  "}, False, "empty_answer"),
        ({"question_id": "c1", "predicted_answer": ["no"]}, False, "wrong_type"),
        ({"question_id": "c1"}, False, "missing_key"),
        (["no"], False, "wrong_type"),
    ],
)
def test_answers(stage, content, right: bool, code: str | None) -> None:
    staged = stage("vqa")
    write_json(staged.output("c1"), content)
    case = staged.case("c1")
    assert case.score == float(right)
    assert (case.error.code if case.error else None) == code


def test_only_yes_no_questions_enter_the_yes_no_accuracy(stage) -> None:
    staged = stage("vqa")
    write_json(staged.output("c1"), {"question_id": "c1", "predicted_answer": "yes"})
    write_json(staged.output("c2"), {"question_id": "c2", "predicted_answer": "left lung"})
    report = staged.score()
    assert report.aggregates["yes_no_accuracy"] == 0.5
    assert report.aggregates["open_exact_match"] == 0.0
    assert report.task_score == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("content", "right", "code"),
    [
        ({"predicted_label": "B"}, True, None),
        ({"predicted_label": "(b)"}, True, None),
        ({"predicted_label": "The answer is B."}, True, None),
        ({"predicted_label": "A", "predicted_answer": "heart"}, False, None),
        ({"predicted_label": "B", "predicted_answer": "lung"}, True, None),
        ({"predicted_label": "D"}, False, "no_option_named"),
        ({"predicted_label": "A or B"}, False, "no_option_named"),
        ({"predicted_label": "I cannot tell"}, False, "no_option_named"),
        ({"predicted_label": "", "predicted_answer": "heart"}, False, "missing_key"),
        ({"predicted_answer": "B"}, False, "missing_key"),
        ({"predicted_label": 1}, False, "wrong_type"),
    ],
)
def test_multiple_choice_counts_the_letter_of_this_question(stage, content, right: bool, code) -> None:
    staged = stage("vqa", mode="choice")
    write_json(staged.private / "c1" / "answer.json", {"answer": "B"})
    write_json(staged.output("c1"), {"question_id": "c1"} | content)
    case = staged.case("c1")
    assert case.score == float(right)
    assert (case.error.code if case.error else None) == code


def test_the_reference_repeats_the_options_for_a_scorer_without_public_data(stage) -> None:
    staged = stage("vqa", mode="choice")
    for case in staged.cases:
        key = {"answer": "B", "options": {"A": "lung", "B": "heart"}}
        write_json(staged.private / case / "answer.json", key)
        write_json(
            staged.output(case), {"question_id": case, "predicted_label": "B" if case != "c3" else "C"}
        )
    report = score(staged.task, staged.submission, staged.private, None, staged.manifest, jobs=1)
    assert [case.status for case in report.cases] == ["scored", "scored", "invalid"]
    assert report.aggregates == pytest.approx(
        {"option_accuracy": 2 / 3, "parse_rate": 2 / 3, "distinct_answers": 0.5}
    )


# --- reports ---


def test_the_set_that_was_used_is_named_and_the_other_one_explained(stage) -> None:
    report = stage("report").score()
    assert report.metric_set == "obs_rouge"
    assert set(report.unavailable) >= {"mlrg7", "meteor", "f1_radgraph"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("short", "too_short"),
        ("1234567890 " * 10, "too_few_letters"),
        ("word " * 2000, "too_long"),
        ("The lungs are clear and the heart is normal.\x00", "control_character"),
    ],
)
def test_a_report_that_breaks_the_contract_is_named(stage, text: str, code: str) -> None:
    staged = stage("report")
    staged.output("c1").write_text(text)
    assert staged.case("c1").error.code == code


def test_reports_may_be_written_in_any_script(stage) -> None:
    staged = stage("report")
    staged.output("c1").write_text("Kein Erguss, Herzgröße normal, Trachea mittelständig, µ und ° erlaubt.")
    assert staged.case("c1").status == "scored"


def test_one_template_for_all_shows(stage, tmp_path) -> None:
    staged = stage("report")
    write_trivial(staged.task, staged.manifest, staged.public, tmp_path / "trivial")
    assert staged.score(submission=tmp_path / "trivial").aggregates["distinct_reports"] == pytest.approx(
        1 / 3
    )


CAPTION_SETS = ("mlrg7", "bleu_rouge")


def test_captions_are_scored_by_words_and_nothing_is_said_of_the_chest(stage) -> None:
    staged = stage("report", sets=CAPTION_SETS)
    report = staged.score()
    assert (report.metric_set, report.task_score) == ("bleu_rouge", 1.0)
    assert "mlrg7" in report.unavailable
    named = set(report.aggregates).union(*(case.metrics for case in report.cases))
    assert not [name for name in named if "observation" in name or "chexlabel" in name or "obs" in name]
    staged.output("c1").write_text("There is no such thing in this picture, none at all, and nothing else.")
    partly = staged.score()
    assert 0 < partly.cases[0].score < 0.3
    assert partly.task_score == pytest.approx(sum(case.score for case in partly.cases) / 3)


def test_a_caption_of_one_word_can_be_right(stage) -> None:
    staged = stage("report", sets=CAPTION_SETS, min_chars=1, min_letters=1)
    for case in staged.cases:
        (staged.private / case / "report.txt").write_text("Teratoma.")
        staged.output(case).write_text("teratoma")
    assert 0.5 < staged.score().task_score < 1
    for case in staged.cases:
        staged.output(case).write_text("Teratoma.")
    assert staged.score().task_score == 1.0


# --- boxes ---


def test_classes_without_reference_are_left_out_of_the_mean(stage) -> None:
    report = stage("detection").score()
    assert report.aggregates["ap50_coco101_ghost"] is None
    assert report.task_score == 1.0


def test_a_missing_image_has_no_boxes_there(stage) -> None:
    staged = stage("detection")
    staged.output("c1").unlink()
    report = staged.score()
    # Recall reaches 1/2 with full precision: 51 of the 101 recall points.
    assert report.task_score == pytest.approx(51 / 101)
    assert report.cases[0].status == "missing"


def test_no_box_where_there_is_none_is_right(stage) -> None:
    assert stage("detection").case("c3").score == 1.0


BOX = {"class": "cell", "x1": 1, "y1": 1, "x2": 5, "y2": 5}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"boxes": [BOX | {"class": "alien"}]}, "unknown_class"),
        ({"boxes": [BOX | {"x2": 1}]}, "bad_box"),
        ({"boxes": [BOX | {"x2": 10**400}]}, "bad_box"),
        ({"boxes": [BOX | {"x2": 1e308}]}, "bad_box"),
        ({"boxes": [BOX | {"x1": 5e-324, "x2": 0.0}]}, "bad_box"),
        ({"boxes": [BOX | {"score": 1.5}]}, "bad_score"),
        ({"boxes": [BOX | {"score": True}]}, "wrong_type"),
        ({"boxes": [BOX | {"x1": "1"}]}, "wrong_type"),
        ({"boxes": [[1, 1, 5, 5]]}, "wrong_type"),
        ({"boxes": None}, "wrong_type"),
        ([], "wrong_type"),
    ],
)
def test_boxes_that_break_the_contract_are_named(stage, content, code: str) -> None:
    staged = stage("detection")
    write_json(staged.output("c1"), content)
    assert staged.case("c1").error.code == code


def test_the_order_of_boxes_does_not_matter(stage) -> None:
    staged = stage("detection")
    boxes = [BOX | {"score": 0.5, "x2": 5 + n} for n in range(30)]
    write_json(staged.output("c1"), {"boxes": boxes})
    forward = staged.score()
    write_json(staged.output("c1"), {"boxes": boxes[::-1]})
    assert staged.score() == forward


# --- classes ---


def test_class_names_ignore_case_and_probabilities_give_an_auroc(stage) -> None:
    staged = stage("classification")
    for case, good in zip(staged.cases, (0.9, 0.8, 0.1), strict=True):
        label = "GOOD" if good > 0.5 else "bad"
        write_json(staged.output(case), {"label": label, "probabilities": {"good": good, "bad": 1 - good}})
    report = staged.score()
    assert report.task_score == 1.0
    assert report.aggregates["auroc_macro"] == 1.0


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"label": "ugly"}, "unknown_class"),
        ({"label": "good", "probabilities": {"good": 0.9, "bad": 0.9}}, "bad_probability"),
        ({"label": "good", "probabilities": {"good": 1.0}}, "bad_probability"),
        ({"label": "good", "probabilities": [1, 0]}, "wrong_type"),
        ({"label": "good", "probabilities": {"good": 1, "GOOD": 0.5, "bad": 0.5}}, "bad_probability"),
    ],
)
def test_classes_that_break_the_contract_are_named(stage, content, code: str) -> None:
    staged = stage("classification")
    write_json(staged.output("c1"), content)
    assert staged.case("c1").error.code == code


# --- every track ---


@pytest.mark.parametrize(
    "track",
    [
        *("segmentation", "labelmap", "enhancement", "synthesis"),
        *("vqa", "report", "detection", "classification"),
    ],
)
def test_the_order_of_cases_does_not_matter(stage, track: str, tmp_path) -> None:
    staged = stage(track)
    write_trivial(staged.task, staged.manifest, staged.public, tmp_path / "trivial")
    copies = {f"c{10 - n}-{n % 3}": f"c{n % 3 + 1}" for n in range(9)}
    for number, (copy, original) in enumerate(copies.items()):
        for side in ("public", "private"):
            shutil.copytree(staged.root / side / original, staged.root / side / copy)
        source = tmp_path / "trivial" if number % 2 else staged.submission
        shutil.copytree(source / original, staged.submission / copy)
        if track == "vqa":
            write_json(
                staged.output(copy), json.loads(staged.output(copy).read_text()) | {"question_id": copy}
            )
        if track == "detection":
            boxes = [
                BOX | {"score": 0.5, "x2": 5 + number},
                BOX | {"score": 0.5, "x1": 4, "y1": 4, "x2": 22, "y2": 20},
            ]
            write_json(staged.output(copy), {"boxes": boxes})
    entry = staged.manifest.cases[0]
    cases = tuple(entry.model_copy(update={"id": copy}) for copy in copies)
    reports = []
    for order in (cases, cases[::-1], cases[4:] + cases[:4]):
        manifest = staged.manifest.model_copy(update={"cases": order})
        reports.append(score(staged.task, staged.submission, staged.private, staged.public, manifest, jobs=2))
    for other in reports[1:]:
        assert other.aggregates == reports[0].aggregates
        assert other.task_score == reports[0].task_score
        assert sorted(other.cases, key=lambda case: case.case_id) == sorted(
            reports[0].cases, key=lambda case: case.case_id
        )
