"""The manifest of a staged task: its case list is the denominator of every score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from tasks.schema import Redistribution, Release, Strict, first_problem

MANIFEST_NAME = "manifest.json"


class FileEntry(Strict):
    """A staged file, path relative to the side (``public`` or ``private``) it lies in."""

    path: str
    sha256: str
    bytes: int
    shape: tuple[int, ...] | None = None


class Case(Strict):
    """One case. ``origin`` is the upstream id and is never shown to an agent."""

    id: str
    public: tuple[FileEntry, ...]
    private: tuple[FileEntry, ...]
    origin: str
    real: bool = Field(default=False, description="True where the image is a real one shipped by a package")


class Manifest(Strict):
    """What was staged, from where, and under which terms. Never mounted into the agent's sandbox."""

    schema_version: Literal[1] = 1
    task: str
    release: Release
    seed: int
    source: str
    license: str
    redistribution: Redistribution
    generator: str
    provenance: dict[str, str] = Field(default={})
    cases: tuple[Case, ...]

    def case_ids(self) -> list[str]:
        return [case.id for case in self.cases]


class ManifestError(Exception):
    """The staged data cannot be used; the message says what was expected, what was found and what to do."""


def load_manifest(folder: Path) -> Manifest:
    """Read ``folder/manifest.json``; errors as in :func:`read_manifest`."""
    return read_manifest(folder / MANIFEST_NAME)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest under any name.

    Raises
    ------
    ManifestError
        The file is absent, not JSON or not a manifest.
    """
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ManifestError(
            f"no staged data: expected {path}; "
            "run 'python -m hf_datasets stage' or 'python -m hf_datasets phantom' first"
        ) from None
    except ValidationError as error:
        raise ManifestError(
            f"{path} is not a manifest: {first_problem(error)}; stage the task again"
        ) from None


def dump_manifest(manifest: Manifest) -> str:
    """The manifest as canonical JSON text (sorted keys, one trailing newline)."""
    return json.dumps(manifest.model_dump(mode="json"), sort_keys=True, indent=1, ensure_ascii=False) + "\n"
