"""Bootstrap draws within groups, vectorised."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SEED = 20260601
DRAWS = 1000
LEVELS = (2.5, 97.5)
"""Percentiles of a 95 % interval."""
_AT_A_TIME = 200_000
"""Elements drawn at a time: what a processor keeps close."""


def resampled_sums(
    values: Floats, starts: npt.NDArray[np.intp], draws: int, rng: np.random.Generator
) -> Floats:
    """Sums of groups whose members are drawn anew, with replacement, as many as there are.

    Parameters
    ----------
    values : array of shape (n,) or (k, n)
        Members of the groups, group after group. Of k rows, all are drawn with the same indices.
    starts : array of shape (groups,)
        Where each group begins; no group is empty.
    draws : int
        How often.

    Returns
    -------
    array of shape (draws, groups) or (k, draws, groups)
    """
    rows = np.atleast_2d(values)
    count = rows.shape[1]
    sizes = np.diff(np.append(starts, count))
    size = np.repeat(sizes, sizes).astype(np.uint64)
    start = np.repeat(starts, sizes).astype(np.uint64)
    sums = np.empty((len(rows), draws, len(starts)))
    step = max(1, _AT_A_TIME // count) if count else draws
    for begin in range(0, draws, step):
        some = min(step, draws - begin)
        # The high part of a 32-bit number times the size: uniform to 1 in 2^32 / size, without a division.
        drawn = rng.integers(0, 1 << 32, (some, count), dtype=np.uint32).astype(np.uint64)
        drawn *= size
        drawn >>= np.uint64(32)
        drawn += start
        for row, values_of_row in zip(sums, rows, strict=True):
            picked = values_of_row.take(drawn.view(np.int64))
            row[begin : begin + some] = np.add.reduceat(picked, starts, axis=1)
    return sums if values.ndim == 2 else sums[0]


def interval(draws: Floats) -> Floats:
    """The 95 % percentile interval of each column of ``draws``; shape (2, columns), NaN where a draw is."""
    return np.asarray(np.percentile(draws, LEVELS, axis=0))
