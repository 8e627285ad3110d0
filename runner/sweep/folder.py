"""Where a sweep's files lie.

sweeps/<name>/
  lock.json          what was locked last: plan, settings, digests (``lock.Lock``)
  locks/<sha12>.json every lock there ever was, by the first 12 digits of its file's SHA-256
  runs/              run folders, as everywhere: <task>/<tier>/<agent>/r<NN>[.attemptN]
  attempts.jsonl     the ledger: every attempt's start and end, append-only (``ledger.py``)
  control.json       what is wanted from another terminal: run, pause, cancel (``control.py``)
  live.json          what a living driver last said of itself and of the running cells (``live.py``)
  report/            what ``sweep report`` writes
  .driver.lock       held by the process that drives the sweep
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SweepFolder:
    """Paths of one sweep."""

    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "lock.json"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @property
    def stale(self) -> Path:
        return self.root / "stale.json"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def ledger(self) -> Path:
        return self.root / "attempts.jsonl"

    @property
    def control(self) -> Path:
        return self.root / "control.json"

    @property
    def live(self) -> Path:
        return self.root / "live.json"

    @property
    def report(self) -> Path:
        return self.root / "report"

    @property
    def driver_lock(self) -> Path:
        return self.root / ".driver.lock"
