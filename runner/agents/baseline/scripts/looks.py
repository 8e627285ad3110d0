"""Measure a medical picture: what made it, what part of the body it shows, and what stands out in it.

Sides of findings are the patient's where radiologists turn pictures round, and the picture's elsewhere.
"""

import chest
import numpy as np
from PIL import Image
from scipy import ndimage as ndi
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

DARK, WHITE = 20, 240
ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")


def look_at(rgb):
    """Modality, plane and what part of the body is seen, from colour, surround and bright or dark fields."""
    grey = rgb.mean(axis=2)
    if is_coloured(rgb):
        return of_colour(rgb)
    sides, ends = np.concatenate([grey[:, 0], grey[:, -1]]), np.concatenate([grey[0], grey[-1]])
    dark_sides, dark_ends = float((sides < DARK).mean()), float((ends < DARK).mean())
    if dark_sides < 0.8 and chest.is_frontal(standard(grey)):
        return {"modality": "X-ray", "plane": "PA", "part": "chest"}
    if is_fan(grey):
        return {"modality": "ultrasound", "plane": "", "part": "abdomen"}
    body = ndi.binary_fill_holes(grey >= DARK)
    rows, columns = np.nonzero(body.any(axis=1))[0], np.nonzero(body.any(axis=0))[0]
    bone = float((grey >= WHITE).sum() / max(body.sum(), 1))
    if dark_sides > 0.8 and (dark_ends < 0.6 or np.ptp(columns) > 1.1 * np.ptp(rows)) and bone > 0.008:
        hollow = float((body & (grey < DARK)).sum() / body.sum())
        part = "chest" if dark_ends > 0.6 and hollow > 0.2 else "abdomen"
        return {"modality": "CT", "plane": "axial" if dark_ends > 0.6 else "coronal", "part": part}
    return {"modality": "MRI", "plane": "axial" if dark_ends > 0.6 else "coronal", "part": "brain"}


def is_coloured(rgb):
    """Colour all over, or strong colour in parts of a bright field."""
    chroma = rgb.max(axis=2) - rgb.min(axis=2)
    return chroma.mean() > 15 or (rgb.mean() > 170 and np.percentile(chroma, 98) > 40)


def of_colour(rgb):
    """A microscope's field has no dark corners or is purple; a retina is orange, mucosa pink."""
    red, green, blue = (float(rgb[..., channel].mean()) for channel in range(3))
    corners = np.concatenate([rgb[:6, :6].ravel(), rgb[:6, -6:].ravel(), rgb[-6:, -6:].ravel()])
    if blue > green or np.median(corners) > 2 * DARK:
        return {"modality": "microscopy", "plane": "", "part": "tissue"}
    if blue < 0.62 * green or red > 2.2 * green:
        return {"modality": "fundus photography", "plane": "", "part": "eye"}
    return {"modality": "endoscopy", "plane": "", "part": "colon"}


def is_fan(grey):
    """A field that widens downwards, as that of an ultrasound probe does."""
    body = ndi.binary_fill_holes(ndi.binary_opening(ndi.gaussian_filter(grey, 2) >= DARK, iterations=2))
    rows = np.nonzero(body.any(axis=1))[0]
    if rows.size < 20:
        return False
    widths = body.sum(axis=1)[rows]
    quarter = rows.size // 4
    above, below = (widths[place - 3 : place + 4].mean() for place in (quarter, 3 * quarter))
    return bool(above < 0.75 * below)


def panel_of(rgb, question):
    """The panel of a figure that a question names by its side; the whole picture where it names none."""
    gaps = np.nonzero(rgb.min(axis=(0, 2)) > 235)[0]
    if "panel" not in question or gaps.size == 0:
        return rgb
    part = rgb[:, gaps.max() + 1 :] if "right" in question else rgb[:, : gaps.min()]
    return part[~(part.min(axis=(1, 2)) > 235)]


def standard(grey):
    """The grey picture at the width for which ``chest`` is made."""
    height = max(1, round(grey.shape[0] * chest.WIDTH / grey.shape[1]))
    picture = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
    return np.asarray(picture.resize((chest.WIDTH, height), Image.Resampling.BILINEAR), dtype=np.float32)


def findings_of(rgb, seen):
    """Finding -> the places where it was measured, one entry each ('' where a place makes no sense)."""
    by_look = {
        ("X-ray", "chest"): film_findings,
        ("CT", "chest"): lambda rgb: {"effusion": layered_fluid(standard(rgb.mean(axis=2)))},
        ("CT", "abdomen"): lambda rgb: {"kidney": [""] * bright_organs(standard(rgb.mean(axis=2)))},
        ("MRI", "brain"): brain_findings,
        ("ultrasound", "abdomen"): fan_findings,
        ("endoscopy", "colon"): mucosa_findings,
        ("fundus photography", "eye"): retina_findings,
        ("microscopy", "tissue"): tissue_findings,
    }
    return by_look.get((seen["modality"], seen["part"]), lambda _: {})(rgb)


