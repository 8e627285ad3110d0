"""LPIPS (Zhang et al., CVPR 2018), AlexNet version 0.1, from local weight files; needs torch.

Two files of pinned digests in the folder ``lpips`` of the weights: ``alexnet.pth``, torchvision's ImageNet
weights, and ``alex.pth``, the linear heads of LPIPS 0.1. Nothing is downloaded; without them the metric is
unavailable.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.files import sha256_file
from evaluator.metrics.weights import WEIGHTS_VARIABLE

Lpips = Callable[[NDArray[np.generic], NDArray[np.generic]], float]
"""(reference, prediction) -> LPIPS, >= 0, 0 for identical pictures."""

FOLDER = "lpips"
BACKBONE, HEADS = "alexnet.pth", "alex.pth"
DIGESTS = {
    BACKBONE: "7be5be79",
    HEADS: "df73285e35b22355a2df87cdb6b70b343713b667eddbda73e1977e0c860835c0",
}
"""SHA-256 of the files; of the backbone the first 8 digits, which its publisher puts into the file's name."""

_SHIFT, _SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
_CONVOLUTIONS = ((0, 4, 2), (3, 1, 2), (6, 1, 1), (8, 1, 1), (10, 1, 1))
"""Index in torchvision's ``features``, stride, padding."""
_POOL_BEFORE = (3, 6)


def unavailable(folder: Path | None) -> str | None:
    """Why LPIPS cannot be computed here; None when it can."""
    if importlib.util.find_spec("torch") is None:
        return "package torch is not installed (extra 'lpips')"
    if folder is None:
        return f"no weights folder: set {WEIGHTS_VARIABLE}"
    for name, digest in DIGESTS.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is not in the weights folder"
        found = sha256_file(path)
        if not found.startswith(digest):
            return f"{name} has SHA-256 {found[:8]}..., expected {digest[:8]}..."
    return None


def load_lpips(folder: Path | None, value_range: tuple[float, float]) -> Lpips:
    """The metric for images in the fixed ``value_range``, scaled to [-1, 1], grey copied to three channels.

    Raises
    ------
    RuntimeError
        `unavailable` says why.
    """
    if (reason := unavailable(folder)) or folder is None:
        raise RuntimeError(f"lpips is unavailable: {reason}")
    torch: Any = import_module("torch")
    torch.set_num_threads(
        1
    )  # sums in another order on another number of cores; and forks of this process are safe
    backbone = torch.load(folder / BACKBONE, map_location="cpu", weights_only=True)
    heads = torch.load(folder / HEADS, map_location="cpu", weights_only=True)
    low, high = value_range

    def distance(reference: NDArray[np.generic], prediction: NDArray[np.generic]) -> float:
        if reference.shape != prediction.shape or reference.ndim != 2:
            raise ValueError(
                f"expected two 2-D images of one shape, found {reference.shape} and {prediction.shape}"
            )
        images = np.stack([reference, prediction]).astype(np.float32)
        scaled = np.clip((images - low) / (high - low), 0.0, 1.0) * 2.0 - 1.0
        with torch.inference_mode():
            total = 0.0
            for layer, features in enumerate(_features(torch, torch.from_numpy(scaled), backbone)):
                unit = features / (features.norm(dim=1, keepdim=True) + 1e-10)
                apart = (unit[0] - unit[1]).square()[None]
                weights = heads[f"lin{layer}.model.1.weight"]
                total += float(torch.nn.functional.conv2d(apart, weights).mean())
        return total

    return distance


def _features(torch: Any, images: Any, weights: dict[str, Any]) -> list[Any]:
    """Activations after each of AlexNet's five rectified convolutions."""
    functional = torch.nn.functional
    shift, scale = (torch.tensor(values).view(1, 3, 1, 1) for values in (_SHIFT, _SCALE))
    x = (images[:, None].expand(-1, 3, -1, -1) - shift) / scale
    result = []
    for index, stride, padding in _CONVOLUTIONS:
        if index in _POOL_BEFORE:
            x = functional.max_pool2d(x, kernel_size=3, stride=2)
        x = functional.relu(
            functional.conv2d(
                x,
                weights[f"features.{index}.weight"],
                weights[f"features.{index}.bias"],
                stride=stride,
                padding=padding,
            )
        )
        result.append(x)
    return result
