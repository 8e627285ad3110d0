"""What workers on a Ray cluster do in a test instead of running a cell."""

from __future__ import annotations

import time

from runner.sweep.engine import AttemptEnd, Job


def wait_to_be_broken_off(job: Job) -> AttemptEnd:
    """Says in ``job.options.data`` when it began and when it was broken off."""
    (job.options.data / "began").touch()
    try:
        while True:
            time.sleep(0.05)
    finally:
        (job.options.data / "broken off").touch()
