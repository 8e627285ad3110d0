"""Whole GPUs, leased by device id: never two cells on one device, whichever sweep or user they belong to.

A lease is a lock on a file of the machine, held by the worker process that uses the device, so that the kernel lets go
of it however that process ends. What the process left running on the device is waited for before it is used again.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runner.cell import held
from runner.errors import EnvironmentProblem

PATIENCE = 60.0


def lease_folder() -> Path:
    """Where the machine's leases lie, for all users."""
    folder = Path(tempfile.gettempdir()) / "automedbench-gpus"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(PermissionError):
        folder.chmod(0o1777)
    return folder


class Leases(contextlib.ExitStack):
    """The devices that this process holds; let go of when the stack is closed, or the process ends."""

    def take(
        self,
        number: int,
        devices: Sequence[str],
        busy: Callable[[str], bool] | None = None,
        patience: float = PATIENCE,
    ) -> tuple[str, ...]:
        """Lease ``number`` of the devices.

        Raises
        ------
        EnvironmentProblem
            There are not so many that nobody holds and that become idle within ``patience`` seconds.
        """
        is_busy = busy or _has_processes
        taken: list[str] = []
        for uuid in devices:
            if len(taken) == number:
                break
            if self._take_one(uuid, is_busy, patience):
                taken.append(uuid)
        if len(taken) < number:
            raise EnvironmentProblem(
                f"{number} idle GPUs wanted, {len(taken)} of {len(devices)} could be leased; "
                "end what runs on the others"
            )
        return tuple(taken)

    def _take_one(self, uuid: str, busy: Callable[[str], bool], patience: float) -> bool:
        with contextlib.ExitStack() as trying:
            if trying.enter_context(held(lease_folder() / f"{uuid}.lock")) is not None:
                return False
            give_up = time.monotonic() + patience
            while busy(uuid):
                if time.monotonic() > give_up:
                    return False
                time.sleep(0.5)
            self.enter_context(trying.pop_all())
        return True


def _has_processes(uuid: str) -> bool:
    """Whether the driver of the device lists a computing process on it."""
    listing = subprocess.run(
        ["nvidia-smi", "--query-compute-apps=gpu_uuid", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return listing.returncode == 0 and uuid in listing.stdout
