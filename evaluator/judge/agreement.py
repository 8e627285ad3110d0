"""How far several votes on the same items agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations


def majority(votes: Sequence[float], panel: int) -> float | None:
    """The value that more than half of the votes cast gave, provided that more than half of the panel voted; None
    otherwise.
    """
    if 2 * len(votes) <= panel:
        return None
    value, count = Counter(votes).most_common(1)[0]
    return value if 2 * count > len(votes) else None


def agreement(votes: Sequence[float]) -> float | None:
    """Share of the votes that the most frequent value has, in (0, 1]; None without a vote."""
    return Counter(votes).most_common(1)[0][1] / len(votes) if votes else None


def krippendorff_alpha(units: Iterable[Sequence[float]]) -> float | None:
    """Krippendorff's alpha with the interval metric, which for yes/no values is the nominal one.

    Parameters
    ----------
    units : iterable of sequence of float
        The values that one item got; missing ones left out. Items with fewer than two values do not count.

    Returns
    -------
    float or None
        1: full agreement; 0: as by chance; None where there is nothing to compare, or all values are equal.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011.
    """
    pairable = [values for values in units if len(values) > 1]
    everything = [value for values in pairable for value in values]
    total = len(everything)
    expected = _disagreement(everything)
    if expected == 0:
        return None
    observed = sum(_disagreement(values) / (len(values) - 1) for values in pairable)
    return 1 - (total - 1) * observed / expected


def _disagreement(values: Sequence[float]) -> float:
    return sum((one - other) ** 2 for one, other in combinations(values, 2))
