"""Enhancement and synthesis: mean SSIM on the task's fixed value range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluator.contamination import REFERENCE_COPY, same_image
from evaluator.metrics.image import SSIM_RADIUS, mae, psnr, rmse, ssim
from evaluator.metrics.lpips import FOLDER, Lpips, load_lpips
from evaluator.metrics.weights import weights_folder
from evaluator.readers.array import read_array
from evaluator.tracks.base import (
    CaseFiles,
    FilePerCase,
    Finished,
    Outcome,
    ReferenceMissing,
    Summary,
    headline,
    mean,
    mean_of,
    staged,
    untrusted,
)
from tasks.schema import ImageOutput, Task

if TYPE_CHECKING:
    from evaluator.readers.nifti import Volume

Image = NDArray[Any]
METRICS = ("ssim_gaussian", "psnr", "mae", "rmse")
LPIPS = "lpips_alex"


@dataclass(frozen=True)
class _Grid:
    """What an output must look like: a shape, and for NIfTI a place."""

    shape: tuple[int, ...]
    volume: Volume | None


class ImageTrack(FilePerCase):
    """A restored or synthesised image, compared after clipping both sides to the task's range."""

    def __init__(self, task: Task) -> None:
        if not isinstance(task.output, ImageOutput):
            raise TypeError(f"task {task.id} delivers {task.output.kind}, expected image")
        self.task = task
        self.output = task.output
        self.reference_name = task.references[0]
        self._lpips: Lpips | None = None
        self._unavailable: dict[str, str] = {}

    def prepare(self) -> None:
        """Load LPIPS where the task asks for it: here, because a case's child could not afford torch."""
        if LPIPS not in self.task.metric.secondary:
            return
        weights = weights_folder()
        try:
            self._lpips = load_lpips(weights and weights / FOLDER, self.output.data_range)
        except RuntimeError as error:
            self._unavailable = {LPIPS: str(error)}

    def check(self, case: CaseFiles) -> Image:
        path = case.output(self.output.file)
        with staged(case):
            grid = self._grid(case)
        with untrusted():
            if grid.volume is None:
                return read_array(path, expected_shape=grid.shape)
            from evaluator.readers.nifti import read_nifti, require_same_grid

            restored = read_nifti(path, expected_shape=grid.shape)
            require_same_grid(restored, grid.volume, self.output.file)
            return restored.data

    def _grid(self, case: CaseFiles) -> _Grid:
        path = (
            case.reference(self.reference_name) if case.public is None else case.input(self.output.shape_of)
        )
        scale = 1 if case.public is None else self.output.scale
        if path.suffix == ".npy":
            stored: tuple[int, ...] = np.load(path, mmap_mode="r", allow_pickle=False).shape
            return _Grid(tuple(size * scale for size in stored), None)
        from evaluator.tracks.grids import read_grid  # nibabel, which an array of slices does without

        volume = read_grid(path)
        return _Grid(volume.data.shape, volume)

    def score(self, case: CaseFiles, output: Image | None) -> Outcome:
        low, high = self.output.data_range
        width = high - low
        with staged(case):
            reference = _clipped(self._reference(case), low, high)
        if output is None:
            return Outcome(score=0.0, metrics=dict(zip(METRICS, (0.0, 0.0, width, width), strict=True)))
        restored = _clipped(output, low, high)
        similarity = ssim(reference, restored, width)
        noise = psnr(reference, restored, width)
        metrics = {
            "ssim_gaussian": similarity,
            "psnr": noise.db,
            "mae": mae(reference, restored),
            "rmse": rmse(reference, restored),
        }
        if self._lpips is not None:
            metrics[LPIPS] = _mean_over_slices(self._lpips, reference, restored)
        flags = ["psnr_capped"] * noise.capped
        if self._is_copy(case, restored):
            flags.append("copied_input")
        elif same_image(reference, restored, width):
            flags.append(REFERENCE_COPY)
        return Outcome(score=min(1.0, max(0.0, similarity)), metrics=metrics, flags=tuple(flags))

    def _is_copy(self, case: CaseFiles, restored: Image) -> bool:
        """Whether the output, clipped to the task's range, is the input, clipped likewise."""
        if case.public is None or self.output.scale != 1:
            return False
        with staged(case):
            given, _ = _staged_image(case.input(self.output.shape_of))
        return given.shape == restored.shape and np.array_equal(
            _clipped(given, *self.output.data_range), restored
        )

    def _reference(self, case: CaseFiles) -> Image:
        """The reference, on the grid that the output was held against and large enough for SSIM's window."""
        path, grid = case.reference(self.reference_name), self._grid(case)
        if min(grid.shape[:2]) <= 2 * SSIM_RADIUS:
            raise ReferenceMissing(f"case {case.id}: {path.name} is smaller than the window of SSIM")
        if grid.volume is None:
            return read_array(path, expected_shape=grid.shape)
        from evaluator.readers.nifti import read_nifti, require_same_grid

        reference = read_nifti(path, expected_shape=grid.shape)
        require_same_grid(reference, grid.volume, path.name)
        return reference.data

    def aggregate(self, cases: Sequence[Finished]) -> Summary:
        learned = () if self._lpips is None else (LPIPS,)
        aggregates = {name: mean_of(cases, name) for name in (*METRICS, *learned)}
        libraries = ("torch",) if learned else ()
        return Summary(headline(cases), aggregates, unavailable=self._unavailable, libraries=libraries)

    def preview(self, case: CaseFiles, output: Image) -> bytes | None:
        from evaluator.pictures import image_picture, window_for

        with staged(case):
            given, spacing = _staged_image(case.input(self.output.shape_of))
            reference = self._reference(case) if case.references else None
        words = f"{self.task.title} {self.task.modality}"
        shown = window_for(np.asarray(self.output.data_range), words)
        return image_picture(
            _middle_plane(given, spacing),
            _middle_plane(output, spacing),
            None if reference is None else _middle_plane(reference, spacing),
            (window_for(given, words), shown),
            spacing and (spacing[0] * given.shape[0], spacing[1] * given.shape[1]),
        )


def _mean_over_slices(metric: Lpips, reference: Image, restored: Image) -> float:
    slices = (side[..., None] if side.ndim == 2 else side for side in (reference, restored))
    pairs = zip(*(np.moveaxis(side, -1, 0) for side in slices), strict=True)
    return mean([metric(ours, theirs) for ours, theirs in pairs]) or 0.0


def _staged_image(path: Path) -> tuple[Image, tuple[float, float, float] | None]:
    """An input and, of a volume, its spacing. An array has rows and columns instead of a right and a left."""
    if path.suffix == ".npy":
        return read_array(path), None
    from evaluator.tracks.grids import read_first_channel

    volume = read_first_channel(path)
    return volume.data, volume.spacing


def _middle_plane(image: Image, spacing: tuple[float, float, float] | None) -> Image:
    plane: Image = image if image.ndim == 2 else image[:, :, image.shape[2] // 2]
    return plane if spacing is None else plane.T[::-1, ::-1]


def _clipped(image: Image, low: float, high: float) -> Image:
    """Clipped to the range. Integers become float32: as float64 a large volume would not fit."""
    values = image if image.dtype.kind == "f" else image.astype(np.float32)
    clipped: Image = np.clip(values, low, high)
    return clipped
