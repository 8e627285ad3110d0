"""What the demo says last are commands that work as they stand in the reader's shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runner.demo import next_steps


def test_the_hints_start_this_very_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.setattr(sys, "executable", str(Path(sys.executable).parent / "python"))
    assert "one:   python -m runner explain runs/demo/x\n" in next_steps(
        Path("runs/demo"), Path("runs/demo/x")
    )
    monkeypatch.setenv("PATH", "")
    found = next_steps(Path("runs/demo"), Path("runs/demo/x")).split("one:   ")[1].split(" -m ")[0]
    assert Path(found).resolve() == Path(sys.executable).resolve()
