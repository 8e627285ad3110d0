"""Where local model weights lie: one folder that an environment variable names. Nothing is ever downloaded."""

from __future__ import annotations

import os
from pathlib import Path

WEIGHTS_VARIABLE = "AUTOMEDBENCH_WEIGHTS"


def weights_folder() -> Path | None:
    """The folder that ``AUTOMEDBENCH_WEIGHTS`` names, whether it exists or not; None where it names none."""
    named = os.environ.get(WEIGHTS_VARIABLE)
    return Path(named) if named else None
