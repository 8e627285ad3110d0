"""What keeps a whole sweep from going on, and goes away by itself: a full disk, a container engine that is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hf_datasets.failures import Cause
from runner.cell import require_room
from runner.errors import NoRoom, words_of
from runner.sandbox import BackendName, SandboxUnavailable, choose_backend

LOOK_SECONDS = 1.0
ROOM_MB = 300
"""More than a run asks for (``require_room``), so that none starts at the very edge."""


class Hurdles:
    """Looks at most once a second; nothing starts while :meth:`standing` has something to say.

    Parameters
    ----------
    runs : Path
        Folder whose disk must have room.
    sandbox : BackendName, optional
        The sandbox that must be to be had on this machine; None where runs happen on others.
    """

    def __init__(
        self, runs: Path, sandbox: BackendName | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runs = runs
        self._sandbox = sandbox
        self._clock = clock
        self._engine_gone = False
        self._looked = -LOOK_SECONDS
        self._found: str | None = None

    def noted(self, cause: Cause) -> None:
        """An attempt met a hurdle: look again before anything else starts."""
        self._engine_gone |= cause is Cause.ENGINE_GONE and self._sandbox is not None
        self._looked = self._clock() - LOOK_SECONDS

    def standing(self) -> str | None:
        """The hurdle in words; None when there is none."""
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._found = self._room() or self._engine()
        return self._found

    def _room(self) -> str | None:
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            require_room(self._runs, ROOM_MB)
        except NoRoom as error:
            return str(error)
        except OSError as error:
            return words_of(error)
        return None

    def _engine(self) -> str | None:
        if not self._engine_gone or self._sandbox is None:
            return None
        try:
            choose_backend(self._sandbox)
        except SandboxUnavailable as error:
            return str(error)
        self._engine_gone = False
        return None
