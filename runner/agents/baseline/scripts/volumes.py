"""Reading, writing and checking of volumes and label maps, for methods that work on NIfTI files.

Arrays are in RAS order: indices grow towards the patient's right, front and head.
"""

import nibabel as nib
import numpy as np
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform
from scipy import ndimage as ndi


def load(folder, task):
    """One case: the volume in RAS order as float32, its spacing in mm, and the image as it was stored."""
    image = nib.load(folder / task["output"]["files"][0]["grid_of"])
    to_ras = ornt_transform(io_orientation(image.affine), axcodes2ornt("RAS"))
    data = apply_orientation(np.asarray(image.dataobj, dtype=np.float32), to_ras)
    spacing = np.array(image.header.get_zooms()[:3], dtype=float)[np.argsort(to_ras[:, 0])]
    return {"task": task, "image": image, "data": data, "spacing": spacing}


def describe(item):
    image, data = item["image"], item["data"]
    spacing = ", ".join(f"{step:.3f}" for step in image.header.get_zooms()[:3])
    low, middle, high = np.percentile(data, (1, 50, 99))
    print(f"shape {image.shape}, {image.get_data_dtype()}, spacing {spacing} mm")
    print(
        f"orientation {''.join(nib.aff2axcodes(image.affine))}, percentiles {low:.0f}, {middle:.0f}, {high:.0f}"
    )


def describe_result(result):
    for name, labels in result["files"].items():
        ids, counts = np.unique(labels, return_counts=True)
        print(f"{name}: {labels.shape}, voxels {dict(zip(ids.tolist(), counts.tolist(), strict=True))}")


def as_result(item, **files):
    """Label maps by the stem of their file name, in RAS order."""
    return {
        "item": item,
        "files": {f"{stem}.nii.gz": np.asarray(labels, np.uint8) for stem, labels in files.items()},
    }


def save(result, folder, task):
    """Back to the stored orientation, as 8-bit maps with the input's affine."""
    image = result["item"]["image"]
    back = ornt_transform(axcodes2ornt("RAS"), io_orientation(image.affine))
    for name in task["files"]:
        nib.save(nib.Nifti1Image(apply_orientation(result["files"][name], back), image.affine), folder / name)


def inspect(item, folder, task, show):
    """What is wrong with written files by the contract; sizes are shown for the eye."""
    image, problems = item["image"], []
    for file in task["output"]["files"]:
        written = nib.load(folder / file["name"])
        labels = np.asarray(written.dataobj)
        ids, counts = np.unique(labels, return_counts=True)
        ml = counts * float(np.prod(written.header.get_zooms()[:3])) / 1000
        kept = np.allclose(written.affine, image.affine)
        show(f"{file['name']}: shape {labels.shape}, {labels.dtype}, same affine {kept}")
        show(
            "  ml by label: " + ", ".join(f"{i}: {v:.1f}" for i, v in zip(ids.tolist(), ml, strict=True) if i)
        )
        if labels.shape != image.shape or not kept:
            problems.append(f"{file['name']} is not on the grid of the input")
        if not set(ids.tolist()) <= {int(known) for known in file["labels"]}:
            problems.append(f"{file['name']} has labels {ids.tolist()}")
    if not any((np.asarray(nib.load(folder / name).dataobj) > 0).any() for name in task["files"]):
        problems.append("nothing is labelled")
    return problems


def ids_by_name(task):
    """Name of a target -> its label, for tasks whose targets have one label each."""
    return {target["name"]: target["ids"][0] for target in task["output"]["targets"]}


def components(mask, least_ml, spacing):
    """The connected pieces of at least so many millilitres, largest first."""
    marks, count = ndi.label(mask)
    sizes = ndi.sum_labels(mask, marks, range(1, count + 1)) * np.prod(spacing) / 1000
    order = [i for i in np.argsort(sizes)[::-1] if sizes[i] >= least_ml]
    return [marks == i + 1 for i in order]


def centre_of(mask, spacing):
    """Centre of mass in mm from the corner of the array."""
    return np.array(ndi.center_of_mass(mask)) * spacing
