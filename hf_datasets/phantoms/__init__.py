"""Small data in the upstreams' own raw layouts, generated from a seed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from hf_datasets.families import family_of

if TYPE_CHECKING:
    from hf_datasets.phantoms.marker import RealImage


class PhantomError(Exception):
    """The phantom cannot be written; the message says why and what to do."""


class Generator(Protocol):
    """A module of this package: writes one upstream's raw layout into an empty folder.

    A module that serves several tasks offers ``for_task(task_id) -> Generator`` instead.
    """

    def generate(self, out: Path, seed: int) -> dict[str, RealImage]:
        """Write the files; return the real images used (upstream-style id -> ``RealImage``), if any."""


def make_phantom(task_id: str, out: Path, seed: int = 0) -> Path:
    """Write the raw phantom of a task into the folder ``out``.

    The same seed gives the same bytes (with the same versions of numpy, scipy, Pillow and nibabel). A
    folder that already holds this phantom is left as it is.

    Raises
    ------
    PhantomError
        ``out`` exists and is something else.
    hf_datasets.families.UnknownTask
        The task has no phantom.
    """
    from hf_datasets.folders import built_beside, locked
    from hf_datasets.phantoms.marker import Marker, read_marker, write_marker

    module = import_module(f"{__name__}.{family_of(task_id)}")
    generator = cast(Generator, module.for_task(task_id) if hasattr(module, "for_task") else module)
    out = Path(out)
    with locked(out.parent / f".{out.name}.lock"):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            found = read_marker(out) if out.is_dir() else None
            if found is not None and (found.task, found.seed) == (task_id, seed):
                return out
            raise PhantomError(
                f"{out} is not empty: expected a new folder or the phantom of {task_id} with seed {seed}; "
                "choose another --out or remove it"
            )
        with built_beside(out, flush=False) as folder:
            real = generator.generate(folder, seed)
            write_marker(folder, Marker(task=task_id, seed=seed, real=real))
    return out
