"""A portal-venous CT of the trunk, from the lung bases to the thighs, with every organ named.

It stands on the body, bones and kidneys of `hf_datasets.phantoms.abdomen` and shares its coordinates; the
kidneys lie around w = 0, the dome of the liver near -135, the hips near 330 mm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from hf_datasets.phantoms.abdomen import (
    AIR,
    FAT,
    Abdomen,
    draw_body_wall,
    draw_kidney,
    draw_skeleton,
    draw_table,
    finish,
    random_abdomen,
)
from hf_datasets.phantoms.canvas import Canvas, Point
from hf_datasets.phantoms.shapes import Array, Mask, Rng, ellipse, smooth_noise

LUNG, LIVER, SPLEEN, PANCREAS, WALL, FLUID = -840.0, 106.0, 122.0, 98.0, 52.0, 8.0
AORTA, CAVA, PORTAL, VESSEL = 168.0, 138.0, 172.0, 168.0
GAS, STOOL, LESION = -850.0, 5.0, 58.0
PARTS_OF_PANCREAS = ("pancreas_head", "pancreas_body", "pancreas_tail")
REFERENCE_BODY = (165.0, 115.0)
"""Half-axes in mm of the body for which the paths below are written; they are scaled to each patient."""

PANCREAS_PATH: list[Point] = [(14, 6, -34), (0, -9, -10), (-12, -4, 22), (-30, 18, 58)]
STOMACH_PATH: list[Point] = [(-92, 4, 52), (-55, -34, 58), (-18, -50, 24), (-10, -40, -16)]
DUODENUM_PATH: list[Point] = [
    (-10, -40, -16),
    (0, -20, -54),
    (26, 0, -60),
    (50, 10, -42),
    (52, 4, 0),
    (38, 0, 22),
]
SPLENIC_VEIN: list[Point] = [(-38, -2, -34), (-20, 2, -14), (-14, 12, 20), (-34, 30, 62)]
COLON_PATH: list[Point] = [
    (128, -8, -98), (66, 5, -108), (24, -20, -96), (34, -64, -42), (44, -70, 8), (22, -60, 62), (-18, -12, 104),
    (40, 22, 118), (110, 20, 116), (172, 10, 82), (205, -8, 30), (222, 14, -6), (262, 48, 0), (318, 52, 0),
]  # fmt: skip
COLON_RADII = [21, 20, 18, 17, 16, 16, 16, 14, 13, 13, 13, 13, 15, 13]
PORTAL_TREE: list[list[Point]] = [
    [(-38, -2, -34), (-52, -10, -52), (-70, -14, -66)],
    [(-70, -14, -66), (-92, -28, -82), (-112, -30, -84)],
    [(-70, -14, -66), (-80, 14, -88), (-96, 30, -98)],
    [(-70, -14, -66), (-48, 4, -92), (-28, 14, -112)],
    [(-52, -10, -52), (-62, -38, -42), (-66, -58, -22)],
]
HEPATIC_VEINS: list[list[Point]] = [
    [(-118, 16, -22), (-104, 22, -58), (-74, 26, -112)],
    [(-118, 16, -22), (-100, -22, -52), (-62, -42, -76)],
    [(-118, 16, -22), (-102, -26, -26), (-74, -50, -28)],
]


@dataclass(frozen=True)
class Ball:
    """A round lesion: centre in mm, radius in mm, Hounsfield units."""

    centre: Point
    radius: float
    hu: float


@dataclass(frozen=True)
class Trunk:
    """The plan of one patient."""

    base: Abdomen
    male: bool
    liver_lesions: tuple[Ball, ...] = ()
    pancreas_lesion: Ball | None = None
    colon_cancer: Ball | None = None
    shift: dict[str, Point] = field(default_factory=dict)


def random_trunk(
    rng: Rng,
    width: float,
    *,
    male: bool,
    liver: int = 0,
    pancreas: bool = False,
    colon: bool = False,
) -> Trunk:
    """A patient whose body fits a field of view of ``width`` mm, with so many lesions in the organs named."""
    base = random_abdomen(rng, width, lesions=0)
    moved = {
        name: (float(rng.normal(0, 4)), float(rng.normal(0, 3)), float(rng.normal(0, 3)))
        for name in ("liver", "spleen", "stomach", "pancreas", "colon", "pelvis", "gall_bladder")
    }
    return Trunk(
        base,
        male,
        tuple(_liver_lesion(rng) for _ in range(liver)),
        _on_path(rng, PANCREAS_PATH, (11, 17), LESION) if pancreas else None,
        _on_path(rng, COLON_PATH[1:10], (19, 26), 92.0) if colon else None,
        moved,
    )


def paint_trunk(
    plan: Trunk, shape: tuple[int, int, int], spacing: tuple[float, float, float], top: float, rng: Rng
) -> Canvas:
    """Paint the slices below height ``top`` (mm); see `Canvas` for the axes.

    The names on the canvas are those of PanTS, and ``liver_lesion``, ``hepatic_vessel``, ``colon_cancer``.
    """
    canvas = Canvas(shape, spacing, top, AIR)
    w, v, u = canvas.grid()
    draw_table(canvas.values, u, v, plan.base)
    draw_body_wall(canvas.values, u, v, w, plan.base)
    draw_skeleton(canvas.values, u, v, w, plan.base, rng)
    _reserve_walls(canvas, plan.base)
    _kidneys(canvas, plan.base, rng)
    _great_vessels(canvas, plan)
    _pancreas(canvas, plan)
    _bowel_tubes(canvas, plan, rng)
    _upper_organs(canvas, plan, rng)
    _pelvis(canvas, plan)
    _small_bowel(canvas, plan, rng)
    _chest(canvas, plan, rng)
    finish(canvas.values, plan.base, rng)
    return canvas


def liver_mask(canvas: Canvas) -> Mask:
    """The liver with what lies in it."""
    return canvas.mask("liver", "hepatic_vessel", "liver_lesion")


def _scaled(plan: Trunk, path: list[Point], name: str = "") -> list[Point]:
    body = plan.base.body
    sv, su = body[1] / REFERENCE_BODY[1], body[0] / REFERENCE_BODY[0]
    dw, dv, du = plan.shift.get(name, (0.0, 0.0, 0.0))
    return [(w + dw, v * sv + dv, u * su + du) for w, v, u in path]


def _placed(plan: Trunk, ball: Ball, name: str) -> Ball:
    return Ball(_scaled(plan, [ball.centre], name)[0], ball.radius, ball.hu)


def _liver_lesion(rng: Rng) -> Ball:
    centre = (float(rng.uniform(-100, -30)), float(rng.uniform(-45, 25)), float(rng.uniform(-115, -45)))
    return Ball(centre, float(rng.uniform(11, 22)), float(rng.uniform(48, 66)))


def _on_path(rng: Rng, path: list[Point], radii: tuple[float, float], hu: float) -> Ball:
    """A lesion near a knot of the path, so that it sits in the organ."""
    w, v, u = path[int(rng.integers(len(path)))]
    dw, dv, du = (float(step) for step in rng.normal(0, 2, 3))
    return Ball((w + dw, v + dv, u + du), float(rng.uniform(*radii)), hu + float(rng.uniform(-5, 5)))


def _reserve_walls(canvas: Canvas, base: Abdomen) -> None:
    """Body wall and spine are nobody's place."""
    w, v, u = canvas.grid()
    a, b = base.body
    margin = base.fat + 13
    cavity = ellipse(u, v, (0, -3), (a - margin, b - margin), power=2.3) < 1
    bone = (ellipse(u, v, (0, b * 0.42), (23, 17), power=2.4) < 1) | (
        (v > b * 0.42) & (np.abs(u) < 48) & (w < 230)
    )
    canvas.claim("(reserved)", ~cavity | bone)


