"""What a Ray worker does with a job: a place of its own, the one pure function, and the run folder sent back.

Nothing is shared with the driver's machine but the staged data, which every machine has of its own.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.cell import held
from runner.execute import Options
from runner.provenance import gpus
from runner.sweep.carry import packed, remove, unpack
from runner.sweep.engine import AttemptEnd, Job
from runner.sweep.leases import Leases

DATA_VARIABLE = "AUTOMEDBENCH_DATA"
"""Where staged data lie on a machine, when not where the driver has them."""
SCRATCH_VARIABLE = "AUTOMEDBENCH_SCRATCH"


@dataclass(frozen=True)
class Parcel:
    """What a worker gets beside the job.

    Attributes
    ----------
    attempts : int
        Attempts of this cell that lie at the driver already.
    files : dict
        Option -> content of the file that it names, such as ``agents_file``.
    work : str
        ``module:function`` that does a job.
    """

    attempts: int
    files: dict[str, bytes]
    work: str


def attempt(
    job: Job, parcel: Parcel, folder: Iterable[bytes] | None, devices: Iterable[object]
) -> Iterator[AttemptEnd | bytes]:
    """Do one attempt: yields how it ended, then the run folder in pieces, if there is one.

    Parameters
    ----------
    folder : iterable of bytes, optional
        The run folder that the job goes on with, as ``carry.packed`` gave it.
    devices : iterable
        Ray's ids of the GPUs that are this task's.
    """
    module, _, name = parcel.work.partition(":")
    run_job: Callable[[Job], AttemptEnd] = getattr(importlib.import_module(module), name)
    with scratch() as place, Leases() as leases:
        uuids = [_uuid(device) for device in devices]
        mine = leases.take(len(uuids), uuids) if uuids else ()
        options = replace(_options(job.options, parcel, place), gpus=mine)
        here = replace(job, options=options)
        there = here.cell.folder(options.runs)
        if folder is not None:
            unpack(folder, there)
        elif parcel.attempts:
            # So that this attempt gets the number that it will have at the driver.
            there.with_name(f"{there.name}.attempt{parcel.attempts}").mkdir(parents=True)
        yield run_job(here)
        if there.is_dir():
            yield from packed(there)


def _options(options: Options, parcel: Parcel, place: Path) -> Options:
    """The driver's options with this machine's places in them."""
    names: dict[str, Any] = {}
    for option, content in parcel.files.items():
        names[option] = place / f"{option}.yaml"
        names[option].write_bytes(content)
    data = Path(os.environ.get(DATA_VARIABLE) or options.data)
    return replace(options, runs=place / "runs", data=data, **names)


def _uuid(device: object) -> str:
    """Ray counts devices, everything else here names them."""
    text = str(device)
    return gpus()[int(text)].uuid if text.isdigit() else text


def scratch_root() -> Path:
    """Where this user's workers keep runs until they are sent back."""
    given = os.environ.get(SCRATCH_VARIABLE)
    return Path(given) if given else Path(tempfile.gettempdir()) / f"automedbench-ray-{os.geteuid()}"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this attempt's own, gone afterwards; what killed workers left behind goes first."""
    root = scratch_root()
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    for place in root.iterdir():
        if place.is_dir():
            with held(_lock_of(place)) as holder:
                if holder is None:
                    remove(place)
    place = root / uuid.uuid4().hex
    with ExitStack() as stack:
        stack.enter_context(held(_lock_of(place)))
        place.mkdir()
        stack.callback(remove, place)
        yield place


def _lock_of(place: Path) -> Path:
    return place.with_name(f".{place.name}.lock")
