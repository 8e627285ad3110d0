"""Tell stained tissues apart by colour, by size and crowd of nuclei, and by the direction of fibres."""

import numpy as np
from fuzzy import ramp
from scipy import ndimage as ndi
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

TISSUES = ("adi", "back", "deb", "lym", "muc", "mus", "norm", "str", "tum")
STATES = ("negative", "positive")


def coherence_of(grey):
    """How far brightness changes in one direction only, from 0 to 1, weighted by how much it changes."""
    down, across = np.gradient(ndi.gaussian_filter(grey, 1.5))
    xx, yy, xy = (ndi.gaussian_filter(part, 7) for part in (across * across, down * down, across * down))
    strength = xx + yy
    return float(np.hypot(xx - yy, 2 * xy).sum() / max(strength.sum(), 1e-6))


def nuclei_of(rgb):
    """Dark purple: clearly more blue than green, and darker than the middle between ink and paper."""
    red, green, blue = (ndi.gaussian_filter(rgb[..., channel], 0.7) for channel in range(3))
    return (blue > green + 25) & (green < 0.5 * (np.percentile(green, 99) + 30)) & (blue > red)


def kernel_width(mask):
    """Typical thickness of the mask's parts in pixels: twice the distance to their border where it peaks."""
    depth = ndi.distance_transform_edt(mask)
    peaks = (depth == ndi.maximum_filter(depth, 5)) & (depth >= 1)
    return float(2 * np.median(depth[peaks])) if peaks.any() else 0.0


def measure(rgb):
    grey = rgb.mean(axis=2)
    nuclei = nuclei_of(rgb)
    blurred = ndi.gaussian_filter(rgb, (1, 1, 0))
    chroma = np.ptp(blurred, axis=2)
    empty = opening(
        (blurred.min(axis=2) > 0.9 * np.percentile(blurred.min(axis=2), 99.5)) & (chroma < 24), disk(2)
    )
    parts = [part for part in regionprops(label(nuclei)) if part.area >= 12]
    long = [part.axis_major_length / max(part.axis_minor_length, 1) for part in parts]
    return {
        "light": float(grey.mean()),
        "relief": float(ndi.gaussian_filter(grey, 1.5).std()),
        "chroma": float(chroma.mean()),
        "empty": float(empty.mean()) if chroma.mean() > 12 else 1.0,
        "red": float((rgb[..., 0] - rgb[..., 2]).mean()),
        "nuclei": float(nuclei.mean()),
        "width": kernel_width(nuclei),
        "slender": float(np.median(long)) if long else 1.0,
        "fibres": coherence_of(grey),
    }


def tissue_scores(rgb):
    """Each tissue is a few demands at once; the weakest of them decides."""
    m = measure(rgb)
    crowd, few = ramp(m["nuclei"], 0.14, 0.28), ramp(m["nuclei"], 0.16, 0.08)
    along = ramp(m["fibres"], 0.35, 0.6)
    pink = ramp(m["red"], -5, 20)
    coloured = ramp(m["chroma"], 12, 25)
    return {
        "back": min(1 - coloured, ramp(m["relief"], 12, 5)),
        "adi": min(ramp(m["empty"], 0.35, 0.6), ramp(m["relief"], 8, 16), few),
        "muc": min(
            ramp(m["light"], 170, 195), ramp(m["chroma"], 50, 30), coloured, 1 - ramp(m["nuclei"], 0.02, 0.06)
        ),
        "lym": min(crowd, ramp(m["width"], 9.0, 7.0), ramp(m["light"], 185, 165)),
        "tum": min(crowd, ramp(m["width"], 7.0, 9.0)),
        "mus": min(along, few, pink, ramp(m["chroma"], 50, 75)),
        "str": min(0.4 + 0.6 * along, few, pink, ramp(m["chroma"], 80, 60), ramp(m["light"], 165, 185)),
        "norm": min(
            ramp(m["nuclei"], 0.06, 0.12), ramp(m["nuclei"], 0.3, 0.22), 1 - along, ramp(m["light"], 150, 170)
        ),
        "deb": min(few, 1 - along, ramp(m["light"], 200, 180), ramp(m["empty"], 0.3, 0.15)),
    }


def node_scores(rgb):
    """In the middle third: nuclei wider than those of the surroundings, or than lymphocytes are at one micrometre."""
    height, width = rgb.shape[:2]
    rows, columns = slice(height // 3, height - height // 3), slice(width // 3, width - width // 3)
    nuclei = opening(nuclei_of(rgb), disk(1))
    depth = ndi.distance_transform_edt(nuclei)
    large = ndi.maximum_filter(depth * (depth > 3.5), 5) > 0
    share = float((large & nuclei)[rows, columns].sum() / max(nuclei[rows, columns].sum(), 1))
    pale = float((ndi.gaussian_filter(rgb[..., 1], 2)[rows, columns] > 110).mean())
    tumour = ramp(share, 0.08, 0.35) * (0.6 + 0.4 * pale)
    return {"negative": 1 - tumour, "positive": tumour}
