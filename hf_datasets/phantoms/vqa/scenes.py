"""Drawn pictures with what can be asked about them, so that no answer says more than the picture shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from hf_datasets.phantoms import abdomen, chest_xray, thorax
from hf_datasets.phantoms.chest_xray import Findings, Side
from hf_datasets.phantoms.shapes import Array, Rng
from hf_datasets.phantoms.vqa import endoscopy, histology, organs
from hf_datasets.phantoms.vqa.endoscopy import Frame
from hf_datasets.phantoms.vqa.histology import Tile

YES, NO = "yes", "no"
MODALITIES = ("X-ray", "CT", "MRI", "Ultrasound", "Endoscopy", "Fundus photography", "Microscopy")
QUARTERS = ("front right", "front left", "back right", "back left")
CORNERS = tuple((row, column) for row in ("upper", "lower") for column in ("left", "right"))
PLACES = tuple(
    "center" if (row, column) == ("center", "center") else f"{row}-{column}"
    for row in endoscopy.ROWS
    for column in endoscopy.COLUMNS
)


@dataclass(frozen=True)
class Ask:
    """A question, its answer, and other answers that are all wrong for this picture."""

    kind: str
    question: str
    answer: str
    others: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """Frames, grey or RGB, uint8; what made them, which part of the body they show, and what can be asked."""

    frames: tuple[np.ndarray, ...]
    modality: str
    part: str
    asks: tuple[Ask, ...]


def whether(kind: str, question: str, truth: object) -> Ask:
    """A question for yes or no."""
    return Ask(kind, question, *((YES, (NO,)) if truth else (NO, (YES,))))


def which(kind: str, question: str, answer: str, pool: Sequence[str]) -> Ask:
    """A question whose wrong answers are the rest of a pool."""
    return Ask(kind, question, answer, tuple(other for other in pool if other != answer))


def count(kind: str, question: str, number: int, most: int = 4) -> Ask:
    """A question for a number."""
    return which(kind, question, str(number), [str(each) for each in range(most + 1)])


def _modality(modality: str) -> Ask:
    return which("modality", "Which imaging modality was used?", modality, MODALITIES)


def _part(part: str) -> Ask:
    parts = ("chest", "abdomen", "head", "eye", "colon")
    return which("organ", "Which part of the body is shown?", part, parts)


# --- one picture each ---

CHEST_FINDINGS = ("pleural effusion", "pneumothorax", "consolidation", "cardiomegaly", "pacemaker")


def film(rng: Rng, finding: str | None) -> Scene:
    """A frontal chest radiograph with one finding of ``CHEST_FINDINGS``, or none."""
    side: Side = "right" if rng.random() < 0.5 else "left"
    found = _findings(finding, side)
    asks = [
        _modality("X-ray"),
        _part("chest"),
        which(
            "diagnosis", "Which finding is present?", finding or "no finding", (*CHEST_FINDINGS, "no finding")
        ),
        whether("presence", "Is there a pleural effusion?", found.effusion),
        whether("presence", "Is a pneumothorax present?", found.pneumothorax),
        whether("presence", "Is the heart enlarged?", found.cardiomegaly),
        whether("presence", "Is a pacemaker visible?", found.pacemaker),
    ]
    if finding in CHEST_FINDINGS[:3]:
        sides = ("right", "left", "both sides", "neither side")
        asks.append(which("position", f"On which side is the {finding}?", side, sides))
    return Scene((small(chest_xray.frontal(found, rng)),), "X-ray", "chest", tuple(asks))


def _findings(finding: str | None, side: Side) -> Findings:
    return Findings(
        effusion=side if finding == "pleural effusion" else None,
        pneumothorax=side if finding == "pneumothorax" else None,
        consolidation=(side, "mid") if finding == "consolidation" else None,
        cardiomegaly=finding == "cardiomegaly",
        pacemaker=finding == "pacemaker",
    )


def chest_slice(rng: Rng, *, effusion: bool) -> Scene:
    """An axial chest CT slice with or without a pleural effusion."""
    side = int(rng.choice([-1, 1]))
    plane = thorax_slice(rng, effusion=side if effusion else None)
    asks = [
        _modality("CT"),
        _part("chest"),
        which("plane", "In which plane is this image?", "axial", ("axial", "coronal", "sagittal", "oblique")),
        whether("presence", "Is there a pleural effusion?", effusion),
        whether("organ", "Is the liver shown in this image?", False),
    ]
    if effusion:
        words = "right" if side < 0 else "left"
        asks.append(
            which(
                "position",
                "On which side is the pleural effusion?",
                words,
                ("right", "left", "both sides", "neither side"),
            )
        )
    return Scene((plane,), "CT", "chest", tuple(asks))


def belly_slice(rng: Rng, *, axial: bool) -> Scene:
    """An abdominal CT slice through the kidneys."""
    pixel = 1.9
    plan = abdomen.random_abdomen(rng, 176 * pixel * 0.98, lesions=0)
    if axial:
        volume = abdomen.paint(plan, (3, 152, 176), (4.0, pixel, pixel), rng)
        picture = _window(volume.hu[1], -160, 260)
    else:
        volume = abdomen.paint(plan, (60, 72, 128), (4.0, 2.6, 2.6), rng)
        row = int(np.argmax(volume.kidney.sum(axis=(0, 2))))
        grey = Image.fromarray(_window(volume.hu[:, row], -160, 260))
        picture = np.asarray(
            grey.resize((176, round(176 * 60 * 4.0 / (128 * 2.6))), Image.Resampling.BICUBIC)
        )
    plane = "axial" if axial else "coronal"
    asks = [
        _modality("CT"),
        _part("abdomen"),
        which("plane", "In which plane is this image?", plane, ("axial", "coronal", "sagittal", "oblique")),
        whether("organ", "Are the kidneys visible in this image?", True),
        whether("plane", "Is this an axial image?", axial),
        count("quantity", "How many kidneys are seen?", 2),
        which(
            "organ",
            "Which bone lies in the middle of the image?",
            "spine",
            ("spine", "femur", "skull", "sternum"),
        ),
    ]
    return Scene((picture,), "CT", "abdomen", tuple(asks))


def brain_slice(rng: Rng, weighting: organs.Weighting, lesions: tuple[Side, ...]) -> Scene:
    """An axial brain MR slice with so many lesions."""
    sides = set(lesions)
    where = "both sides" if len(sides) == 2 else next(iter(sides)) if sides else "neither side"
    tone = "bright" if weighting == "T2" else "dark"
    behind = bool(rng.random() < 0.5)
    asks = [
        _modality("MRI"),
        _part("head"),
        which("plane", "In which plane is this image?", "axial", ("axial", "coronal", "sagittal", "oblique")),
        which("attribute", "Is this a T1 or a T2 weighted image?", weighting, ("T1", "T2")),
        which("attribute", "Does the cerebrospinal fluid look bright or dark?", tone, ("bright", "dark")),
        whether("presence", "Is a focal lesion seen in the brain?", lesions),
        count("quantity", "How many focal lesions are seen?", len(lesions)),
    ]
    if len(sides) == 1:
        asks.append(
            which(
                "position",
                "On which side of the brain is the lesion?",
                where,
                ("right", "left", "both sides", "neither side"),
            )
        )
    if len(lesions) == 1:
        quarter = f"{'back' if behind else 'front'} {where}"
        asks.append(which("position", "Which quarter of the brain holds the lesion?", quarter, QUARTERS))
    return Scene((organs.brain(rng, weighting, lesions, behind=behind),), "MRI", "brain", tuple(asks))


TISSUES = {"glandular": "glandular tissue", "adipose": "adipose tissue", "muscle": "smooth muscle"}


def tissue(rng: Rng, tile: Tile) -> Scene:
    """A microscope's field; what lies in a corner is moved to a random one."""
    corner = CORNERS[int(rng.integers(4))]
    opposite = next(other for other in CORNERS if other[0] != corner[0] and other[1] != corner[1])
    tile = replace(tile, corner=corner)
    stain = "immunohistochemistry" if tile.immunostain else "hematoxylin and eosin"
    asks = [
        _modality("Microscopy"),
        which("attribute", "Which stain was used?", stain,
              ("hematoxylin and eosin", "immunohistochemistry", "Gram stain", "silver stain")),
        which("organ", "What type of tissue is shown?", TISSUES[tile.tissue], (*TISSUES.values(), "bone")),
        whether("presence", "Are glands present?", tile.tissue == "glandular"),
        whether("presence", "Is adipose tissue present?", tile.tissue == "adipose"),
        whether("presence", "Is there a dense inflammatory infiltrate?", tile.infiltrate),
        whether("presence", "Is a blood vessel with red cells seen?", tile.vessel),
        whether("attribute", "Are brown stained nuclei present?", tile.immunostain),
    ]  # fmt: skip
    if tile.tissue == "glandular":
        asks.append(count("quantity", "How many glands are seen?", tile.glands))
    corners = ["-".join(each) for each in CORNERS]
    for seen, what, where in (
        (tile.vessel, "the blood vessel", corner),
        (tile.infiltrate, "the inflammatory infiltrate", opposite),
    ):
        if seen:
            asks.append(
                which("position", f"Which corner of the image holds {what}?", "-".join(where), corners)
            )
    return Scene((histology.paint(tile, rng),), "Microscopy", "tissue", tuple(asks))