def _kidneys(canvas: Canvas, base: Abdomen, rng: Rng) -> None:
    for kidney in base.kidneys:
        inside, none = np.zeros(canvas.owner.shape, bool), np.zeros(canvas.owner.shape, bool)
        draw_kidney(canvas.values, inside, none, canvas.grid(), kidney, rng)
        canvas.claim("kidney_right" if kidney.side < 0 else "kidney_left", inside)
        w, v, u = kidney.centre
        canvas.halo([(w - 26, v, u), (w + 26, v, u)], 29.0, FAT)


def _great_vessels(canvas: Canvas, plan: Trunk) -> None:
    front = plan.base.body[1] * 0.42 - 26
    canvas.tube(
        "aorta", [(-330, front, 14), (-100, front, 11), (60, front, 9), (128, front + 2, 4)], 10.0, AORTA
    )
    canvas.tube(
        "postcava",
        [(-118, front - 6, -22), (-60, front, -18), (60, front, -16), (132, front + 3, -12)],
        11.0,
        CAVA,
    )
    canvas.tube("celiac_artery", [(-34, front - 8, 10), (-38, front - 24, 12)], 4.0, AORTA)
    canvas.tube(
        "superior_mesenteric_artery",
        [(-16, front - 8, 9), (4, front - 24, 7), (44, front - 26, 2)],
        4.0,
        AORTA,
    )
    for side in (-1, 1):
        canvas.tube(
            "common_iliac_artery",
            [(130, front + 2, 4), (190, front + 8, side * 40.0), (300, -10, side * 70.0)],
            6.0,
            AORTA,
        )
    path = _scaled(plan, SPLENIC_VEIN, "pancreas")
    canvas.tube("veins", path, [7.5, 6.5, 5.5, 5.0], PORTAL)
    for side in (-1, 1):
        place = (-44.0, plan.base.body[1] * 0.3, side * (34.0 if side > 0 else 38.0))
        limb = [place, (place[0] + 14, place[1] + 8, place[2] + side * 8)]
        other = [place, (place[0] + 16, place[1] - 2, place[2] + side * 13)]
        name = "adrenal_gland_right" if side < 0 else "adrenal_gland_left"
        canvas.tube(name, limb, 4.5, 78.0)
        canvas.tube(name, other, 4.5, 78.0)
        canvas.halo([limb[0], limb[1]], 12.0, FAT)


