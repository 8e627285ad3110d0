"""PNG, JPEG and TIFF pictures from people we do not trust, through Pillow."""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from evaluator.readers.errors import ReadError
from evaluator.untrusted import MEGABYTE, open_regular

MAX_FILE_BYTES = 256 * MEGABYTE
MAX_PIXELS = 40_000_000

_FORMATS = ("PNG", "JPEG", "TIFF")
_KEPT_MODES = {"L", "RGB", "I;16", "I;16B", "I", "F"}


def read_image(path: Path, *, max_pixels: int = MAX_PIXELS) -> NDArray[Any]:
    """Read one picture.

    Parameters
    ----------
    path : Path
    max_pixels : int
        Cap on width times height as the header claims them.

    Returns
    -------
    array
        (height, width) uint8, uint16, int32 or float32 for a grey picture, (height, width, 3) uint8 for a
        coloured one. Palettes become colours, transparency is dropped.

    Raises
    ------
    ReadError
        Codes: those of `open_regular`, ``bad_format``, ``too_large``, ``animated``, ``truncated``,
        ``non_finite``.
    """
    with open_regular(path, MAX_FILE_BYTES) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(file, formats=_FORMATS) as image:
                width, height = image.size
                if width * height > max_pixels:
                    raise ReadError(
                        "too_large",
                        f"{path.name} is {width} x {height}, at most {max_pixels} pixels are accepted",
                    )
                if _has_second_frame(image):
                    raise ReadError("animated", f"{path.name} has several frames, expected one picture")
                image.seek(0)
                image.load()
                pixels = np.array(_plain(image))
        except (Image.DecompressionBombError, MemoryError):
            raise ReadError("too_large", f"{path.name} claims more than {max_pixels} pixels") from None
        except UnidentifiedImageError:
            raise ReadError("bad_format", f"{path.name} is not a PNG, JPEG or TIFF picture") from None
        except ReadError:
            raise
        except (OSError, EOFError) as error:
            raise ReadError("truncated", f"{path.name} does not decode: {error}") from None
        except (
            ValueError,
            SyntaxError,
            TypeError,
            KeyError,
            IndexError,
            struct.error,
            zlib.error,
            RuntimeError,
        ) as error:
            raise ReadError("bad_format", f"{path.name} does not decode: {type(error).__name__}") from None
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        raise ReadError("non_finite", f"{path.name} contains NaN or infinity")
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


def _has_second_frame(image: Image.Image) -> bool:
    # Asking for the number of frames would walk a chain of pages of any length.
    try:
        image.seek(1)
    except EOFError:
        return False
    return True


def _plain(image: Image.Image) -> Image.Image:
    if image.mode in _KEPT_MODES:
        return image
    return image.convert("L" if image.mode in {"1", "LA", "La"} else "RGB")
