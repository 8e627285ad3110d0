"""``release.json``: what a release holds, with the digest of everything, and what of it lies in a data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from tasks.names import Redistribution, Release, Tier, Track
from tasks.schema import Strict, first_problem

RELEASE_NAME = "release.json"
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
TaskId = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
ArchivePath = Annotated[str, Field(pattern=r"^[a-z]+(/[a-z0-9.-]+){1,2}\.tar(\.gz)?$", max_length=200)]


class ReleaseError(Exception):
    """A release cannot be built, had or believed; one line that says what to do."""


class Archive(Strict):
    """One archive of a release, by its path in it."""

    path: ArchivePath
    sha256: Digest
    bytes: Annotated[int, Field(ge=0)]


class Staged(Strict):
    """The staged data of a task in a release: inputs here, references in the other part."""

    manifest_sha256: Digest
    cases: Annotated[int, Field(ge=1)]
    inputs: Archive
    references: Archive


class TaskEntry(Strict):
    """One task of a release.

    ``data`` is None where its terms do not let the data out; ``how`` then says how to get the same cases, and
    ``manifest_sha256`` is that of their manifest, where the release was built beside them.
    """

    id: TaskId
    track: Track
    tiers: tuple[Tier, ...]
    task_sha256: Digest
    license: str
    redistribution: Redistribution
    package: Archive
    data: Staged | None = None
    manifest_sha256: Digest | None = None
    how: str


class ReleaseForm(Strict):
    """``release.json`` at the root of a release, the same in both of its parts."""

    schema_version: Literal[1] = 1
    release: Release
    canary: str
    cells: Annotated[int, Field(ge=1)]
    tasks: tuple[TaskEntry, ...]

    def entry(self, task_id: str) -> TaskEntry | None:
        return next((entry for entry in self.tasks if entry.id == task_id), None)


class Pinned(Strict):
    """What a release says of one task: digests of its files, and of the data's manifest where it knows them."""

    task_sha256: Digest
    manifest_sha256: Digest | None


class Downloaded(Strict):
    """``release.json`` in a data folder: which release lies there, from where, at which commit.

    ``revision`` is the commit of the dataset repository; where it came from a folder, ``sha256:`` and the digest of
    the release's ``release.json``.
    """

    schema_version: Literal[1] = 1
    release: Release
    source: str
    references: str
    revision: str
    references_revision: str | None
    form_sha256: Digest
    tasks: dict[TaskId, Pinned]


Form = TypeVar("Form", bound=Strict)


def read_release_file(path: Path, form: type[Form]) -> Form:
    """A ``release.json`` in its form.

    Raises
    ------
    ReleaseError
        It is absent or breaks the form; names the field.
    """
    try:
        return form.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ReleaseError(f"{path}: expected a release, found none ({error.strerror})") from None
    except ValidationError as error:
        raise ReleaseError(
            f"{path} is not of a form that this version reads: {first_problem(error)}"
        ) from None
