"""Segmentation: macro Dice over the task's targets within a case, then over cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluator.contamination import REFERENCE_COPY, same_mask
from evaluator.metrics.segmentation import (
    Surface,
    SurfaceTooLarge,
    count_labels,
    lesion_f1,
    surface_per_label,
)
from evaluator.readers.nifti import Volume, read_label_map, require_same_grid
from evaluator.tracks.base import (
    MISSING,
    CaseFault,
    CaseFiles,
    FilePerCase,
    Finished,
    Outcome,
    Summary,
    headline,
    mean,
    mean_of,
    staged,
    untrusted,
)
from evaluator.tracks.grids import read_first_channel, read_grid
from tasks.schema import MaskFile, MaskOutput, Target, Task

if TYPE_CHECKING:
    from evaluator.pictures import Structure

Masks = dict[str, Volume]
LabelMap = NDArray[Any]


@dataclass(frozen=True)
class _Measured:
    """One target in one case. ``dice`` None: absent on both sides and left out of the case's mean."""

    dice: float | None
    nsd: float | None
    hd95: float | None
    volume_error_ml: float
    lesion_f1: float | None
    in_reference: bool
    true_negative: bool


class SegmentationTrack(FilePerCase):
    """Label maps on the grid of a public volume."""

    def __init__(self, task: Task) -> None:
        if not isinstance(task.output, MaskOutput):
            raise TypeError(f"task {task.id} delivers {task.output.kind}, expected mask")
        self.task = task
        self.output = task.output

    def check(self, case: CaseFiles) -> Masks:
        """Every file is read, so that a broken one is reported even where another one is missing."""
        masks: Masks = {}
        faults: list[CaseFault] = []
        for file in self.output.files:
            try:
                masks[file.name] = self._read_mask(case, file)
            except CaseFault as fault:
                faults.append(fault)
        if faults:
            raise next((fault for fault in faults if fault.code != MISSING), faults[0])
        return masks

    def _read_mask(self, case: CaseFiles, file: MaskFile) -> Volume:
        path = case.output(file.name)
        with staged(case):
            grid = self._grid(case, file)
        with untrusted():
            mask = read_label_map(path, file.labels, expected_shape=grid.data.shape)
            require_same_grid(mask, grid, file.name)
        return mask

    def _grid(self, case: CaseFiles, file: MaskFile) -> Volume:
        return read_grid(case.reference(file.name) if case.public is None else case.input(file.grid_of))

    def score(self, case: CaseFiles, output: Masks | None) -> Outcome:
        references = self._read_references(case)
        measured: dict[str, _Measured] = {}
        if output is None:
            for target in self.output.targets:
                measured[target.name] = _worst(target, references[target.file])
            outcome = self._outcome(measured, [])
            return outcome.model_copy(
                update={"score": 0.0, "metrics": {**outcome.metrics, "macro_dice": 0.0}}
            )
        flags: list[str] = []
        for layer in _disjoint(self.output.targets):
            name = layer[0].file
            measured |= _measure(layer, references[name], output[name], flags)
        if not any(mask.data.any() for mask in output.values()):
            flags += ["empty_prediction"] * any(one.in_reference for one in measured.values())
        copied = any(same_mask(references[name].data, mask.data) for name, mask in output.items())
        flags += [REFERENCE_COPY] * copied
        return self._outcome(measured, flags)

    def _read_references(self, case: CaseFiles) -> Masks:
        """The references, each on the grid that the outputs were held against."""
        references: Masks = {}
        with staged(case):
            for file in self.output.files:
                references[file.name] = read_label_map(case.reference(file.name), file.labels)
                require_same_grid(references[file.name], self._grid(case, file), file.name)
        return references

    def _outcome(self, measured: dict[str, _Measured], flags: list[str]) -> Outcome:
        macro = mean([one.dice for one in measured.values() if one.dice is not None])
        if macro is None:
            macro = 1.0
            flags.append("nothing_to_segment")
        flags += [f"true_negative:{name}" for name, one in measured.items() if one.true_negative]
        in_reference = [name for name, one in measured.items() if one.in_reference]
        metrics = _metrics(measured) | {"macro_dice": macro}
        return Outcome(score=macro, metrics=metrics, flags=tuple(flags), evidence=in_reference)

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        names = sorted({name for case in cases for name in case.result.metrics})
        aggregates = {name: mean_of(cases, name) for name in names}
        aggregates["macro_dice"] = headline(cases)
        positive = {
            target.name: mean_of(
                [case for case in cases if target.name in case.evidence], f"dice_{target.name}"
            )
            for target in self.output.targets
            if target.lesion
        }
        if positive:
            aggregates |= {f"lesion_positive_dice_{name}": value for name, value in positive.items()}
            aggregates["lesion_positive_dice"] = mean(
                [value for value in positive.values() if value is not None]
            )
        return Summary(headline(cases), aggregates)

    def preview(self, case: CaseFiles, output: Masks) -> bytes | None:
        from evaluator.pictures import mask_picture, window_for

        file = self.output.files[0]
        with staged(case):
            scan = read_first_channel(case.input(file.grid_of))
        reference = self._structures(self._read_references(case)) if case.references else None
        window = window_for(scan.data, f"{self.task.title} {self.task.modality}")
        return mask_picture(scan.data, scan.spacing, window, self._structures(output), reference)

    def _structures(self, masks: Masks) -> list[Structure]:
        from evaluator.pictures import Structure

        return [
            Structure(target.name, masks[target.file].data, target.ids, target.lesion)
            for target in self.output.targets
        ]


