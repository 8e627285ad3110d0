"""The parts of an adult body from skull to thigh: 117 structures and what lies between them.

Names of structures are those of TotalSegmentator. Heights are 0 mm at the fourth lumbar disc. Distances are
those of a person of middle size; `body` varies them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hf_datasets.phantoms.body import Canvas, Knot, Part, egg, tube
from hf_datasets.phantoms.shapes import Array, Rng

SIDES = (("right", -1), ("left", 1))
VERTEBRAE = [f"C{n}" for n in range(1, 8)] + [f"T{n}" for n in range(1, 13)] + [f"L{n}" for n in range(1, 6)]

_SPINE_Y = ((-140, 80), (-60, 55), (0, 45), (100, 50), (200, 60), (300, 55), (410, 25), (500, 10))
_CAGE = ((90, 140, 94), (150, 150, 103), (200, 150, 105), (280, 145, 98), (340, 120, 80), (385, 66, 52))
"""Height and half-axes of the rib cage."""


@dataclass(frozen=True)
class Person:
    """What differs between patients beyond size: what is absent or added."""

    male: bool = True
    gallbladder: bool = True
    cysts: tuple[str, ...] = ()
    girth: float = 1.0


def spine_y(z: float) -> float:
    """How far back the vertebral bodies lie at a height."""
    heights, places = zip(*_SPINE_Y, strict=True)
    return float(np.interp(z, heights, places))


def vertebra_heights() -> dict[str, tuple[float, float]]:
    """Height of the centre and half the height of each vertebra, from C1 down."""
    top, result = 508.0, {}
    for name in VERTEBRAE:
        size = {"C": 15.0, "T": 20 + 0.5 * int(name[1:]), "L": 31.0}[name[0]]
        result[name] = (top - size / 2, size / 2)
        top -= size
    return result


def body(person: Person, rng: Rng) -> list[Part]:
    """All parts in drawing order, each a little displaced and resized."""
    inner = [*_chest(), *_belly(person), *_pelvis(person), *_vessels(), *_neck_and_head(), *_bones()]
    varied = [_vary(part, rng) for part in inner]
    return [*_hull(person), *varied, *_spine()]


def _vary(part: Part, rng: Rng) -> Part:
    dx, dy = rng.normal(0, 1.2, 2)
    grow = float(np.clip(rng.normal(1, 0.04), 0.9, 1.1))
    knots = tuple((z, x + dx, y + dy, rx * grow, ry * grow) for z, x, y, rx, ry in part.knots)
    return replace(part, knots=tuple((z, float(x), float(y), rx, ry) for z, x, y, rx, ry in knots))


# --- what holds the rest ---


def _hull(person: Person) -> Iterator[Part]:
    outline: tuple[Knot, ...] = (
        (-190, 0, 8, 174, 104),
        (-150, 0, 8, 178, 108),
        (-60, 0, 5, 172, 108),
        (80, 0, 3, 158, 112),
        (200, 0, 3, 170, 120),
        (330, 0, 5, 182, 115),
        (385, 0, 10, 195, 92),
        (412, 0, 12, 120, 70),
        (430, 0, 8, 62, 60),
        (470, 0, -2, 60, 62),
    )
    fat = 14 * person.girth
    for tissue, less in (("fat", 0.0), ("muscle", fat)):
        knots = tuple((z, x, y, rx - less, ry - less) for z, x, y, rx, ry in outline)
        yield tube("", tissue, *knots, power=2.3)
    inside = tuple(
        (z, x, y - 4, rx - fat - 14, ry - fat - 14) for z, x, y, rx, ry in outline if -150 <= z < 300
    )
    yield tube("", "fat", *inside, power=2.3)
    yield egg("", "muscle", (0, -8, 555), (82, 102, 92))
    for _, side in SIDES:
        yield tube("", "muscle", (-420, side * 94, 10, 72, 78), (-170, side * 92, 8, 82, 88))


def _spine() -> Iterator[Part]:
    for name, (z, half) in vertebra_heights().items():
        wide = {"C": 12.0, "T": 15 + 0.4 * int(name[1:]), "L": 24.0}[name[0]]
        y, label = spine_y(z), f"vertebrae_{name}"
        yield tube(label, "bone", *_drum(z, half - 1.5, 0, y + 27, wide * 0.6, 15))
        yield tube(label, "bone", *_drum(z, half - 1.5, 0, y, wide, wide * 0.72), power=2.5)
        yield tube(label, "marrow", *_drum(z, half - 4, 0, y, wide - 3.5, wide * 0.72 - 3.5), power=2.5)
    yield tube("vertebrae_S1", "bone", *_drum(-48, 13, 0, 54, 34, 18))
    yield tube("sacrum", "bone", (-61.5, 0, 58, 46, 20), (-100, 0, 74, 38, 16), (-145, 0, 78, 12, 9))
    yield tube(
        "spinal_cord", "cord", *((z, 0.0, spine_y(z) + 22, 6.5, 6.0) for z in (95.0, 200, 300, 410, 500))
    )


def _drum(z: float, half: float, x: float, y: float, rx: float, ry: float) -> tuple[Knot, Knot]:
    return (z - half, x, y, rx, ry), (z + half, x, y, rx, ry)


# --- chest ---


def _chest() -> Iterator[Part]:
    for name, side in SIDES:
        base = 165 if side < 0 else 150
        yield tube(
            f"lung_{name}",
            "lung",
            (base - 12, side * 108, 40, 4, 4),
            (base + 10, side * 96, 20, 44, 66),
            (base + 55, side * 88, 8, 56, 84),
            (290, side * 78, 8, 52, 76),
            (345, side * 62, 14, 38, 50),
            (378, side * 50, 20, 8, 10),
            power=2.3,
        )
        yield egg("pulmonary_vein", "vein", (side * 36, 12, 246), (24, 6, 6))
    yield egg("", "muscle", (0, 5, 290), (34, 52, 80))
    yield egg("heart", "heart", (16, -34, 212), (60, 50, 50), angle=0.5)
    yield egg("heart", "blood", (22, -38, 210), (36, 28, 32), angle=0.5)
    yield egg("atrial_appendage_left", "blood", (54, -30, 256), (14, 12, 10))
    yield tube("trachea", "gas", (268, 0, 14, 9, 8), (330, 0, 8, 9, 8), (440, 0, -8, 8, 8))
    yield tube("esophagus", "gut", (150, 10, 24, 8, 7), (250, 4, 28, 7, 6), (420, 2, 8, 7, 6))


# --- belly ---


def _belly(person: Person) -> Iterator[Part]:
    yield egg("liver", "liver", (-76, 0, 132), (80, 82, 68), power=2.2)
    yield egg("liver", "liver", (-8, -52, 142), (56, 30, 34))
    if person.gallbladder:
        yield egg("gallbladder", "fluid", (-46, -52, 84), (13, 20, 18))
    yield egg("stomach", "gut", (66, -28, 145), (38, 42, 42))
    yield egg("stomach", "gut", (30, -54, 108), (36, 22, 20))
    yield egg("stomach", "fluid", (66, -24, 145), (30, 32, 33))
    yield egg("spleen", "spleen", (108, 42, 142), (22, 42, 42), angle=-0.35)
    yield egg("duodenum", "gut", (-44, -6, 80), (12, 13, 30))
    yield egg("duodenum", "gut", (-14, 10, 56), (34, 9, 9))
    yield egg("pancreas", "pancreas", (24, -10, 104), (56, 11, 13), angle=0.15)
    yield egg("pancreas", "pancreas", (-27, -14, 88), (17, 16, 22))
    for name, side in SIDES:
        yield egg(f"adrenal_gland_{name}", "gland", (side * 40, 28, 138), (10, 8, 12))
        yield egg(f"kidney_{name}", "kidney", (side * 64, 46, 84 + 6 * side), (26, 26, 52))
        yield egg(f"kidney_{name}", "fat", (side * 50, 40, 84 + 6 * side), (10, 9, 14))
        if name in person.cysts:
            yield egg(f"kidney_cyst_{name}", "fluid", (side * 84, 42, 104), (13, 13, 13))
    for x, y, z in (
        (-62, -42, 22),
        (-20, -56, 8),
        (26, -50, 24),
        (64, -34, 6),
        (-52, -26, -28),
        (0, -42, -34),
        (48, -30, -40),
    ):
        yield egg("small_bowel", "gut", (x, y, z), (30, 22, 19))
        yield egg("small_bowel", "fluid", (x, y, z), (20, 13, 11))
    yield tube("colon", "gut", (-62, -108, 4, 22, 22), (66, -112, 8, 22, 22))
    yield tube("colon", "gas", (-50, -108, 0, 15, 14), (50, -112, 4, 15, 14))
    yield tube("colon", "gut", (-62, 112, 18, 16, 16), (92, 116, 22, 16, 16))
    yield egg("colon", "gut", (2, -76, 60), (106, 15, 18))
    yield egg("colon", "gas", (2, -78, 60), (84, 8, 10))


def _pelvis(person: Person) -> Iterator[Part]:
    for name, side in SIDES:
        yield tube(
            f"iliopsoas_{name}",
            "muscle",
            (-165, side * 82, -22, 12, 12),
            (-130, side * 76, -30, 20, 16),
            (-50, side * 62, 14, 26, 20),
            (85, side * 36, 48, 14, 14),
        )
        yield egg(f"gluteus_maximus_{name}", "muscle", (side * 84, 82, -118), (50, 21, 66), angle=-side * 0.3)
        yield egg(f"gluteus_medius_{name}", "muscle", (side * 118, 40, -66), (24, 40, 48))
        yield egg(f"gluteus_minimus_{name}", "muscle", (side * 106, 32, -78), (14, 28, 38))
    yield egg("colon", "gut", (40, 6, -86), (50, 18, 18))
    yield tube("colon", "gut", (-160, 0, 44, 17, 16), (-88, 10, 36, 17, 16))
    yield egg("urinary_bladder", "fluid", (0, -34, -122), (38, 30, 27))
    if person.male:
        yield egg("prostate", "gland", (0, -8, -160), (22, 17, 16))


# --- vessels ---


def _vessels() -> Iterator[Part]:
    yield tube("aorta", "artery", (238, -6, -16, 15, 15), (300, -4, -12, 15, 15))
    yield egg("aorta", "artery", (10, 8, 304), (14, 36, 14), angle=-0.4)
    yield tube(
        "aorta",
        "artery",
        (-22, 4, 18, 9, 9),
        (90, 8, 22, 10, 10),
        (200, 20, 34, 12, 12),
        (304, 22, 34, 12, 12),
    )
    yield tube(
        "inferior_vena_cava", "vein", (-22, -16, 22, 10, 9), (100, -20, 20, 12, 10), (195, -24, 6, 13, 12)
    )
    yield tube("superior_vena_cava", "vein", (246, -30, -16, 10, 10), (312, -30, -18, 9, 9))
    yield egg("portal_vein_and_splenic_vein", "vein", (-26, -12, 122), (30, 7, 8), angle=0.3)
    yield egg("portal_vein_and_splenic_vein", "vein", (44, 8, 118), (50, 5, 6), angle=0.3)
    yield tube("brachiocephalic_trunk", "artery", (312, -10, -14, 6, 6), (346, -22, -10, 6, 6))
    yield egg("brachiocephalic_vein_left", "vein", (8, -34, 326), (36, 7, 8))
    yield tube("brachiocephalic_vein_right", "vein", (312, -32, -26, 7, 7), (364, -42, -24, 7, 7))
    for name, side in SIDES:
        start = 346 if side < 0 else 312
        yield tube(
            f"common_carotid_artery_{name}",
            "artery",
            (start, side * 22, -8, 4.5, 4.5),
            (472, side * 32, -14, 4.5, 4.5),
        )
        yield tube(
            f"subclavian_artery_{name}", "artery", (start, side * 29, 4, 5, 5), (372, side * 46, 4, 6, 6)
        )
        yield egg(f"subclavian_artery_{name}", "artery", (side * 66, 0, 374), (26, 6, 6))
        for kind, tissue, back, wide in (("artery", "artery", 0, 6), ("vena", "vein", 13, 7)):
            yield tube(
                f"iliac_{kind}_{name}",
                tissue,
                (-150, side * 60, -24 + back, wide, wide),
                (-70, side * 34, 14 + back, wide, wide),
                (-22, side * 9, 16 + back, wide, wide),
            )


# --- neck and head ---


def _neck_and_head() -> Iterator[Part]:
    for _, side in SIDES:
        yield egg("thyroid_gland", "thyroid", (side * 17, -12, 404), (9, 10, 20))
    yield egg("skull", "bone", (0, -8, 562), (76, 95, 80))
    yield egg("skull", "bone", (0, -52, 500), (46, 44, 30))
    yield egg("", "muscle", (0, -40, 498), (37, 42, 26))
    yield egg("brain", "brain", (0, -6, 566), (69, 87, 71))


# --- bones ---


def _bones() -> Iterator[Part]:
    for name, side in SIDES:
        spine = ((z, side * 30.0, spine_y(z) + 36, 22.0, 17.0) for z in (-60.0, 0, 100, 200, 300, 400))
        yield tube(f"autochthon_{name}", "muscle", *spine)
        yield egg(f"clavicula_{name}", "bone", (side * 78, -46, 376), (66, 8, 8), angle=side * 0.35)
        yield egg(f"scapula_{name}", "bone", (side * 118, 72, 330), (9, 40, 56), angle=side * 0.9)
        yield egg(f"humerus_{name}", "bone", (side * 162, 14, 376), (24, 24, 24))
        yield tube(f"humerus_{name}", "bone", (262, side * 172, 16, 13, 13), (378, side * 166, 14, 14, 14))
        yield egg(f"hip_{name}", "bone", (side * 84, 30, -64), (11, 56, 56), angle=-side * 0.55)
        yield egg(f"hip_{name}", "bone", (side * 88, 8, -126), (33, 33, 28))
        yield egg(f"hip_{name}", "bone", (side * 38, -42, -150), (40, 10, 14))
        yield egg(f"hip_{name}", "bone", (side * 60, 34, -168), (16, 18, 30))
        yield egg(f"femur_{name}", "bone", (side * 94, 6, -128), (23, 23, 23))
        yield egg(f"femur_{name}", "bone", (side * 122, 12, -150), (22, 20, 24))
        yield tube(f"femur_{name}", "bone", (-420, side * 104, 8, 15, 15), (-150, side * 120, 12, 17, 17))
        yield tube(f"femur_{name}", "marrow", (-420, side * 104, 8, 8, 8), (-170, side * 119, 12, 9, 9))
    yield tube("sternum", "bone", (205, 0, -92, 17, 6), (290, 0, -86, 17, 6), (345, 0, -66, 22, 7))


# --- what is drawn voxel by voxel: lobes, ribs and their cartilage ---


def split_lungs(canvas: Canvas) -> None:
    """Give the voxels of each lung to its lobes, along slanted fissures."""
    y, z = canvas.grid.axis(1)[None, :, None], canvas.grid.axis(0)[:, None, None]
    oblique = np.broadcast_to(z > 232 + 0.75 * (y + 5), canvas.paint.shape)
    horizontal = np.broadcast_to(z > 256, canvas.paint.shape)
    for name, _ in SIDES:
        lung = canvas.of(f"lung_{name}")
        canvas.paint[lung & oblique] = canvas.colour(f"lung_upper_lobe_{name}", "lung")
        canvas.paint[lung & ~oblique] = canvas.colour(f"lung_lower_lobe_{name}", "lung")
        if name == "right":
            canvas.paint[lung & oblique & ~horizontal] = canvas.colour("lung_middle_lobe_right", "lung")


def draw_ribs(canvas: Canvas) -> None:
    """Twelve slanting hoops a side in the shell of the rib cage; their front ends are cartilage."""
    xs, ys = canvas.grid.axis(2)[None, :], canvas.grid.axis(1)[:, None]
    backs = [vertebra_heights()[f"T{n}"][0] for n in range(1, 13)]
    half = max(5.0, 0.8 * canvas.grid.spacing[0])
    for k, z in enumerate(canvas.grid.axis(0)):
        if _CAGE[0][0] - 60 <= z <= backs[0] + half:
            _draw_ribs_in(canvas, canvas.paint[k], xs, ys, float(z), backs, half)


def _draw_ribs_in(
    canvas: Canvas, slice_: Array, xs: Array, ys: Array, z: float, backs: list[float], half: float
) -> None:
    heights, *axes = zip(*_CAGE, strict=True)
    a, b = (float(np.interp(z, heights, axis)) for axis in axes)
    level = ((np.abs(xs) / a) ** 2.3 + (np.abs(ys - 5) / b) ** 2.3) ** (1 / 2.3)
    rows, columns = np.nonzero(np.abs(level - 1) * b < max(4.5, 0.6 * canvas.grid.spacing[1]))
    x, y = xs[0, columns], ys[rows, 0]
    along = np.arctan2(np.abs(x) / a, (y - 5) / b) / np.pi
    for number, back in enumerate(backs, 1):
        near = np.abs(z - back + (26 + 4.5 * min(number, 8)) * along) < half
        near &= (along > 0.07) & (along < (0.94 if number <= 10 else 1.05 - 0.25 * (number - 9)))
        if not near.any():
            continue
        front = near & (along > 0.76)
        slice_[rows[front], columns[front]] = canvas.colour("costal_cartilages", "cartilage")
        for name, side in SIDES:
            bone = near & ~front & (np.sign(x) == side)
            slice_[rows[bone], columns[bone]] = canvas.colour(f"rib_{name}_{number}", "bone")
