"""``sweep status --watch``: the same page, again and again, until interrupted or until nothing is left to see."""

from __future__ import annotations

import json
import time

from runner.sweep.folder import SweepFolder
from runner.sweep.live import page
from runner.sweep.status import Status, status_of

LOOK_SECONDS = 2.0


def watch_status(folder: SweepFolder, as_json: bool) -> None:
    """Show the status every two seconds; ends when every cell is done and nobody drives the sweep."""
    if as_json:
        while True:
            status = status_of(folder)
            print(json.dumps(status.as_dict()), flush=True)
            if _over(status):
                return
            time.sleep(LOOK_SECONDS)
    from rich.live import Live

    with Live(auto_refresh=False) as screen:
        while True:
            status = status_of(folder)
            screen.update(page(status), refresh=True)
            if _over(status):
                return
            time.sleep(LOOK_SECONDS)


def _over(status: Status) -> bool:
    return status.driver is None and status.done == status.planned
