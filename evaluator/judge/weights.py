"""Which files could be the weights of a model, by name and size alone."""

from __future__ import annotations

from pathlib import PurePosixPath

WEIGHT_SUFFIXES = frozenset(
    (".pt", ".pth", ".ckpt", ".safetensors", ".onnx", ".h5", ".keras", ".gguf", ".bin", ".tflite", ".pb")
)
MIN_WEIGHT_BYTES = 1 << 20
_NAMELESS = "blobs"
"""Download caches keep files under their digest in a folder of this name."""


def is_weight_like(path: str, size: int) -> bool:
    """Whether a file of ``size`` bytes at ``path`` in the workspace could hold a model's weights."""
    if size < MIN_WEIGHT_BYTES:
        return False
    place = PurePosixPath(path)
    return place.suffix.lower() in WEIGHT_SUFFIXES or place.parent.name == _NAMELESS
