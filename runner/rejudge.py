"""Judge many finished runs again: in parallel, each on its own, and only where something is left to decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hf_datasets.records import RunRecord
from runner import cell as files
from runner.errors import UsageProblem, exit_code_of, words_of
from runner.execute import rejudge
from runner.judges import Judge


@dataclass(frozen=True)
class Rejudged:
    """What became of one run. ``problem`` says why there is no new judgement, or what it lacks."""

    folder: Path
    state: Literal["judged", "already", "incomplete", "failed"]
    record: RunRecord | None = None
    problem: str | None = None
    exit_code: int = 0

    def row(self) -> dict[str, Any]:
        """For a table, scores times 100."""
        record = self.record
        scores = {
            name: getattr(record, name.lower()) if record else None for name in ("S1", "S2", "S3", "AGENTIC")
        }
        return {
            "folder": str(self.folder),
            "state": self.state,
            **{name: None if value is None else 100 * value for name, value in scores.items()},
            "alpha": record.judge_alpha if record else None,
            "tokens": record.judge_tokens if record else None,
            "USD": record.judge_cost_usd if record else None,
            "problem": self.problem,
        }


def find_runs(places: Iterable[Path]) -> list[Path]:
    """Run folders named by ``places``: such folders themselves, and all done ones below any other folder.

    Raises
    ------
    UsageProblem
        A place holds no run.
    """
    found: dict[Path, Path] = {}
    for place in places:
        here = [place] if (place / files.CELL).is_file() else sorted(_below(place))
        if not here:
            raise UsageProblem(f"{place} holds no finished run: expected a run folder or a folder of runs")
        for folder in here:
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def _below(place: Path) -> Iterator[Path]:
    return (path.parent for path in place.rglob(files.RECORD) if ".attempt" not in path.parent.name)


def rejudge_all(folders: Iterable[Path], data: Path, judge: Judge, jobs: int = 4) -> Iterator[Rejudged]:
    """Judge every run, ``jobs`` at a time; each result comes as soon as it stands on the disk, so that a killed
    command goes on where it was.
    """
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="judge") as pool:
        waiting = [pool.submit(_rejudge_one, folder, data, judge) for folder in folders]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            for one in waiting:
                one.cancel()


def _rejudge_one(folder: Path, data: Path, judge: Judge) -> Rejudged:
    try:
        outcome = rejudge(folder, data, judge)
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        return Rejudged(folder, "failed", problem=words_of(error), exit_code=code)
    if any(item.value is None for item in outcome.record.items if item.applies):
        unscored = [item.id for item in outcome.record.items if item.applies and item.value is None]
        return Rejudged(folder, "incomplete", outcome.record, f"unscored: {', '.join(unscored)}")
    return Rejudged(folder, "already" if outcome.state == "already" else "judged", outcome.record)
