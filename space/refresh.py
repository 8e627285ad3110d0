"""Read the results in the background; keep the last good ones when the source fails."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from space.snapshot import Snapshot
from space.source import Source, SourceError

_LOG = logging.getLogger(__name__)


class Refresher:
    """The newest snapshot of a source, read again every ``seconds`` by one thread."""

    def __init__(self, source: Source, seconds: float = 60.0) -> None:
        """Read once. Raises ``SourceError`` where there is nothing to read."""
        self._source = source
        self._seconds = seconds
        self._snapshot = source.read().prepare()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_reading, name="results", daemon=True)
        self._thread.start()

    def __call__(self) -> Snapshot:
        return self._snapshot

    def refresh(self) -> Snapshot:
        """Read now. Whatever the source does, the pages keep something to show and say how old it is."""
        try:
            self._snapshot = self._source.read().prepare()
        except SourceError as error:
            self._snapshot = replace(self._snapshot, failure=str(error))
        except (
            Exception
        ) as error:  # a source that breaks in a new way must not end the only thread that reads it
            _LOG.exception("reading the results failed")
            self._snapshot = replace(self._snapshot, failure=f"{type(error).__name__}: {error}")
        return self._snapshot

    def close(self) -> None:
        self._stop.set()

    def _keep_reading(self) -> None:
        self._warm()
        while not self._stop.wait(self._seconds):
            self.refresh()
            self._warm()

    def _warm(self) -> None:
        try:
            self._snapshot.warm()
        except Exception:  # what nobody asked for yet must not end the only thread that reads
            _LOG.exception("preparing tables failed")
