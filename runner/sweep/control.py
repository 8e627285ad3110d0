"""What is wanted of a sweep from another terminal, and who drives it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from evaluator.files import write_atomic
from runner.cell import held
from runner.errors import Busy
from runner.sweep.folder import SweepFolder

Wish = Literal["run", "pause", "cancel"]


def wished(folder: SweepFolder) -> Wish:
    """What was wished for last; ``run`` where nobody wished for anything."""
    try:
        wish = json.loads(folder.control.read_text())["want"]
    except (OSError, ValueError, KeyError, TypeError):
        return "run"
    return wish if wish in ("pause", "cancel") else "run"


def wish(folder: SweepFolder, want: Wish) -> None:
    """Tell whoever drives the sweep, now or later, what to do."""
    line = {
        "want": want,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": f"{os.getpid()} on {platform.node()}",
    }
    write_atomic(folder.control, json.dumps(line) + "\n")


@contextlib.contextmanager
def driving(folder: SweepFolder) -> Iterator[None]:
    """Be the one process that drives the sweep; the right goes with the process, however that ends.

    Raises
    ------
    Busy
        Another living process drives it; says which, where and since when.
    """
    folder.root.mkdir(parents=True, exist_ok=True)
    note = f"{os.getpid()} on {platform.node()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    with held(folder.driver_lock, note) as holder:
        if holder is not None:
            raise Busy(
                f"{folder.root} is being driven by process {holder}; look with 'sweep status', "
                "or stop that one with 'sweep cancel' first"
            )
        yield


def driver_of(folder: SweepFolder) -> str | None:
    """Who drives the sweep just now, in words."""
    if not folder.driver_lock.exists():
        return None
    try:
        with held(folder.driver_lock) as holder:
            return holder
    except OSError:
        return None
