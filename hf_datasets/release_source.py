"""One part of a release: a folder, or a dataset repository at one commit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hf_datasets.release_form import ReleaseError

if TYPE_CHECKING:
    from hf_datasets.hub import Hub

_REPO = re.compile(r"[\w.-]+/[\w.-]+")


class Part(Protocol):
    """Where files of a release come from. ``revision`` is the commit; None for a folder."""

    @property
    def name(self) -> str: ...
    @property
    def revision(self) -> str | None: ...

    def file(self, path: str, most_bytes: int) -> Path:
        """A file of the part on this disk. Raises ReleaseError."""

    def forget(self, path: str) -> None:
        """The file is not needed any more."""


def open_part(name: str, revision: str | None, scratch: Path) -> Part:
    """The part of that name: a folder where there is one, else a repository on the Hub.

    Raises
    ------
    ReleaseError
        There is neither, or the repository cannot be read.
    """
    if Path(name).is_dir():
        if revision is not None:
            raise ReleaseError(f"{name} is a folder and has no revisions; leave --revision out")
        return FolderPart(name)
    if not _REPO.fullmatch(name):
        raise ReleaseError(f"{name}: expected a folder or a dataset repository ORG/NAME, found neither")
    return HubPart.at(name, revision, scratch)


class FolderPart:
    """A release on this disk."""

    revision = None

    def __init__(self, name: str) -> None:
        self.name = name

    def file(self, path: str, most_bytes: int) -> Path:
        del most_bytes
        found = Path(self.name) / path
        if not found.is_file():
            raise ReleaseError(f"{self.name}: expected {path}, found no such file")
        return found

    def forget(self, path: str) -> None:
        """A folder's files stay."""


class HubPart:
    """A dataset repository at one commit; files are fetched when they are asked for."""

    def __init__(self, hub: Hub, revision: str, scratch: Path) -> None:
        self.name = hub.repo
        self.revision = revision
        self._hub = hub
        self._scratch = scratch

    @classmethod
    def at(cls, name: str, revision: str | None, scratch: Path) -> HubPart:
        """The repository at the commit that ``revision`` (its newest when None) stands for now."""
        from hf_datasets.hub import Hub, HubError

        hub = Hub(name)
        try:
            return cls(hub, hub.head((), revision).sha, scratch)
        except HubError as error:
            raise ReleaseError(str(error)) from None

    def file(self, path: str, most_bytes: int) -> Path:
        from hf_datasets.hub import HubError

        kept = self._scratch / path
        if kept.is_file():
            return kept
        try:
            found = self._hub.download(path, self.revision, self._scratch)
        except HubError as error:
            raise ReleaseError(str(error)) from None
        if found.stat().st_size > most_bytes:
            found.unlink()
            raise ReleaseError(
                f"{self.name}: {path} is larger than the {most_bytes} bytes that were expected"
            )
        return found

    def forget(self, path: str) -> None:
        (self._scratch / path).unlink(missing_ok=True)
