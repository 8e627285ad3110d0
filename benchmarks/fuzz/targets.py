"""What is fuzzed, and what must hold of it. A target's ``run`` returns a word for what the input did.

An exception that is not one of the target's refusals is a finding; so is an ``AssertionError``.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzz import seeds
from benchmarks.fuzz.workspaces import collect_whatever_it_is
from evaluator.judge.calibration.samples import samples
from evaluator.judge.judgement import Judgement
from evaluator.judge.notebook import Notebook, write_notebook
from evaluator.judge.plan import plan_text, read_plan_picture, read_plan_text, shown_picture
from evaluator.judge.reading import read_opinions, read_tags
from evaluator.readers.array import read_array, read_arrays
from evaluator.readers.csv_file import read_csv
from evaluator.readers.dicom import read_dicom
from evaluator.readers.errors import CODES, ReadError
from evaluator.readers.image import read_image
from evaluator.readers.json_file import read_json
from evaluator.readers.nifti import read_label_map, read_nifti
from evaluator.readers.text_file import read_text
from evaluator.report import TaskReport
from evaluator.rubric import Rubric, load_rubric
from evaluator.submission import load_submission_manifest
from evaluator.trace import End, TraceError, read_trace
from hf_datasets.records import RecordError, dump_record, load_record
from runner.cell import CellFile, read_form
from runner.errors import UsageProblem
from runner.trace import verify_chain


@dataclass(frozen=True)
class Target:
    """``run`` gets an input and an empty folder of its own; ``refusals`` are the errors it may raise."""

    name: str
    seeds: Callable[[], list[bytes]]
    run: Callable[[bytes, Path], str]
    refusals: tuple[type[Exception], ...] = ()


def _require(holds: bool, words: str) -> None:
    assert holds, words


def _require_one_line(error: Exception) -> None:
    _require("\n" not in str(error), str(error))


# --- readers -----------------------------------------------------------------------------------------

_READERS: tuple[tuple[str, Callable[[Path], object]], ...] = (
    ("nifti", read_nifti),
    ("labels", lambda path: read_label_map(path, range(60))),
    ("npy", read_array),
    ("npz", read_arrays),
    ("image", read_image),
    ("dicom", read_dicom),
    ("json", read_json),
    ("csv", lambda path: read_csv(path, ("id", "label"))),
    ("text", read_text),
)


def _read(content: bytes, folder: Path) -> str:
    """The first byte chooses the reader, so that one corpus serves them all."""
    kind, reader = _READERS[content[0] % len(_READERS)] if content else _READERS[0]
    path = folder / "x"
    path.write_bytes(content[1:])
    try:
        reader(path)
    except ReadError as error:
        _require(error.code in CODES and "\n" not in error.message and len(error.message) < 1000, str(error))
        raise
    finally:
        assert [entry.name for entry in folder.iterdir()] == ["x"]
    return f"{kind} read"


# --- trace -------------------------------------------------------------------------------------------


def _trace(content: bytes, folder: Path) -> str:
    path = folder / "trace.jsonl"
    path.write_bytes(content)
    broken = verify_chain(path)
    assert broken is None or 1 <= broken <= content.count(b"\n")
    events = read_trace(path)
    whole = content.endswith(b"\n") or not content
    assert len(events) <= content.count(b"\n") + (not whole)
    kinds = "".join(sorted({event.type[0] for event in events}))
    return f"{broken is None} {kinds} {isinstance(events[-1], End) if events else None}"


# --- record and the other files of a run folder -------------------------------------------------------


def _record(content: bytes, folder: Path) -> str:
    path = folder / "manifest.json"
    path.write_bytes(content)
    accepted = ["SubmissionManifest"] if load_submission_manifest(folder) else []
    for form in (CellFile, Judgement, TaskReport):
        try:
            read_form(path, form)
            accepted.append(form.__name__)
        except UsageProblem as problem:
            _require_one_line(problem)
    try:
        record = load_record(path)
    except RecordError as error:
        _require_one_line(error)
        if accepted:
            return " ".join(accepted)
        raise
    path.write_text(dump_record(record))
    assert load_record(path) == record
    assert path.read_text() == dump_record(load_record(path))
    return f"record {record.track} {record.end_reason} {record.overall is None}"


# --- judge -------------------------------------------------------------------------------------------


@functools.cache
def _judged() -> tuple[Rubric, Notebook]:
    with tempfile.TemporaryDirectory() as folder:
        sample = next(samples(Path(folder)))
        return load_rubric(sample.track), write_notebook(sample.material)


def _judge(content: bytes, folder: Path) -> str:
    """As a judge's reply, and as the plan's two files, which a judge is shown."""
    rubric, notebook = _judged()
    reply = content.decode("utf-8", "replace")
    levels = {item.id: item.levels for item in rubric.items}
    opinions, problems = read_opinions(reply, rubric.items, levels, notebook)
    assert opinions.keys().isdisjoint(problems)
    assert opinions.keys() | problems.keys() == {item.id for item in rubric.items}
    for item in rubric.items:
        if opinion := opinions.get(item.id):
            assert opinion.value in ([level.value for level in item.levels] or [0.0, 1.0])
            assert opinion.value == 0 or opinion.events
            assert all(notebook.may_rest_on(item, seq) for seq in opinion.events)
            assert opinion.reason.strip()
    assert all("\n" not in problem and len(problem) < 500 for problem in problems.values())
    tags, wrong = read_tags(reply, notebook)
    assert not (tags and wrong)
    kinds = {re.sub(r"'.*'|\".*\"|E?\d+", "", problem)[:40] for problem in problems.values()}
    return f"{_plan(content, folder)} {len(opinions)} {sorted(tags)} {sorted(kinds)}"


def _plan(content: bytes, folder: Path) -> str:
    for name in ("plan.md", "plan.png"):
        (folder / name).write_bytes(content)
    text, picture = read_plan_text(folder), read_plan_picture(folder)
    shown = shown_picture(folder)
    assert shown is None or len(shown) < 8 << 20
    assert picture.problem is not None or shown is not None
    plan_text(folder)
    return f"{text.problem is None} {picture.problem is None}"


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("readers", lambda: seeds.files(_READERS), _read, (ReadError,)),
        Target("collector", seeds.workspaces, collect_whatever_it_is),
        Target("trace", seeds.traces, _trace, (TraceError,)),
        Target("record", seeds.records, _record, (RecordError,)),
        Target("judge", seeds.replies, _judge),
    )
}
