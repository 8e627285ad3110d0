"""What workers of the engine's tests do instead of running cells; the task's name says what."""

from __future__ import annotations

import os
import time

from hf_datasets.failures import Cause
from runner.sweep.engine import AttemptEnd, Job


def work(job: Job) -> AttemptEnd:
    what = job.cell.task
    if what == "die":
        os._exit(7)
    if what == "hang":
        time.sleep(600)
    if what == "slow":
        time.sleep(0.5)
    return AttemptEnd(
        job.key, job.attempt, Cause.SUBMITTED, ",".join(job.options.gpus or ()), host=str(os.getpid())
    )
