"""Which upstream family each task's data come from: one name for its phantom and its staging module."""

from __future__ import annotations

from difflib import get_close_matches

FAMILIES: dict[str, str] = {
    "kidney-seg-task": "kits",
    "pancreas-seg-task": "pants",
    "pancreas-oar-seg-task": "pants",
    "liver-seg-task": "msd",
    "colon-seg-task": "msd",
    "hepaticvessel-seg-task": "msd",
    "spleen-seg-task": "msd",
    "heart-seg-task": "msd",
    "prostate-seg-task": "msd",
    "ldct-denoising-task": "simnict",
    "mri-sr-task": "fastmri",
    "brats-t1c-sr-task": "brats",
    "ixi-t1-sr-task": "ixi",
    "nih-cxr-sr-task": "nih_cxr",
    "lidc-idri-denoising-task": "lidc",
    "deeplesion-denoising-task": "deeplesion",
    "synthrad2025-mrct-task": "synthrad",
    "ctorg-ctsr-task": "ct_sr",
    "msd-pancreas-ctsr-task": "ct_sr",
    "totalsegmentator-ctsr-task": "ct_sr",
    "vqa-rad-task": "vqa_rad",
    "pathvqa-task": "vqa.path_vqa",
    "slake-task": "vqa.slake",
    "medframeqa-task": "vqa.medframeqa",
    "medxpertqa-mm-task": "vqa.medxpertqa",
    "vqa-kvasir-task": "vqa.kvasir_vqa",
    "vqa-omnimedvqa-task": "vqa.omnimedvqa",
    "vqa-pmc-vqa-task": "vqa.pmc_vqa",
    "vqa-mmmu-medical-task": "vqa.mmmu",
    "iu-xray-report-task": "openi",
    "mimic-cxr-report-task": "mimic_cxr",
    "chexpert-plus-cxr-task": "chexpert_plus",
    "pathology-caption-100-task": "pathcap",
    "pathology-caption-500-task": "pathcap",
    "braintumor-cls-task": "class_folders",
    "crc-histology-cls-task": "class_folders",
    "chest-xray-pneumonia-cls-task": "class_folders",
    "patchcamelyon-cls-task": "pcam",
    "skin-lesion-cls-task": "isic",
    "bccd-det-task": "bccd",
    "vindr-cxr-det-task": "vindr",
    "dentex-det-task": "dentex",
    "grazpedwri-det-task": "grazpedwri",
    "aeropath-seg-task": "aeropath",
    "tsg-multiorgan-seg-task": "totalsegmentator",
    "feta-seg-task": "feta",
    "panther-t1-seg-task": "panther",
    "panther-t2-seg-task": "panther",
}


class UnknownTask(Exception):
    """No family is registered for the task; the message lists those that are."""


def family_of(task_id: str) -> str:
    """The module name under ``hf_datasets.phantoms`` and ``hf_datasets.staging`` that serves a task.

    Raises
    ------
    UnknownTask
        The task has no data family; the message names the nearest one that has.
    """
    if task_id in FAMILIES:
        return FAMILIES[task_id]
    near = get_close_matches(task_id, FAMILIES, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UnknownTask(
        f"no data family for task {task_id!r}; {hint}A new task's family is named in hf_datasets/families.py"
    )
