"""Several frames of one examination: questions that only the frames together answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hf_datasets.phantoms import chest_xray
from hf_datasets.phantoms.chest_xray import Findings, Side
from hf_datasets.phantoms.shapes import Rng
from hf_datasets.phantoms.vqa import endoscopy, organs
from hf_datasets.phantoms.vqa.endoscopy import Frame
from hf_datasets.phantoms.vqa.scenes import (
    QUARTERS,
    Ask,
    Scene,
    count,
    instrument_place,
    small,
    thorax_slice,
    which,
)

CHANGES = ("it appears", "it resolves", "it is present in all frames", "it is present in no frame")
SHIFTED = "it changes its side"


def films(rng: Rng, finding: str, change: str) -> Scene:
    """Two or three chest films over time; ``finding`` is an effusion or a pneumothorax."""
    number = int(rng.integers(2, 4))
    side: Side = "right" if rng.random() < 0.5 else "left"
    other: Side = "left" if side == "right" else "right"
    shown = _course(change, number, rng)
    sides: list[Side | None] = [side if on else None for on in shown]
    if change == SHIFTED:
        sides = [*[side] * (number - 1), other]
    frames = tuple(small(chest_xray.frontal(_found(finding, each), rng), 136) for each in sides)
    asks = (
        which("course", f"How does the {finding} change from the first to the last frame?", change,
              (*CHANGES, SHIFTED)),
        count("quantity", f"In how many of the {number} frames is a {finding} seen?",
              sum(each is not None for each in sides)),
    )  # fmt: skip
    return Scene(frames, "X-ray", "chest", asks)


def _found(finding: str, side: Side | None) -> Findings:
    return Findings(effusion=side) if "effusion" in finding else Findings(pneumothorax=side)


def _course(change: str, number: int, rng: Rng) -> list[bool]:
    turn = int(rng.integers(1, number))
    return {
        "it appears": [index >= turn for index in range(number)],
        "it resolves": [index < turn for index in range(number)],
        "it is present in no frame": [False] * number,
    }.get(change, [True] * number)


def scope_run(rng: Rng, number: int, polyp_in: int) -> Scene:
    """Frames of a colonoscopy; one of them shows a polyp, another one the instrument."""
    tool_in = int(rng.choice([index for index in range(number) if index != polyp_in]))
    polyp, above = endoscopy.random_polyp(rng), bool(rng.random() < 0.5)
    shown = [
        Frame((polyp,) if index == polyp_in else (), instrument=index == tool_in, from_above=above)
        for index in range(number)
    ]
    frames = tuple(endoscopy.paint(frame, rng) for frame in shown)
    asks = (
        _frame_with("a polyp", polyp_in, number),
        _frame_with("an instrument", tool_in, number),
        _order("the polyp", "the instrument", polyp_in < tool_in),
        instrument_place(shown[tool_in]),
    )
    return Scene(frames, "Endoscopy", "colon", asks)


def brain_stack(rng: Rng, number: int, lesion_in: int) -> Scene:
    """Slices of one brain; one of them shows a lesion."""
    side: Side = "right" if rng.random() < 0.5 else "left"
    behind = bool(rng.random() < 0.5)
    frames = tuple(
        organs.brain(rng, "T2", (side,) if index == lesion_in else (), behind=behind)
        for index in range(number)
    )
    quarter = f"{'back' if behind else 'front'} {side}"
    sides = ("right", "left", "both sides", "neither side")
    asks = (
        _frame_with("a focal lesion", lesion_in, number),
        which("position", "On which side is the lesion that one of the frames shows?", side, sides),
        which(
            "position",
            "Which quarter of the brain holds the lesion that one of them shows?",
            quarter,
            QUARTERS,
        ),
    )
    return Scene(frames, "MRI", "brain", asks)


def chest_stack(rng: Rng, number: int, fluid_in: int) -> Scene:
    """Axial CT slices; one of them shows pleural fluid."""
    side = int(rng.choice([-1, 1]))
    frames = tuple(thorax_slice(rng, effusion=side if index == fluid_in else None) for index in range(number))
    return Scene(frames, "CT", "chest", (_frame_with("a pleural effusion", fluid_in, number),))


def odd_one_out(rng: Rng, number: int, odd: int) -> Scene:
    """Frames of one modality and a single one of another."""
    painters: tuple[tuple[str, Callable[[Rng], np.ndarray]], ...] = (
        ("an ultrasound image", lambda own: organs.ultrasound(own, cysts=int(own.integers(3)))),
        ("a CT image", lambda own: thorax_slice(own)),
        ("an MR image", lambda own: organs.brain(own, "T1")),
    )
    common, rare = (painters[index] for index in rng.permutation(len(painters))[:2])
    frames = tuple((rare if index == odd else common)[1](rng) for index in range(number))
    return Scene(frames, "mixed", "mixed", (_frame_with(rare[0], odd, number),))


def _frame_with(what: str, index: int, number: int) -> Ask:
    frames = [f"frame {each + 1}" for each in range(number)]
    return Ask(
        "frame",
        f"Which of the {number} frames shows {what}?",
        frames[index],
        (*(frame for frame in frames if frame != frames[index]), "none of the frames"),
    )


def _order(first: str, second: str, in_order: bool) -> Ask:
    words = (f"{first} is seen before {second}", f"{second} is seen before {first}", "both in the same frame")
    return which(
        "course", f"In which order are {first} and {second} seen?", words[0 if in_order else 1], words
    )
