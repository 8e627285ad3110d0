"""What the classification upstreams have in common: a picture on one side, the name of its class on the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import CaseFolders
from hf_datasets.staging.images import read_picture, rgb, write_jpeg

IMAGE_NOTE = "8-bit RGB JPEG, quality 95, upstream's size"


@dataclass(frozen=True)
class LabelledFile:
    """A picture file and its class; ``tables`` are the files that say so."""

    origin: str
    picture: Path
    label: str
    tables: tuple[Path, ...] = ()
    image: str = ""

    @property
    def files(self) -> Sequence[Path]:
        return (self.picture, *self.tables)

    def write(self, to: CaseFolders) -> None:
        write_labelled(to, read_picture(self.picture), self.label)


def write_labelled(to: CaseFolders, pixels: NDArray[np.uint8], label: str) -> None:
    """Write ``image.jpg`` and, in private, ``label.json``."""
    write_jpeg(to.public / "image.jpg", rgb(pixels))
    (to.private / "label.json").write_text(json.dumps({"label": label}) + "\n", encoding="utf-8")
