"""What every upstream family gives to staging, and the words in which a source is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class StagingError(Exception):
    """A source can't be staged: one line with what was expected, what was found and what to do."""


@dataclass(frozen=True)
class CaseFolders:
    """Where one case is written. ``seed`` drives whatever is random about the case."""

    id: str
    public: Path
    private: Path
    seed: int


class RawCase(Protocol):
    """One case of the source that passed the checks made on names alone."""

    @property
    def origin(self) -> str:
        """The upstream's id of the case; unique within the source."""

    @property
    def files(self) -> Sequence[Path]:
        """Every file of the source that the case is made from."""

    @property
    def image(self) -> str:
        """Name by which a phantom's note would list the case's image as real; may be empty."""

    def write(self, to: CaseFolders) -> None:
        """Check the content and write the staged files.

        Raises
        ------
        StagingError
            The content is damaged or contradicts itself.
        """


class Family(Protocol):
    """A module of this package: knows one upstream's raw layout.

    A module that serves several tasks offers ``for_task(task_id) -> Family`` instead.
    """

    NOTES: dict[str, str]
    """Rules applied to the data, as provenance entries."""

    def find(self, source: Path) -> Sequence[RawCase]:
        """The cases of a raw folder, in upstream's order.

        Raises
        ------
        StagingError
            The layout is not the upstream's.
        """


def folder_at(source: Path, *candidates: str) -> Path:
    """The first of the candidate subfolders that exists; an error that names them all if none does."""
    for name in candidates:
        if (source / name).is_dir():
            return source / name
    wanted = " or ".join(f"{name}/" for name in candidates)
    raise StagingError(f"{source}: expected {wanted}, found {listing(source)}")


def listing(folder: Path, most: int = 5) -> str:
    """What lies in a folder, shortly, for a message."""
    if not folder.is_dir():
        return "no such folder"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    return some(names, most) if names else "an empty folder"


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few of the names, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more


def refuse_strangers(folder: Path, found: Iterable[str], allowed: Iterable[str]) -> None:
    """Refuse a folder that holds something the upstream never put there (hidden files aside)."""
    strange = {name for name in found if not name.startswith(".")} - set(allowed)
    if strange:
        raise StagingError(
            f"{folder}: unexpected {some(strange)}; remove it or stage from a clean copy of the upstream"
        )