# --- grey pictures ----------------------------------------------------------------------------------------------------


def film_findings(rgb):
    found = chest.measure(standard(rgb.mean(axis=2)))
    if found is None:
        return {}
    return {
        **{name: found[name] for name in ("pneumothorax", "effusion", "consolidation", "nodule")},
        "cardiomegaly": [""] if found["ratio"] > 0.5 else [],
        "device": [""] if found["devices"]["pacemaker"] else [],
        "line": [""] if found["devices"]["line"] else [],
    }


def layered_fluid(grey):
    """Sides of an axial chest CT where the lung does not reach as far back as on the other side."""
    lungs = sorted(chest.lungs_of(grey), key=lambda lung: np.nonzero(lung)[1].mean())
    if len(lungs) < 2:
        return []
    back = [np.nonzero(lung)[0].max() for lung in lungs]
    reach = 0.08 * np.ptp(np.nonzero(grey >= DARK)[0])
    return [
        side for side, own, other in zip(chest.SIDES, back, back[::-1], strict=True) if other - own > reach
    ]


def bright_organs(grey):
    """Number of compact, bright, boneless blobs: enhanced kidneys in an abdominal CT."""
    smooth = ndi.gaussian_filter(grey, 1.0)
    blobs = label(opening((smooth > 150) & (smooth < WHITE), disk(3)))
    return sum(
        0.006 < region.area / grey.size < 0.06 and region.solidity > 0.75 for region in regionprops(blobs)
    )


def brain_parts(grey):
    """The inside of the skull, the middle third of it, and the level of its white matter."""
    head = ndi.binary_fill_holes(grey >= DARK)
    rows, columns = np.nonzero(head.any(axis=1))[0], np.nonzero(head.any(axis=0))[0]
    inside = ndi.binary_erosion(head, iterations=max(2, round(0.16 * np.ptp(columns))))
    middle = inside.copy()
    centre, reach = (columns.min() + columns.max()) / 2, 0.17 * np.ptp(columns)
    middle[:, np.abs(np.arange(grey.shape[1]) - centre) > reach] = False
    middle[: rows.min() + round(0.2 * np.ptp(rows))] = False
    return inside, middle, float(np.median(grey[inside])) if inside.any() else 0.0


def fluid_is_bright(grey):
    """Whether the ventricles, the extreme values in the middle of a brain, are brighter than white matter."""
    _, middle, level = brain_parts(grey)
    low, high = np.percentile(grey[middle], [4, 96])
    return bool(high - level > level - low)


def brain_findings(rgb):
    """Compact spots away from the midline that differ from white matter as fluid does."""
    grey = ndi.gaussian_filter(rgb.mean(axis=2), 1.0)
    inside, middle, level = brain_parts(grey)
    bright = fluid_is_bright(grey)
    extreme = np.percentile(grey[middle], 97 if bright else 3)
    spots = (grey - level) / (extreme - level) > 0.5
    centre = np.nonzero(inside.any(axis=0))[0].mean()
    places = []
    for region in regionprops(label(opening(spots & inside, disk(2)))):
        aside = abs(region.centroid[1] - centre) > 0.4 * np.ptp(np.nonzero(inside.any(axis=0))[0]) / 2
        if aside and region.solidity > 0.85 and 0.004 < region.area / inside.sum() < 0.12:
            places.append("right" if region.centroid[1] < centre else "left")
    return {"lesion": places}


def fan_findings(rgb):
    """Round echo-free holes, and a dark band that runs on to the far edge below something bright."""
    grey = rgb.mean(axis=2)
    smooth = ndi.gaussian_filter(grey, 1.5)
    field = ndi.binary_closing(np.pad(smooth >= DARK, 40), disk(20))[40:-40, 40:-40]
    deep = ndi.binary_erosion(field, iterations=4)
    cysts, shadows = [], []
    for region in regionprops(label(opening((smooth < 0.3 * np.median(smooth[field])) & field, disk(2)))):
        if region.area < 0.004 * field.sum():
            continue
        rows, columns = region.coords.T
        ends_inside = deep[rows, columns].mean() > 0.97
        (cysts if ends_inside and region.solidity > 0.85 else shadows).append("")
    stone = shadows and (ndi.gaussian_filter(grey, 1.0) > 0.8 * WHITE).sum() > 10
    return {"cyst": cysts, "stone": [""] if stone else [], "shadow": [""] if stone else []}


# --- coloured pictures ------------------------------------------------------------------------------------------------


def ninth(row, column, shape):
    """The ninth of the picture that holds a point, in words."""
    words = (
        ROWS[min(2, int(3 * row / shape[0]))],
        COLUMNS[min(2, int(3 * column / shape[1]))],
    )
    return "center" if words == ("center", "center") else "-".join(words)


