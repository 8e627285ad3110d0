"""What a report is made of: records and cases of a folder, the plan they belong to, and what is missing of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hf_datasets.failures import cause_of, counts
from hf_datasets.records import RecordError, RunRecord, load_record
from hf_datasets.stats import runs_frame
from runner.cell import RECORD, REPORT, UNSCORED
from runner.errors import UsageProblem
from runner.sweep.folder import SweepFolder
from runner.sweep.ledger import read_book
from runner.sweep.lock import Lock, Locks, load_lock, standings
from tasks.registry import load_task

NOT_STARTED = "not_started"
NOT_SEALED = "not_sealed"
CHANGED = "changed"
_REPEAT = re.compile(r"r[0-9]{2,}")


@dataclass(frozen=True)
class Material:
    """Everything that is read once, before anything is computed.

    Attributes
    ----------
    name : str
        Of the sweep, or of the folder.
    runs, cases : DataFrame
        As ``hf_datasets.stats`` takes them; runs that do not count are not among them.
    plan : DataFrame or None
        That of the lock; without a lock each board's is taken from its runs.
    ended : dict
        Run ``(agent, task, tier, repeat)`` -> why there is no counted record of it: a cause of
        ``hf_datasets.failures``, or one of this module's constants.
    problems : tuple of str
        Records that could not be read, a line each.
    """

    name: str
    runs: pd.DataFrame
    cases: pd.DataFrame
    plan: pd.DataFrame | None
    ended: dict[tuple[str, str, str, int], str]
    problems: tuple[str, ...]


def read_material(root: Path) -> Material:
    """Read a sweep's folder, or any folder of runs.

    Raises
    ------
    UsageProblem
        It is no folder, or there is neither a run nor a lock in it.
    """
    if not root.is_dir():
        raise UsageProblem(f"{root} is not a folder of runs or of a sweep; give one of these")
    sweep = SweepFolder(root)
    lock = load_lock(sweep) if sweep.lock.is_file() else None
    folders = list(_run_folders(sweep.runs if lock else root))
    if lock is None and not folders:
        raise UsageProblem(
            f"{root}: no run in it; expected TASK/TIER/AGENT/rNN below, or a sweep's lock.json"
        )
    records, ended, problems = _read_records(folders)
    if lock is not None:
        stale = _stale(sweep, lock)
        records = {folder: record for folder, record in records.items() if _key_of(folder) not in stale}
        ended = _ends_of(sweep) | ended | dict.fromkeys(stale, CHANGED)
    runs = runs_frame(records.values())
    return Material(
        name=lock.name if lock else root.resolve().name,
        runs=runs,
        cases=_cases({folder: record.run_id for folder, record in records.items()}),
        plan=_plan_of(lock) if lock else None,
        ended=ended,
        problems=tuple(problems),
    )


def _run_folders(runs: Path) -> Iterator[Path]:
    """Only where the runner puts them: what an agent wrote into its workspace is no record."""
    for folder in sorted(runs.glob("*/*/*/r*")):
        if _REPEAT.fullmatch(folder.name) and folder.is_dir():
            yield folder


Key = tuple[str, str, str, int]


def _read_records(folders: list[Path]) -> tuple[dict[Path, RunRecord], dict[Key, str], list[str]]:
    """Records that count, why the other runs have none, and what could not be read."""
    records: dict[Path, RunRecord] = {}
    ended: dict[Key, str] = {}
    problems = []
    for folder in folders:
        key = _key_of(folder)
        try:
            if (folder / RECORD).is_file():
                record = load_record(folder / RECORD)
                if counts(record):
                    records[folder] = record
                else:
                    ended[key] = cause_of(record)
            elif (folder / UNSCORED).is_file():
                ended[key] = cause_of(load_record(folder / UNSCORED))
            else:
                ended[key] = NOT_SEALED
        except RecordError as error:
            problems.append(str(error))
            ended[key] = NOT_SEALED
    return records, ended, problems


def _key_of(folder: Path) -> Key:
    task, tier, agent, repeat = folder.parts[-4:]
    return agent, task, tier, int(repeat.removeprefix("r"))


def _cases(run_ids: dict[Path, str]) -> pd.DataFrame:
    """Case scores of the reports that lie beside the records; a report that cannot be read has none."""
    rows: list[tuple[str, str, float]] = []
    for folder, run_id in run_ids.items():
        try:
            report: Any = json.loads((folder / REPORT).read_bytes())
            rows.extend((run_id, str(case["case_id"]), float(case["score"])) for case in report["cases"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return pd.DataFrame(rows, columns=["run_id", "case_id", "score"])


def _plan_of(lock: Lock) -> pd.DataFrame:
    rows = [
        (block.agent, block.task, block.tier.value, load_task(block.task).track.value, block.repeats)
        for block in lock.blocks
    ]
    return pd.DataFrame(rows, columns=["agent", "task", "tier", "track", "n_planned"])


def _stale(sweep: SweepFolder, lock: Lock) -> set[Key]:
    """Cells whose record was made from other inputs than the locked ones; they stand for another plan."""
    book = read_book(sweep.ledger)
    found = standings(lock, Locks(sweep), book)
    return {
        (one.cell.agent, one.cell.task, one.cell.tier.value, one.cell.repeat)
        for one in found
        if one.decision != "reuse" and book.cell(one.cell.key).done is not None
    }


def _ends_of(sweep: SweepFolder) -> dict[Key, str]:
    """The last end that the ledger knows of each cell without a sealed record."""
    ends: dict[Key, str] = {}
    for name, cell in read_book(sweep.ledger).cells.items():
        task, tier, agent, repeat = name.split("/")
        if cell.done is None and cell.last is not None:
            ends[agent, task, tier, int(repeat.removeprefix("r"))] = cell.last.cause
    return ends
