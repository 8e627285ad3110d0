"""A sealed run of the scripted agent, made once; every test gets its own copy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from runner.cell import Cell
from runner.execute import Options, run_cell
from runner.sandbox import SandboxUnavailable, choose_backend
from tasks.schema import Release, Tier


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def original(tmp_path_factory, data) -> Path:
    try:
        choose_backend("bubblewrap")
    except SandboxUnavailable as reason:
        (pytest.fail if os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") else pytest.skip)(str(reason))
    cell = Cell("vqa-rad-task", Tier.LITE, Release.PHANTOM, "baseline")
    runs = tmp_path_factory.mktemp("runs")
    return run_cell(cell, Options(runs, data, sandbox="bubblewrap")).folder


@pytest.fixture
def run(original, tmp_path) -> Path:
    place = tmp_path / "r00"
    shutil.copytree(original, place)
    return place
