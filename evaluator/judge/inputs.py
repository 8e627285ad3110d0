"""Whether a command showed that it had opened a public input.

The sandbox's public folder is read-only, so no trace of reading is left in it. But the host knows the shapes
of the inputs and the brief does not state them: a command that prints one has, in all likelihood, opened a
file. Printing a listing or a claim is not enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.manifest import Manifest

Shape = tuple[int, ...]

_RUN_OF_NUMBERS = re.compile(r"(?<![\d.])\d{1,6}(?:[\s,x×]+\d{1,6})+(?![\d.])")
_CHANNELS = (1, 3, 4)


def public_shapes(manifest: Manifest) -> frozenset[Shape]:
    """Shapes of all public inputs of at least two dimensions, as the manifest states them, in pixels or
    voxels.
    """
    return frozenset(
        file.shape for case in manifest.cases for file in case.public if file.shape and len(file.shape) > 1
    )


def shows_shape(output: str, shapes: frozenset[Shape]) -> bool:
    """Whether ``output`` prints one of the shapes, in either order of axes (arrays say rows first, pictures
    width first).
    """
    wanted = {variant for shape in shapes for variant in _variants(shape)}
    return any(
        numbers[start : start + length] in wanted
        for numbers in _runs(output)
        for length in {len(variant) for variant in wanted}
        for start in range(len(numbers) - length + 1)
    )


def _variants(shape: Shape) -> Iterator[Shape]:
    plain = shape[:-1] if len(shape) > 2 and shape[-1] in _CHANNELS else shape
    yield plain
    yield plain[::-1]


def _runs(output: str) -> Iterator[Shape]:
    for match in _RUN_OF_NUMBERS.finditer(output):
        yield tuple(int(number) for number in re.findall(r"\d+", match.group()))
