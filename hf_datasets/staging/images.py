"""Reading foreign pictures with named errors; writing pixels only."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from hf_datasets.staging.base import StagingError


def read_picture(path: Path, content: bytes | None = None) -> NDArray[np.uint8]:
    """Decode a picture to uint8 pixels, grey (2-D) or RGB (3-D); deeper grey is scaled by its full range.

    Raises
    ------
    StagingError
        Not a picture, cut short, or absurdly large.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content) if content is not None else path) as image:
                return _to_uint8(image)
    except FileNotFoundError:
        raise StagingError(f"{path}: expected this picture, found no such file") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombWarning,
            Image.DecompressionBombError) as error:  # fmt: skip
        raise StagingError(f"{path}: not a complete picture ({' '.join(str(error).split())[:120]})") from None


def _to_uint8(image: Image.Image) -> NDArray[np.uint8]:
    if image.mode.startswith("I"):
        deep = np.asarray(image, dtype=np.float64)
        return np.asarray(np.clip(deep / 257, 0, 255), dtype=np.uint8)
    return np.asarray(image.convert("L" if image.mode in ("L", "1", "LA") else "RGB"), dtype=np.uint8)


def grey(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The pixels as one channel."""
    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(pixels).convert("L"), dtype=np.uint8)


def rgb(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The pixels as three channels."""
    return pixels if pixels.ndim == 3 else np.stack([pixels] * 3, axis=-1)


def write_png(path: Path, pixels: NDArray[np.uint8]) -> None:
    """Write pixels as PNG without any text, profile or time."""
    Image.fromarray(pixels).save(path, format="PNG")


def write_jpeg(path: Path, pixels: NDArray[np.uint8], quality: int = 95) -> None:
    """Write pixels as JPEG without EXIF, profile or comment."""
    Image.fromarray(pixels).save(path, format="JPEG", quality=quality)
