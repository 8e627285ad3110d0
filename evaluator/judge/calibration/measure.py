"""How good a judge is on the calibration set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluator.judge.agreement import krippendorff_alpha
from evaluator.judge.calibration.samples import Sample
from evaluator.judge.judgement import Judgement
from evaluator.rubric import load_rubric

ItemKey = tuple[str, str]
"""Sample and item."""

UNSCORED = "unscored"
NOT_APPLICABLE = "n/a"
Value = float | str
"""A value, or one of the two words."""


@dataclass(frozen=True)
class ItemFigures:
    """One item over all samples that it applies to. ``high`` and ``low``: judged above or below the gold value."""

    item: str
    decided_by: str
    right: int
    high: int
    low: int
    unscored: int

    @property
    def total(self) -> int:
        return self.right + self.high + self.low + self.unscored


@dataclass(frozen=True)
class Figures:
    """``flip_rate``: share of items whose value was not the same in every repeat. ``won``: points that attempts won
    over their twins, by attempt. ``wrongly_applied``: items that were left out of the mean and should not, or the other
    way round.
    """

    items: tuple[ItemFigures, ...]
    repeats: int
    flip_rate: float
    attempts: int
    won: Mapping[str, float]
    wrongly_applied: int

    @property
    def accuracy(self) -> float:
        return _share(self.items)

    @property
    def program_accuracy(self) -> float:
        return _share([item for item in self.items if item.decided_by == "program"])


def _share(items: Sequence[ItemFigures]) -> float:
    return sum(item.right for item in items) / sum(item.total for item in items)


def values_of(judgement: Judgement) -> dict[str, Value]:
    """Value by item, with a word where there is no number."""
    return {
        item.id: (UNSCORED if item.value is None else item.value) if item.applies else NOT_APPLICABLE
        for item in judgement.items
    }


Judgements = Mapping[str, Sequence[Judgement]]
"""By sample: one judgement a repeat."""


def figures(samples: Sequence[Sample], attempts: Sequence[Sample], judgements: Judgements) -> Figures:
    """All figures of one judge; only the first repeat counts for accuracy."""
    values = {name: [values_of(one) for one in repeats] for name, repeats in judgements.items()}
    counts: dict[str, Counter[str]] = {}
    misapplied = 0
    for sample in samples:
        for item, gold in sample.gold.items():
            judged = values[sample.name][0][item]
            if gold is None or judged == NOT_APPLICABLE:
                misapplied += (gold is None) != (judged == NOT_APPLICABLE)
            else:
                counts.setdefault(item, Counter())[_outcome(judged, gold)] += 1
    repeats = max(len(each) for each in values.values())
    seen = [[each[item] for each in values[sample.name]] for sample in samples for item in sample.gold]
    return Figures(
        items=tuple(
            ItemFigures(item, _decided_by(item), count["right"], count["high"], count["low"], count[UNSCORED])
            for item, count in counts.items()
        ),
        repeats=repeats,
        flip_rate=sum(len(set(each)) > 1 for each in seen) / len(seen),
        attempts=sum(sample.twin is not None for sample in attempts),
        won=_won(attempts, values),
        wrongly_applied=misapplied,
    )


def _outcome(judged: Value, gold: float) -> str:
    if isinstance(judged, str):
        return UNSCORED
    return "right" if judged == gold else "high" if judged > gold else "low"


def _decided_by(item_id: str) -> str:
    from tasks.schema import Track

    return load_rubric(Track.SEGMENTATION).item(item_id).decided_by


def _won(attempts: Iterable[Sample], values: Mapping[str, Sequence[Mapping[str, Value]]]) -> dict[str, float]:
    won = {}
    for sample in attempts:
        if sample.twin is not None:
            own, twin = values[sample.name][0], values[sample.twin][0]
            points = sum(max(0.0, _number(own[item]) - _number(twin[item])) for item in sample.gold)
            if points:
                won[sample.name] = points
    return won


def _number(value: Value) -> float:
    return 0.0 if isinstance(value, str) else value


def alpha_between(one: Judgements, other: Judgements) -> float | None:
    """Krippendorff's alpha between two judges over all items that both scored, first repeat each."""
    units = []
    for name in one.keys() & other.keys():
        ours, theirs = values_of(one[name][0]), values_of(other[name][0])
        pairs = ((ours[item], theirs[item]) for item in ours.keys() & theirs.keys())
        units += [
            [mine, its] for mine, its in pairs if not isinstance(mine, str) and not isinstance(its, str)
        ]
    return krippendorff_alpha(units)