def scope(rng: Rng, frame: Frame) -> Scene:
    """A frame of a colonoscopy."""
    abnormality = "polyp" if frame.polyps else "colitis" if frame.inflamed else "none"
    asks = [
        _modality("Endoscopy"),
        _part("colon"),
        which(
            "diagnosis",
            "Which abnormality is present in the image?",
            abnormality,
            ("polyp", "colitis", "diverticulum", "none"),
        ),
        count("quantity", "How many polyps are in the image?", len(frame.polyps)),
        whether("presence", "Does this image contain any polyp?", frame.polyps),
        whether("presence", "Is there a surgical instrument in the image?", frame.instrument),
        whether("presence", "Is there a green box artefact in the image?", frame.green_box),
    ]
    if len(frame.polyps) == 1:
        asks.append(which("position", "Where in the image is the polyp?", frame.polyps[0].place, PLACES))
        colour = "pink" if frame.polyps[0].pale else "red"
        asks.append(which("attribute", "What color is the polyp?", colour, ("red", "pink", "green", "blue")))
    if frame.instrument:
        asks.append(instrument_place(frame))
    return Scene((endoscopy.paint(frame, rng),), "Endoscopy", "colon", tuple(asks))


def instrument_place(frame: Frame) -> Ask:
    """Where the instrument comes from."""
    corner = "upper-right" if frame.from_above else "lower-right"
    return which(
        "position",
        "From which corner does the instrument come?",
        corner,
        ["-".join(each) for each in CORNERS],
    )


