"""Projection films out of DICOM files: grey, bright where the body is dense, eight bits."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import StagingError

FILM_NOTE = (
    "stored values stretched from least to greatest to 0..255, MONOCHROME1 turned over first; size unchanged"
)
CODECS = "pip install pylibjpeg pylibjpeg-libjpeg pylibjpeg-openjpeg"


def read_film(path: Path) -> NDArray[np.uint8]:
    """The pixels of one grey film.

    Raises
    ------
    StagingError
        Not a DICOM file, cut short, compressed in a way that no installed codec reads, in colour, in several
        frames, or of one grey value.
    """
    import pydicom

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = pydicom.dcmread(path)
            dark_bone = str(image.get("PhotometricInterpretation", "")) == "MONOCHROME1"
            compressed = image.file_meta.TransferSyntaxUID.is_compressed
    except Exception as error:  # pydicom raises what a broken field happens to raise
        raise StagingError(f"{path}: not a DICOM file ({type(error).__name__}); download it again") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stored = np.asarray(image.pixel_array, dtype=np.float64)
    except Exception as error:  # as above, and every codec has errors of its own
        advice = f"it is compressed: {CODECS}, or download it again" if compressed else "download it again"
        reason = " ".join(str(error).split())[:120]
        raise StagingError(f"{path}: its pixels cannot be read ({reason}); {advice}") from None
    if stored.ndim != 2 or stored.min() == stored.max():
        raise StagingError(f"{path}: expected one grey film, found shape {stored.shape} or one grey value")
    share = (stored - stored.min()) / (stored.max() - stored.min())
    return np.asarray(np.rint(255 * (1 - share if dark_bone else share)), dtype=np.uint8)
