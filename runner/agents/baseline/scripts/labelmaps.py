"""Label maps from named masks: written on the scan's own grid, read back and looked at."""

import nibabel as nib
import numpy as np
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform
from scipy import ndimage as ndi
from segmentation import on_full_grid
from skimage.filters import threshold_multiotsu


def signal_levels(values, classes):
    """Borders between classes of signal; equal steps where there are too few different values."""
    try:
        return threshold_multiotsu(np.ravel(values), classes=classes)
    except ValueError:
        return np.linspace(values.min(), values.max(), classes + 1)[1:-1]


def targets_in(task, name):
    return [target for target in task["output"]["targets"] if target["file"] == name]


def save(masks, item, folder, task):
    """One 8-bit map a file; where masks overlap, the later target counts."""
    image = item["image"]
    back = ornt_transform(axcodes2ornt("RAS"), io_orientation(image.affine))
    for name in task["files"]:
        labels = np.zeros(item["full"], np.uint8)
        for target in targets_in(task, name):
            labels[on_full_grid(masks[target["name"]], item)] = target["ids"][0]
        nib.save(nib.Nifti1Image(apply_orientation(labels, back), image.affine), folder / name)


def inspect(item, folder, task, show, volumes):
    """What is wrong with the files of a case; ``volumes``: target -> plausible range in ml, where one is demanded."""
    image, problems = item["image"], []
    for name in task["files"]:
        written = nib.load(folder / name)
        labels = np.asarray(written.dataobj)
        known = {target["ids"][0]: target["name"] for target in targets_in(task, name)}
        voxel_ml = abs(np.linalg.det(written.affine[:3, :3])) / 1000
        show(
            f"{name}: shape {labels.shape}, {labels.dtype}, same affine {np.allclose(written.affine, image.affine)}"
        )
        if labels.shape != image.shape[:3] or not np.allclose(written.affine, image.affine):
            return [f"{name} is not on the grid of the scan"]
        if strange := set(np.unique(labels).tolist()) - {0, *known}:
            problems.append(f"{name} has labels {sorted(strange)}")
        for number, target in known.items():
            mask = labels == number
            volume, pieces = float(mask.sum() * voxel_ml), ndi.label(mask)[1]
            show(f"  {number} {target}: {mask.sum()} voxels, {volume:.1f} ml in {pieces} pieces")
            low, high = volumes.get(target, (0.0, np.inf))
            if not low <= volume <= high:
                problems.append(f"{target} of {volume:.0f} ml")
    return problems