def _pancreas(canvas: Canvas, plan: Trunk) -> None:
    path = _scaled(plan, PANCREAS_PATH, "pancreas")
    sizes = [17.0, 12.0, 12.0, 12.0]
    if plan.pancreas_lesion is not None:
        lesion = _placed(plan, plan.pancreas_lesion, "pancreas")
        canvas.ellipsoid("pancreatic_lesion", lesion.centre, (lesion.radius,) * 3, lesion.hu)
    canvas.tube("common_bile_duct", [(-30, path[0][1] - 8, path[0][2] - 6), path[0]], 3.0, FLUID)
    for name, part, size in zip(PARTS_OF_PANCREAS, pairwise(path), pairwise(sizes), strict=True):
        canvas.tube(name, list(part), list(size), PANCREAS)
    canvas.tube("pancreatic_duct", path, 2.0, PANCREAS - 25, within=PARTS_OF_PANCREAS)
    canvas.halo(path, [size + 5 for size in sizes], FAT + 10)


def _bowel_tubes(canvas: Canvas, plan: Trunk, rng: Rng) -> None:
    colon = _scaled(plan, COLON_PATH, "colon")
    if plan.colon_cancer is not None:
        cancer = _placed(plan, plan.colon_cancer, "colon")
        canvas.ellipsoid(
            "colon_cancer", cancer.centre, (cancer.radius * 1.1, cancer.radius, cancer.radius), cancer.hu
        )
    stretches = rng.random(9) < 0.62
    filled = lambda place: GAS if stretches[int(place * 8.99)] else STOOL + 40 * rng.standard_normal()  # noqa: E731
    canvas.tube("colon", colon, list(map(float, COLON_RADII)), WALL, inner=0.76, content=filled)
    canvas.halo(colon, [size + 4.0 for size in COLON_RADII], FAT)
    canvas.tube(
        "duodenum", _scaled(plan, DUODENUM_PATH, "pancreas"), [12, 12, 12, 12, 11, 10], WALL + 12, inner=0.6,
        content=lambda _: 22.0,
    )  # fmt: skip
    stomach = _scaled(plan, STOMACH_PATH, "stomach")
    canvas.tube("stomach", stomach, [32, 28, 21, 13], WALL + 16, inner=0.82, content=lambda _: 24.0)
    w, v, u = stomach[0]
    canvas.ellipsoid("stomach", (w, v - 16, u), (20, 11, 20), GAS, within=("stomach",))


