"""Folders of runs that were never run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from run_maker import make_run


@pytest.fixture
def runs(tmp_path):
    """A folder with five runs."""
    for number in range(5):
        make_run(tmp_path / "runs", number)
    return tmp_path / "runs"
