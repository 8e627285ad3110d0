"""What the pages show: one consistent view of the results, replaced as a whole when they are read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pandas as pd

from hf_datasets.records import RunRecord
from space.board import Board, boards_of

SHOWN_FILES = ("cell.json", "record.json", "report.json", "judgement.json", "trace.jsonl", "trace.jsonl.gz")
"""Files of a run folder that a page may show or hand out, beside the pictures and the plan."""


@dataclass(frozen=True)
class RunDetail:
    """One run: its record, and its folder where the files beside the record are at hand.

    ``keeper``: what the folder goes with, held so that no refresh takes it away while a page is made of it.
    """

    record: RunRecord
    folder: Path | None
    keeper: object = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        return self.record.run_id

    def file(self, name: str) -> Path | None:
        """A regular file of the run folder (``report.json``, ``judgement.json``, ``trace.jsonl``, ``cell.json`` ...);
        None where it is not there, is a link, or lies outside of the folder.
        """
        if self.folder is None:
            return None
        path = self.folder / name
        inside = path.resolve().is_relative_to(self.folder.resolve())
        return path if inside and path.is_file() and not path.is_symlink() else None

    @property
    def trace(self) -> Path | None:
        """``trace.jsonl``, or its compressed copy as it is published."""
        return self.file("trace.jsonl") or self.file("trace.jsonl.gz")

    @property
    def plan(self) -> Path | None:
        places = ("plan.md", "submission/.process/plan.md", "workspace/plan.md")
        return next((path for place in places if (path := self.file(place))), None)

    @property
    def plan_picture(self) -> Path | None:
        places = ("plan.png", "submission/.process/plan.png", "workspace/plan.png")
        return next((path for place in places if (path := self.file(place))), None)

    @property
    def previews(self) -> Mapping[str, Path]:
        """Case -> its picture, in the order of the case ids."""
        names = sorted((self.folder / "previews").glob("*.webp")) if self.folder else []
        return {path.stem: path for path in names if self.file(f"previews/{path.name}")}

    def submitted(self, case_id: str, filename: str) -> Path | None:
        """What the run handed in for a case; hostile bytes, to be read by ``evaluator.readers`` only."""
        return self.file(f"submission/{case_id}/{filename}")


@dataclass(frozen=True)
class Snapshot:
    """All results at one moment.

    ``runs``: one row a run in the published columns (docs/records.md; scores in [0, 1], NaN where unscored), without
    ``items`` and ``metrics``, with the limits as one text ``limits`` and with ``board``, the key of the board it stands
    on. ``items``: one row a rubric item of a run (run_id, item, stage, value; those that did not apply are left out).
    ``problems``: one line for each record that could not be read. ``is_demo``: no results were
    given; the runs are the bundled demonstration, and the published table is shown first.
    """

    source: str
    runs: pd.DataFrame
    items: pd.DataFrame
    problems: tuple[str, ...]
    open_run: Callable[[str], RunDetail | None] = field(repr=False)
    loaded_at: datetime
    failure: str | None = None
    """Why the source could not be read again since ``loaded_at``; the last good data are kept."""
    is_demo: bool = False
    _boards: dict[str, Board] = field(default_factory=dict, repr=False)
    """Made once, and kept by a snapshot that differs in its age only."""

    @property
    def boards(self) -> Mapping[str, Board]:
        """Board key -> board, the one with most runs first."""
        if not self._boards and len(self.runs):
            self._boards.update(boards_of(self.runs))
        return self._boards

    def prepare(self) -> Snapshot:
        """Do now what the first visitor would wait for."""
        for board in self.boards.values():
            board.prepare()
        return self

    def warm(self) -> None:
        """Do what a visitor is likely to ask next."""
        for board in self.boards.values():
            board.warm()

    def run(self, run_id: str) -> RunDetail | None:
        """The run of this id; None where the results hold none or its record cannot be read any more."""
        return self.open_run(run_id)