def _upper_organs(canvas: Canvas, plan: Trunk, rng: Rng) -> None:
    texture = 4 * smooth_noise(canvas.owner.shape, 1.2, rng)
    a, b = plan.base.body
    dw, dv, du = plan.shift.get("gall_bladder", (0.0, 0.0, 0.0))
    canvas.ellipsoid("gall_bladder", (4 + dw, -b * 0.4 + dv, -a * 0.3 + du), (23, 14, 14), FLUID)
    w, v, u = canvas.grid()
    dw, dv, du = plan.shift.get("spleen", (0.0, 0.0, 0.0))
    flank = ellipse(u, v, (a * 0.58 + du, b * 0.18 + dv), (a * 0.19, b * 0.36), -0.4)
    spleen = np.sqrt(flank**2 + ((w + 62 - dw) / 44) ** 2) < 1
    _fill(canvas, "spleen", spleen, SPLEEN + texture)
    dw, dv, du = plan.shift.get("liver", (0.0, 0.0, 0.0))
    lobe = ellipse(u, v, (-a * 0.42 + du, -b * 0.12 + dv), (a * 0.5, b * 0.62), 0.25)
    _fill(canvas, "liver", np.sqrt(lobe**2 + ((w + 58 - dw) / 78) ** 2) < 1, LIVER + texture)
    for ball in plan.liver_lesions:
        lesion = _placed(plan, ball, "liver")
        canvas.ellipsoid(
            "liver_lesion", lesion.centre, (lesion.radius * 0.9, lesion.radius, lesion.radius), lesion.hu + 2 * texture,
            within=("liver",),
        )  # fmt: skip
    for tree in (PORTAL_TREE, HEPATIC_VEINS):
        for branch in tree:
            canvas.tube(
                "hepatic_vessel", _scaled(plan, branch, "liver"), [5.2, 4.4, 3.4], VESSEL, within=("liver",)
            )


def _fill(canvas: Canvas, name: str, inside: Mask, value: Array) -> None:
    free = inside & (canvas.owner == 0)
    canvas.values[free] = value[free]
    canvas.claim(name, free)


def _pelvis(canvas: Canvas, plan: Trunk) -> None:
    canvas.ellipsoid("bladder", _scaled(plan, [(296, -22, 0)], "pelvis")[0], (32, 30, 38), FLUID)
    if plan.male:
        canvas.ellipsoid("prostate", _scaled(plan, [(345, -8, 0)], "pelvis")[0], (18, 17, 23), 74.0)
    for side, name in ((-1, "femur_right"), (1, "femur_left")):
        hip = _scaled(plan, [(332.0, 6.0, side * 88.0)])[0]
        canvas.ellipsoid(name, hip, (24, 24, 24), 460.0)
        shaft = [
            hip,
            (hip[0] + 34, hip[1] + 4, hip[2] + side * 16),
            (hip[0] + 110, hip[1] + 2, hip[2] + side * 14),
        ]
        canvas.tube(name, shaft, [17.0, 18.0, 17.0], 640.0, inner=0.55, content=lambda _: 160.0)
        canvas.ellipsoid(name, hip, (18, 18, 18), 330.0, within=(name,))
        canvas.halo([hip, shaft[1]], 30.0, 40.0)
        wing = (hip[0] - 92, hip[1] + 20, hip[2] + side * 2)
        canvas.ellipsoid("hip_bone", wing, (64, 42, 9), 380.0)
        canvas.ellipsoid("hip_bone", (hip[0] - 12, hip[1], hip[2] - side * 12), (34, 34, 30), 380.0)


def _small_bowel(canvas: Canvas, plan: Trunk, rng: Rng) -> None:
    a, b = plan.base.body
    for _ in range(16):
        centre = (rng.uniform(55, 200), rng.uniform(-0.5, -0.02) * b, rng.uniform(-0.42, 0.42) * a)
        radii = (rng.uniform(13, 26), rng.uniform(10, 14), rng.uniform(12, 22))
        canvas.ellipsoid("small_bowel", centre, radii, 44.0)
        inner = (radii[0] * 0.75, radii[1] * 0.75, radii[2] * 0.75)
        content = 18.0 if rng.random() < 0.8 else GAS
        canvas.ellipsoid("small_bowel", centre, inner, content, within=("small_bowel",))


def _chest(canvas: Canvas, plan: Trunk, rng: Rng) -> None:
    if canvas.axes[0][0] > -80:
        return
    a, b = plan.base.body
    vessels = np.where(smooth_noise(canvas.owner.shape, (0.8, 1.0, 1.0), rng) > 1.9, 20.0, LUNG).astype(
        np.float32
    )
    canvas.ellipsoid("heart", (-196, -b * 0.2, a * 0.1), (56, b * 0.42, a * 0.34), 125.0)
    for side, name in ((-1, "lung_right"), (1, "lung_left")):
        centre = (-205.0, b * 0.04, side * a * 0.42)
        canvas.ellipsoid(name, centre, (128, b * 0.72, a * 0.4), vessels, power=2.6)