def fundus(rng: Rng, eye: Side, finding: str | None) -> Scene:
    """A fundus photograph with haemorrhages, exudates, or neither."""
    picture = organs.retina(rng, eye, haemorrhages=finding == "haemorrhages", exudates=finding == "exudates")
    asks = (
        _modality("Fundus photography"),
        _part("eye"),
        which("diagnosis", "Which finding is present in the retina?", finding or "no finding",
              ("haemorrhages", "exudates", "no finding", "retinal detachment")),
        which("position", "Does the optic disc lie on the right or the left of the image?", eye,
              ("right", "left")),
        which("organ", "Which eye is shown?", f"{eye} eye", ("right eye", "left eye")),
        whether("presence", "Are dark red haemorrhages present?", finding == "haemorrhages"),
    )  # fmt: skip
    return Scene((picture,), "Fundus photography", "eye", asks)


def sonogram(rng: Rng, finding: str | None) -> Scene:
    """An ultrasound fan with a cyst, two cysts, a stone, or nothing."""
    cysts = {"cyst": 1, "two cysts": 2}.get(finding or "", 0)
    side: Side = "right" if rng.random() < 0.5 else "left"
    seen = {"cyst": "a cyst", "two cysts": "a cyst", "stone": "a stone with acoustic shadow"}
    asks = [
        _modality("Ultrasound"),
        which("diagnosis", "What is seen in this image?", seen.get(finding or "", "no focal finding"),
              ("a cyst", "a stone with acoustic shadow", "no focal finding", "a fetus")),
        count("quantity", "How many echo-free cysts are seen?", cysts),
        whether("presence", "Is an acoustic shadow seen?", finding == "stone"),
    ]  # fmt: skip
    if cysts == 1:
        halves = ("left half", "right half", "both halves", "neither half")
        asks.append(which("position", "Which half of the image holds the cyst?", f"{side} half", halves))
    picture = organs.ultrasound(rng, cysts=cysts, stone=finding == "stone", side=side)
    return Scene((picture,), "Ultrasound", "abdomen", tuple(asks))


# --- helpers of this module and of the series ---


def thorax_slice(rng: Rng, *, effusion: int | None = None) -> np.ndarray:
    plan = thorax.random_chest(rng, 176 * 1.9, effusion=effusion)
    return _window(thorax.paint(plan, (1, 152, 176), (4.0, 1.9, 1.9), rng)[0], -400, 400)


def _window(plane: Array, low: float, high: float) -> np.ndarray:
    return np.asarray(np.clip((plane - low) / (high - low), 0, 1) * 255, dtype=np.uint8)


def small(picture: np.ndarray, width: int = 176) -> np.ndarray:
    height = round(picture.shape[0] * width / picture.shape[1])
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))