def _disjoint(targets: Sequence[Target]) -> list[list[Target]]:
    """Groups of targets of one file that share no label, so that each group is one label map and one pass."""
    layers: list[list[Target]] = []
    for target in targets:
        for layer in layers:
            taken = {label for other in layer for label in other.ids}
            if layer[0].file == target.file and not taken & set(target.ids):
                layer.append(target)
                break
        else:
            layers.append([target])
    return layers


def _measure(
    layer: list[Target], reference: Volume, prediction: Volume, flags: list[str]
) -> dict[str, _Measured]:
    numbers = range(1, len(layer) + 1)
    ours, theirs = (_renumbered(volume.data, layer) for volume in (reference, prediction))
    in_reference, in_prediction, in_both = (
        _padded(counts, len(layer)) for counts in count_labels(ours, theirs)
    )
    surfaces = _surfaces(ours, theirs, reference.spacing, layer, flags)
    box = _foreground(ours, theirs)
    voxel_ml = _voxel_ml(reference)
    measured = {}
    for number, target in zip(numbers, layer, strict=True):
        expected, found = int(in_reference[number]), int(in_prediction[number])
        absent = expected + found == 0
        counts = not absent or target.lesion
        dice = 1.0 if absent else 2.0 * int(in_both[number]) / (expected + found)
        measured[target.name] = _Measured(
            dice=dice if counts else None,
            nsd=surfaces[number].nsd_voxel if counts else None,
            hd95=surfaces[number].hd95_directed_max if counts else None,
            volume_error_ml=(found - expected) * voxel_ml,
            lesion_f1=lesion_f1(ours[box] == number, theirs[box] == number) if target.lesion else None,
            in_reference=expected > 0,
            true_negative=absent and target.lesion,
        )
    return measured


def _renumbered(labels: LabelMap, layer: list[Target]) -> LabelMap:
    """The label map in which the k-th target of the layer is k, and everything else background."""
    table = np.zeros(np.iinfo(labels.dtype).max + 1, dtype=np.uint8 if len(layer) < 256 else np.uint16)
    for number, target in enumerate(layer, 1):
        table[list(target.ids)] = number
    return table[labels]


def _padded(counts: NDArray[np.int64], labels: int) -> NDArray[np.int64]:
    return np.pad(counts, (0, max(0, labels + 1 - counts.size)))


def _surfaces(
    reference: LabelMap,
    prediction: LabelMap,
    spacing: tuple[float, float, float],
    layer: list[Target],
    flags: list[str],
) -> dict[int, Surface]:
    numbers = range(1, len(layer) + 1)
    tolerances = {number: target.nsd_tolerance_mm for number, target in zip(numbers, layer, strict=True)}
    try:
        return surface_per_label(reference, prediction, numbers, spacing, tolerances)
    except SurfaceTooLarge:
        flags += [f"boundary_too_large:{target.name}" for target in layer]
        return dict.fromkeys(numbers, Surface(0.0, _diagonal(reference, spacing)))


def _worst(target: Target, reference: Volume) -> _Measured:
    """What a target counts without any output: a truly absent lesion is not found absent by saying nothing."""
    expected = int(np.count_nonzero(np.isin(reference.data, target.ids)))
    counts = expected > 0 or target.lesion
    return _Measured(
        dice=0.0 if counts else None,
        nsd=0.0 if counts else None,
        hd95=_diagonal(reference.data, reference.spacing) if counts else None,
        volume_error_ml=-expected * _voxel_ml(reference),
        lesion_f1=0.0 if target.lesion else None,
        in_reference=expected > 0,
        true_negative=False,
    )


def _foreground(reference: LabelMap, prediction: LabelMap) -> tuple[slice, ...]:
    """The smallest box around both foregrounds: components are numbered in there and nowhere else."""
    box = []
    for axis in range(reference.ndim):
        others = tuple(other for other in range(reference.ndim) if other != axis)
        used = np.flatnonzero(reference.any(axis=others) | prediction.any(axis=others))
        box.append(slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 0))
    return tuple(box)


def _diagonal(labels: LabelMap, spacing: tuple[float, float, float]) -> float:
    return float(np.linalg.norm(np.multiply(spacing, labels.shape)))


def _voxel_ml(volume: Volume) -> float:
    return float(np.prod(volume.spacing)) / 1000.0


def _metrics(measured: dict[str, _Measured]) -> dict[str, float | None]:
    metrics: dict[str, float | None] = {}
    for name, one in measured.items():
        metrics[f"dice_{name}"] = one.dice
        metrics[f"nsd_voxel_{name}"] = one.nsd
        metrics[f"hd95_directed_max_{name}"] = one.hd95
        metrics[f"volume_error_ml_{name}"] = one.volume_error_ml
        if one.lesion_f1 is not None:
            metrics[f"lesion_f1_{name}"] = one.lesion_f1
    every = measured.values()
    metrics["nsd_voxel"] = mean([one.nsd for one in every if one.nsd is not None])
    metrics["hd95_directed_max"] = mean([one.hd95 for one in every if one.hd95 is not None])
    metrics["volume_error"] = mean([abs(one.volume_error_ml) for one in every])
    return metrics