def gleams(rgb):
    """Centres of small white reflections: where wet mucosa bulges towards the light."""
    white = ndi.binary_dilation(rgb.min(axis=2) > 225)
    return [region.centroid for region in regionprops(label(white)) if region.area < 0.01 * white.size]


def mucosa_findings(rgb):
    red, green, blue = (rgb[..., channel] for channel in range(3))
    metal = opening((np.ptp(rgb, axis=2) < 34) & (rgb.mean(axis=2) > 90) & (rgb.min(axis=2) < 225), disk(1))
    corner = rgb[int(0.7 * rgb.shape[0]) :, : int(0.27 * rgb.shape[1])]
    lit = (corner[..., 1] > 1.5 * corner[..., 0]) & (corner[..., 1] > 25)
    sores = (red > 190) & (green > 175) & (blue < 200) & (blue < green - 18)
    places = [ninth(*centre, rgb.shape) for centre in gleams(rgb)]
    return {
        "polyp": places,
        "instrument": [""] if metal.mean() > 0.008 else [],
        "box": [""] if lit.mean() > 0.3 else [],
        "colitis": [""] if not places and opening(sores, disk(1)).mean() > 0.008 else [],
    }


def polyp_colour(rgb):
    """Red or pink, from a ring around the first reflection."""
    centres = gleams(rgb)
    if not centres:
        return "pink"
    rows, columns = np.indices(rgb.shape[:2])
    away = np.hypot(rows - centres[0][0], columns - centres[0][1]) / rgb.shape[0]
    red, green = (float(np.median(rgb[..., channel][(away > 0.03) & (away < 0.07)])) for channel in (0, 1))
    return "red" if red > 1.7 * green else "pink"


def disc_side(rgb):
    """Half of the picture in which the retina is brightest."""
    smooth = ndi.gaussian_filter(rgb.mean(axis=2), 4)
    column = np.unravel_index(np.argmax(smooth), smooth.shape)[1]
    return "left" if column < smooth.shape[1] / 2 else "right"


def retina_findings(rgb):
    """Dark blots wider than vessels, and bright spots away from the disc."""
    red, green, blue = (rgb[..., channel] for channel in range(3))
    field = ndi.binary_erosion(ndi.binary_fill_holes(red > DARK), iterations=6)
    rows, columns = np.indices(red.shape)
    smooth = ndi.gaussian_filter(rgb.mean(axis=2), 4)
    disc = np.unravel_index(np.argmax(smooth), smooth.shape)
    away = np.hypot(rows - disc[0], columns - disc[1]) > 0.14 * red.shape[1]
    blots = opening((green < 0.45 * np.median(green[field])) & (blue < 60) & field & away, disk(2))
    spots = opening((green > 1.6 * np.median(green[field])) & field & away, disk(1))
    return {
        "haemorrhage": [""] * int(label(blots).max()) if blots.sum() > 0.001 * field.sum() else [],
        "exudate": [""] * int(label(spots).max()) if label(spots).max() >= 3 else [],
    }


def is_brown(rgb):
    """Pixels of the brown of an immunostain, which hematoxylin and eosin do not give."""
    red, green, blue = (rgb[..., channel] for channel in range(3))
    return (red > green + 15) & (green > blue + 10) & (red < 190)


def tissue_findings(rgb):
    red, green, blue = (rgb[..., channel] for channel in range(3))
    blood = opening((red > 140) & (green < 110) & (blue < 120) & (red > blue + 50), disk(1))
    nuclei = (blue > green + 20) & (rgb.mean(axis=2) < 165) & (blue > red)
    crowd = ndi.gaussian_filter(nuclei.astype(float), 9).max() > 0.42
    empty = ndi.gaussian_filter(rgb.min(axis=2), 1.0) > 233
    holes = [region for region in regionprops(label(opening(empty, disk(2)))) if region.area > 60]
    fat = sum(region.area for region in holes) > 0.4 * red.size
    cells = nuclei | is_brown(rgb)
    lumens = [] if fat else [region for region in holes if has_wall(region, cells) and region.solidity > 0.85]
    return {
        "gland": [""] * len(lumens),
        "fat": [""] if fat else [],
        "infiltrate": [""] if crowd else [],
        "vessel": [""] if blood.mean() > 0.003 else [],
        "brown": [""] if is_brown(rgb).mean() > 0.004 else [],
    }


def has_wall(region, cells):
    """Whether cells stand close around a hole on most sides."""
    rows, columns = np.indices(cells.shape)
    radius = np.sqrt(region.area / np.pi)
    away = np.hypot(rows - region.centroid[0], columns - region.centroid[1])
    return float(cells[(away > radius) & (away < 2.2 * radius)].mean()) > 0.12
