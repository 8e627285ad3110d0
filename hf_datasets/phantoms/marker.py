"""The note a phantom leaves in its raw folder, so that it can never be taken for the upstream's data."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from tasks.schema import Strict

MARKER_NAME = "phantom.json"
GENERATOR = "automedbench-phantom/2"
"""To be counted up when a generator draws anything else: standing phantoms are then made again."""


class RealImage(Strict):
    """A real image that an installed package ships and a phantom carries along."""

    file: str
    package: str
    version: str
    member: str
    sha256: str
    license: str
    note: str = ""


class Marker(Strict):
    """What made the folder."""

    generator: str = GENERATOR
    task: str
    seed: int
    real: dict[str, RealImage] = Field(
        default={}, description="Name of the picture in the raw folder -> its origin"
    )


class MarkerError(Exception):
    """The note is there but cannot be read."""


def read_marker(folder: Path) -> Marker | None:
    """The note in ``folder``, or ``None`` where there is none.

    Raises
    ------
    MarkerError
        The file is not a note of this project.
    """
    path = folder / MARKER_NAME
    if not path.is_file():
        return None
    try:
        return Marker.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise MarkerError(
            f"{path} is not a phantom's note: {error.errors()[0]['msg']}; generate it again"
        ) from None


def write_marker(folder: Path, marker: Marker) -> None:
    """Write the note as canonical JSON."""
    (folder / MARKER_NAME).write_text(marker.model_dump_json(indent=1) + "\n", encoding="utf-8")
