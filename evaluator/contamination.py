"""Signs that a submission was copied: outputs that equal their reference where nobody hits it by chance.

A sign is evidence and never a verdict; no score depends on it. Only what is rich enough is looked at: a long and
irregular border, an image of many values, a text of many words, several boxes. An answer of one word, a class or a
letter says nothing when it is right, so question answering with short keys and classification have no such sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

REFERENCE_COPY = "reference_copy"

LEAST_BORDER = 500
"""Faces between voxels of different label. Human borders are noise at this length; no method repeats them all."""
LEAST_VALUES = 200
NEARLY = 1e-4
"""Of the value range: a copy that went through another number format stays this close."""
LEAST_WORDS, LEAST_DIFFERENT_WORDS = 20, 12
LEAST_BOXES = 4


def same_mask(reference: NDArray[Any], prediction: NDArray[Any]) -> bool:
    """Whether two label maps of one shape are equal and their border is too long for chance."""
    return np.array_equal(reference, prediction) and _has_border(reference)


def _has_border(labels: NDArray[Any]) -> bool:
    faces = 0
    for axis in range(labels.ndim):
        for plane in np.moveaxis(
            labels, axis, -1
        ):  # plane by plane: the whole map once more would be a lot of memory
            faces += int(np.count_nonzero(plane[..., 1:] != plane[..., :-1]))
            if faces >= LEAST_BORDER:
                return True
    return False


def same_image(reference: NDArray[Any], restored: NDArray[Any], width: float) -> bool:
    """Whether two images of one shape are equal but for rounding, and hold more than a few values.

    Parameters
    ----------
    reference, restored : array
        Clipped to the task's range.
    width : float
        Of that range.
    """
    tolerance = NEARLY * width
    values: set[float] = set()
    for expected, found in zip(
        reference, restored, strict=True
    ):  # part by part, and done at the first difference
        if float(np.max(np.abs(expected - found), initial=0.0)) > tolerance:
            return False
        if len(values) < LEAST_VALUES:
            values.update(np.unique(expected).tolist())
    return len(values) >= LEAST_VALUES


def same_text(reference: str, text: str) -> bool:
    """Whether two texts have the same words in the same order, and enough of them."""
    words = _words(reference)
    return len(words) >= LEAST_WORDS and len(set(words)) >= LEAST_DIFFERENT_WORDS and words == _words(text)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def same_boxes(reference: Sequence[tuple[Any, ...]], found: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two lists hold the same boxes (class, corners) to the last digit, in any order, and several of them."""
    return len(reference) >= LEAST_BOXES and sorted(reference) == sorted(found)


def signs_of_run(cases: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The flags of a whole submission out of those of its cases."""
    return (REFERENCE_COPY,) if any(REFERENCE_COPY in flags for flags in cases) else ()
