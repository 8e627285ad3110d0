"""Metrics for which no light library is an authority, held against their definitions written down loop by loop."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
import pytest

from evaluator.metrics.answers import exact_match, option_letter, token_f1, yes_no
from evaluator.metrics.boxes import Detections, References, f1_at_iou, froc_recall, voc_ap50
from evaluator.metrics.chest import LABELS, chexlabel_rule_f1, extract, positive_labels
from evaluator.metrics.image import mae, rmse
from evaluator.metrics.meteor import exact_stem_meteor
from evaluator.metrics.observation import obs_rouge, observation_f1, observations
from evaluator.metrics.segmentation import lesion_f1, volume_error_ml
from evaluator.metrics.text import cider_d, document_frequencies, rouge_l, tokenise

CLASSES = ("a", "b", "c")

# --- masks and images ---


def lesions(cases: int) -> None:
    for seed in range(cases):
        generator = np.random.default_rng(seed)
        shape = tuple(generator.integers(2, 7, 3))
        reference, prediction = generator.random((2, *shape)) < generator.uniform(0.05, 0.4)
        ours, theirs = components(reference), components(prediction)
        if not ours or not theirs:
            expected = float(not ours and not theirs)
        else:
            recall = sum(any(prediction[voxel] for voxel in part) for part in ours) / len(ours)
            precision = sum(any(reference[voxel] for voxel in part) for part in theirs) / len(theirs)
            expected = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
        assert lesion_f1(reference, prediction) == pytest.approx(expected, abs=1e-9)


def components(mask: np.ndarray) -> list[list[tuple[int, ...]]]:
    """Flood fill through faces, edges and corners."""
    left = {tuple(map(int, voxel)) for voxel in np.argwhere(mask)}
    parts = []
    while left:
        part, front = [], [left.pop()]
        while front:
            voxel = front.pop()
            part.append(voxel)
            for step in product((-1, 0, 1), repeat=3):
                neighbour = tuple(a + b for a, b in zip(voxel, step, strict=True))
                if neighbour in left:
                    left.remove(neighbour)
                    front.append(neighbour)
        parts.append(part)
    return parts


def volumes(cases: int) -> None:
    for seed in range(cases):
        generator = np.random.default_rng(seed)
        reference, prediction = generator.random((2, 5, 6, 4)) < 0.4
        spacing = generator.uniform(0.3, 5, 3)
        voxel = spacing[0] * spacing[1] * spacing[2] / 1000
        expected = sum(voxel for _ in np.argwhere(prediction)) - sum(voxel for _ in np.argwhere(reference))
        assert volume_error_ml(reference, prediction, spacing) == pytest.approx(expected, abs=1e-6)


def errors(cases: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(cases):
        generator = np.random.default_rng(seed)
        reference, prediction = generator.normal(0, 300, (2, 9, 11))
        flat = reference.ravel(), prediction.ravel()
        assert mae(reference, prediction) == pytest.approx(metrics.mean_absolute_error(*flat), abs=1e-6)
        expected = math.sqrt(metrics.mean_squared_error(*flat))
        assert rmse(reference, prediction) == pytest.approx(expected, abs=1e-6)


# --- answers ---

PLAIN_WORDS = ["left", "right", "lung", "heart", "mass", "lobe", "upper", "lower", "effusion", "cyst"]


def answers(cases: int) -> None:
    for seed in range(cases):
        generator = random.Random(seed)
        answer, key = (generator.choices(PLAIN_WORDS, k=generator.randint(1, 6)) for _ in range(2))
        left = list(key)
        shared = 0
        for word in answer:
            if word in left:
                left.remove(word)
                shared += 1
        precision, recall = shared / len(answer), shared / len(key)
        expected = 2 * precision * recall / (precision + recall) if shared else 0.0
        assert token_f1(" ".join(answer), " ".join(key)) == pytest.approx(expected, abs=1e-9)
        assert exact_match(" ".join(answer), " ".join(key)) is (answer == key)
        decision, other = generator.choice(["yes", "no"]), generator.choice(["yes", "no"])
        said = f"{decision.title()}, {' '.join(answer)}."
        assert yes_no(said) is (decision == "yes")
        assert exact_match(said, other, closed=True) is (decision == other)
        options = generator.sample(PLAIN_WORDS, 5)
        place = generator.randrange(5)
        forms = ("{}", "({})", "{}. {}", "The answer is {}.", "{}) because of the {}")
        text = generator.choice(forms).format("ABCDE"[place], options[place])
        assert option_letter(text, options) == "ABCDE"[place]


# --- texts ---

SENTENCES = [
    "there is a small left pleural effusion .",
    "no pneumothorax is seen .",
    "the heart is enlarged .",
    "possible right basilar atelectasis .",
    "a pacemaker is in place .",
    "no focal consolidation or edema .",
    "there is a calcified granuloma .",
    "the lungs are clear .",
]


def reports(seed: int, n: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.sample(SENTENCES, generator.randint(1, 5))) for _ in range(n)]


def cider(cases: int) -> None:
    for seed in range(cases):
        references, predictions = reports(seed, 5), reports(seed + 10**6, 5)
        documents = [set(grams(tokenise(text), order)) for text in references for order in range(1, 5)]

        def weight(gram: tuple[str, ...], count: int, documents: list[set] = documents) -> float:
            return count * (math.log(5) - math.log(max(1, sum(gram in each for each in documents))))

        expected = []
        for prediction, reference in zip(predictions, references, strict=True):
            ours, theirs = tokenise(prediction), tokenise(reference)
            score = 0.0
            for order in range(1, 5):
                left = {gram: weight(gram, count) for gram, count in grams(ours, order).items()}
                right = {gram: weight(gram, count) for gram, count in grams(theirs, order).items()}
                norm = math.sqrt(sum(v * v for v in left.values()) * sum(v * v for v in right.values()))
                shared = sum(
                    min(left[gram], right[gram]) * right[gram] for gram in left.keys() & right.keys()
                )
                score += shared / norm if norm else 0.0
            penalty = math.exp(-((len(ours) - len(theirs)) ** 2) / 72)
            expected.append(10 * penalty * score / 4)
        mean, each = cider_d(predictions, references, document_frequencies(references))
        assert each == pytest.approx(expected, abs=1e-6)
        assert mean == pytest.approx(sum(expected) / 5, abs=1e-6)


def grams(tokens: list[str], order: int) -> dict[tuple[str, ...], int]:
    counts: dict[tuple[str, ...], int] = {}
    for start in range(len(tokens) - order + 1):
        gram = tuple(tokens[start : start + order])
        counts[gram] = counts.get(gram, 0) + 1
    return counts


def labels_and_observations(cases: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(cases):
        references, predictions = reports(seed, 4), reports(seed + 10**6, 4)
        tables = [
            np.array([[label in positive_labels(extract(text)) for label in LABELS] for text in side])
            for side in (references, predictions)
        ]
        expected = metrics.precision_recall_fscore_support(*tables, average="micro", zero_division=0)[:3]
        ours = chexlabel_rule_f1(predictions, references)
        assert list(ours.values())[:3] == pytest.approx(expected, abs=1e-9)
        used = np.flatnonzero((tables[0] | tables[1]).any(axis=0))
        macro = metrics.f1_score(*(table[:, used] for table in tables), average="macro", zero_division=0)
        assert ours["chexlabel_rule_f1_macro"] == pytest.approx(macro, abs=1e-9)
        for prediction, reference in zip(predictions, references, strict=True):
            found, true = observations(prediction), observations(reference)
            f1 = 2 * len(found & true) / (len(found) + len(true)) if found or true else 1.0
            assert observation_f1(prediction, reference).f1 == pytest.approx(f1, abs=1e-9)
            mixed = 0.7 * f1 + 0.3 * rouge_l(prediction, reference)
            assert obs_rouge(prediction, reference) == pytest.approx(mixed, abs=1e-9)


def meteor(cases: int) -> None:
    single_meteor_score = pytest.importorskip("nltk.translate.meteor_score").single_meteor_score

    class NoSynonyms:
        def synsets(self, word: str) -> list[object]:
            return []

    ours = exact_stem_meteor()
    for seed in range(cases):
        prediction, reference = reports(seed, 2)
        tokens = tokenise(reference), tokenise(prediction)
        expected = 1.0 if tokens[0] == tokens[1] else single_meteor_score(*tokens, wordnet=NoSynonyms())
        assert ours(prediction, reference) == pytest.approx(expected, abs=1e-6)


# --- boxes ---

Row = tuple[int, int, tuple[float, ...], float]
"""Image, class, box, score."""


def scene(seed: int) -> tuple[list[Row], list[Row]]:
    generator = np.random.default_rng(seed)
    references = [
        (int(generator.integers(0, 4)), int(generator.integers(0, 3)), (x, y, x + w, y + h), 1.0)
        for x, y, w, h in generator.uniform(5, 40, (int(generator.integers(1, 15)), 4))
    ]
    detections = []
    for score in generator.permutation(30)[: int(generator.integers(1, 30))]:
        image, label, box, _ = references[generator.integers(len(references))]
        moved = np.array(box) + generator.normal(0, generator.choice([0.5, 3, 10]), 4)
        moved[2:] = np.maximum(moved[2:], moved[:2] + 1)
        label = label if generator.random() < 0.8 else int(generator.integers(0, 3))
        detections.append((image, label, tuple(moved), float(score)))
    return references, sorted(detections, key=lambda row: -row[3])


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return width * height / (areas - width * height)


def greedy(references: list[Row], detections: Iterable[Row]) -> list[bool]:
    """Which detections hit, best first, each taking the free reference that it overlaps most."""
    free = set(range(len(references)))
    hits = []
    for image, label, box, _ in detections:
        best, place = 0.0, None
        for other in free:
            if references[other][:2] == (image, label) and overlap(box, references[other][2]) > best:
                best, place = overlap(box, references[other][2]), other
        hits.append(best >= 0.5)
        if best >= 0.5:
            free.discard(place)
    return hits


def voc(references: list[Row], detections: list[Row]) -> float:
    """Area under the precision envelope; a detection looks at the reference it overlaps most and at no other."""
    areas = []
    for label in sorted({row[1] for row in references}):
        of_class = [row for row in references if row[1] == label]
        found: set[int] = set()
        points, hits, misses = [], 0, 0
        for image, other, box, _ in detections:
            if other != label:
                continue
            overlaps = [overlap(box, row[2]) if row[0] == image else 0.0 for row in of_class]
            place = int(np.argmax(overlaps))
            if overlaps[place] >= 0.5 and place not in found:
                found.add(place)
                hits += 1
            else:
                misses += 1
            points.append((hits / len(of_class), hits / (hits + misses)))
        area, before = 0.0, 0.0
        for n, (recall, _) in enumerate(points):
            area += (recall - before) * max(precision for _, precision in points[n:])
            before = recall
        areas.append(area)
    return sum(areas) / len(areas)


def boxes(cases: int) -> None:
    for seed in range(cases):
        references, detections = scene(seed)
        true = References.of(*zip(*((image, label, box) for image, label, box, _ in references), strict=True))
        found = Detections.of(*zip(*detections, strict=True))
        hits = greedy(references, detections)
        f1 = 2 * sum(hits) / (len(references) + len(detections))
        assert f1_at_iou(true, found) == pytest.approx(f1, abs=1e-9)
        assert voc_ap50(true, found, CLASSES) == pytest.approx(voc(references, detections), abs=1e-9)
        for rate, recall in (froc_recall(true, found, 4) or {}).items():
            kept = [n for n in range(len(hits) + 1) if (n - sum(hits[:n])) / 4 <= rate]
            best = max(sum(hits[:n]) for n in kept) / len(references)
            assert recall == pytest.approx(best, abs=1e-9)


CHECKS: dict[str, Callable[[int], None]] = {
    "lesions": lesions,
    "volumes": volumes,
    "errors": errors,
    "answers": answers,
    "cider": cider,
    "labels_and_observations": labels_and_observations,
    "meteor": meteor,
    "boxes": boxes,
}


@pytest.mark.parametrize("name", CHECKS)
def test_some_cases(name: str) -> None:
    CHECKS[name](25)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_1000_cases(name: str) -> None:
    CHECKS[name](1000)
