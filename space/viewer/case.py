"""What there is to show of one case: the given input, what each run handed in, and the reference where it may be seen.

What a run handed in is hostile: it is read by the evaluator's readers alone, held against the size of the given input
before its body is read, and a damaged one is a sentence on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from evaluator.pictures import Window, window_for
from evaluator.readers.errors import ReadError
from evaluator.readers.nifti import Volume
from evaluator.tracks.base import CaseFault, CaseFiles, ReferenceMissing
from space.viewer.cache import ByteCache, size_of
from space.viewer.read import TooLarge, read_given, read_output, read_output_alone, read_reference
from tasks.manifest import Manifest
from tasks.schema import ImageOutput, MaskOutput, Task

MAX_VOXELS = 64_000_000
"""Largest grid that is shown live; of a larger one there are the run's own previews."""

REFERENCE = "reference"
_CACHE: ByteCache = ByteCache(512 << 20)


@dataclass(frozen=True)
class Staged:
    """Staged data that may be shown: the folder that holds ``public`` and ``private``, and its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def private(self) -> Path:
        return self.folder / "private"


@dataclass(frozen=True)
class Side:
    """One column of the comparison. Without ``output`` there is a ``fault``, one sentence.

    ``facts``: figures of this case under the picture, name and value.
    """

    name: str
    output: Any = None
    fault: str = ""
    facts: Sequence[tuple[str, str]] = ()
    is_reference: bool = False


@dataclass(frozen=True)
class CaseView:
    """One case, ready to be drawn. ``given`` is the input (None without staged data)."""

    task: Task
    case_id: str
    given: Any
    sides: tuple[Side, ...]
    note: str = ""
    window: Window | None = None
    """Of the input, where it is a volume: the range of grey values that suits it."""

    @property
    def runs(self) -> tuple[Side, ...]:
        return tuple(side for side in self.sides if not side.is_reference)

    @property
    def reference(self) -> Side | None:
        return next((side for side in self.sides if side.is_reference and side.output is not None), None)

    @property
    def drawable(self) -> tuple[Side, ...]:
        return tuple(side for side in self.sides if side.output is not None)


@dataclass(frozen=True)
class Handed:
    """A run's side before it is read. ``submission`` None: the run folder holds no copy of what was handed in."""

    name: str
    submission: Path | None
    facts: Sequence[tuple[str, str]] = ()
    fault: str = ""
    """What the evaluator said of this case, where it did not score it."""


def load_case(task: Task, case_id: str, handed: Sequence[Handed], staged: Staged | None) -> CaseView:
    """Read one case of several runs. Whatever cannot be read or is too large becomes a side's ``fault``."""
    given, note, window = None, "", None
    if staged is not None:
        public = staged.public / case_id
        try:
            given = _cached(("given", task.id, public), lambda: read_given(task, public, MAX_VOXELS))
            if isinstance(given, Volume):
                words = f"{task.title} {task.modality}"
                window = _cached(("window", task.id, public), lambda: window_for(given.data, words))
        except (ReferenceMissing, ReadError, TooLarge) as error:
            note, staged = f"The input cannot be shown: {error}", None
    sides = [_side(task, case_id, one, staged, given) for one in handed]
    if staged is not None:
        sides.append(_reference(task, case_id, staged))
    return CaseView(task, case_id, given, tuple(sides), note, window)


def _side(task: Task, case_id: str, handed: Handed, staged: Staged | None, given: Any) -> Side:
    if handed.submission is None:
        return Side(
            handed.name, fault=handed.fault or "no copy of what this run handed in", facts=handed.facts
        )
    submission = handed.submission
    try:
        output = _cached(
            ("output", task.id, submission / case_id, _stamp(task, submission / case_id), staged is None),
            lambda: _read(task, case_id, submission, staged, given),
        )
    except (CaseFault, ReadError) as fault:
        return Side(handed.name, fault=handed.fault or fault.message, facts=handed.facts)
    except (ReferenceMissing, TooLarge, MemoryError) as error:
        return Side(handed.name, fault=str(error) or "too large to be shown here", facts=handed.facts)
    return Side(handed.name, output, facts=handed.facts)


def _read(task: Task, case_id: str, submission: Path, staged: Staged | None, given: Any) -> Any:
    case = CaseFiles(case_id, submission, staged.public if staged else None, None)
    if staged is None:
        return read_output_alone(task, case, MAX_VOXELS)
    return read_output(task, case, given)


def _reference(task: Task, case_id: str, staged: Staged) -> Side:
    folder = staged.private / case_id
    try:
        output = _cached((REFERENCE, task.id, folder), lambda: read_reference(task, folder))
    except (ReadError, OSError, ValueError, KeyError) as error:
        return Side(REFERENCE, fault=f"the staged reference cannot be read: {error}", is_reference=True)
    return Side(REFERENCE, output, is_reference=True)


def _cached(key: tuple[object, ...], make: Callable[[], Any]) -> Any:
    return _CACHE.get(key, make, size_of)


def _stamp(task: Task, folder: Path) -> tuple[tuple[int, int], ...]:
    """When the files were last changed; a file that cannot be looked at is left to the reader."""
    stamps = []
    for name in task.output.filenames:
        try:
            info = (folder / name).lstat()
        except OSError:
            stamps.append((0, 0))
        else:
            stamps.append((info.st_mtime_ns, info.st_size))
    return tuple(stamps)


def grid_shape(view: CaseView) -> tuple[int, int, int] | None:
    """Voxels along x, y, z of what is shown; None of anything but volumes."""
    if not isinstance(view.task.output, MaskOutput | ImageOutput):
        return None
    volumes = [view.given, *(side.output for side in view.drawable)]
    for volume in volumes:
        first = next(iter(volume.values()), None) if isinstance(volume, dict) else volume
        data = getattr(first, "data", None)
        if data is not None and getattr(data, "ndim", 0) == 3 and prod(data.shape) > 0:
            x, y, z = data.shape
            return int(x), int(y), int(z)
    return None
