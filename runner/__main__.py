"""``python -m runner``. Signals are listened to before anything slow is imported."""

from __future__ import annotations

import sys

from runner.stop import Stopped, listen
from runner.streams import make_whole

if __name__ == "__main__":
    try:
        listen()
        make_whole()
        from runner.cli import main

        main()
    except Stopped as stopped:
        # Reached only before or after the command: the command line answers for itself.
        sys.exit(stopped.exit_code)
