"""The evaluator's command line. Imports the heavy parts only once it knows that they are wanted."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.manifest import Manifest
    from tasks.schema import Task

DONE, INVALID, USAGE, ENVIRONMENT = 0, 1, 2, 3


class _Problem(Exception):
    """One line for the user, and the exit code that goes with it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code: 0 done, 1 format check found faults, 2 usage, 3 environment."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except _Problem as problem:
        print(f"evaluator: {problem}", file=sys.stderr)
        return problem.code
    except OSError as error:
        print(f"evaluator: {error}", file=sys.stderr)
        return ENVIRONMENT
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description="Score submissions offline.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    score = commands.add_parser("score", help="score a submission against hidden references")
    _common(score)
    score.add_argument(
        "--references", type=Path, required=True, metavar="DIR", help="the private side of the data"
    )
    score.add_argument("--public", type=Path, metavar="DIR", help="the public side; gives the input grids")
    score.add_argument(
        "--manifest", type=Path, metavar="FILE", help="default: manifest.json beside the references"
    )
    score.add_argument("--out", type=Path, required=True, metavar="FILE", help="where report.json goes")
    score.add_argument(
        "--previews", type=Path, metavar="DIR", help="folder for small pictures of the submission"
    )
    score.set_defaults(run=_score)

    check = commands.add_parser("check", help="check the format only; needs no references")
    _common(check)
    check.add_argument(
        "--public", type=Path, required=True, metavar="DIR", help="the public side of the data"
    )
    check.add_argument("--json", action="store_true", help="print the result as JSON")
    check.set_defaults(run=_check)

    metrics = commands.add_parser("metrics", help="list the metrics with their definitions and sources")
    metrics.add_argument("--json", action="store_true", help="print them as JSON")
    metrics.set_defaults(run=_metrics)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", required=True, metavar="ID")
    parser.add_argument(
        "--submission", type=Path, required=True, metavar="DIR", help="folder of <case>/<file>"
    )
    parser.add_argument(
        "--jobs", type=_positive, metavar="N", help="cases at a time (default: one a processor)"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("expected a number of at least 1")
    return value


def _score(options: argparse.Namespace) -> int:
    from evaluator.files import sha256_file, write_atomic
    from evaluator.report import dump_report
    from evaluator.score import score
    from evaluator.tracks.base import ReferenceMissing

    task = _task(options.task)
    _require_folder(options.submission, USAGE)
    for folder in filter(None, (options.references, options.public)):
        _require_folder(folder, ENVIRONMENT)
    path = options.manifest or options.references.parent / "manifest.json"
    manifest = _manifest(path, task)
    try:
        report = score(
            task,
            options.submission,
            options.references,
            options.public,
            manifest,
            jobs=options.jobs,
            manifest_sha256=sha256_file(path),
        )
    except ReferenceMissing as error:
        raise _Problem(ENVIRONMENT, str(error)) from None
    write_atomic(options.out, dump_report(report))
    if options.previews:
        from evaluator.preview import write_previews

        write_previews(
            task,
            manifest,
            options.submission,
            options.references,
            options.public,
            options.previews,
            options.jobs,
        )
    print(
        f"{task.id}: {report.metric} {report.task_score:.4f} (ungated {report.task_score_ungated:.4f}), "
        f"{report.n_scored} of {report.n_cases} cases scored; {options.out}"
    )
    return DONE


def _check(options: argparse.Namespace) -> int:
    from evaluator.score import check
    from evaluator.tracks.base import ReferenceMissing

    task = _task(options.task)
    _require_folder(options.submission, USAGE)
    _require_folder(options.public, ENVIRONMENT)
    case_ids = sorted(path.name for path in options.public.iterdir() if path.is_dir())
    if not case_ids:
        raise _Problem(
            ENVIRONMENT, f"{options.public} holds no case folders; give the public side of a staged task"
        )
    try:
        results = check(task, options.submission, options.public, case_ids, options.jobs)
    except ReferenceMissing as error:
        raise _Problem(ENVIRONMENT, str(error)) from None
    faults = {result.case_id: result.error for result in results if result.error is not None}
    if options.json:
        found = {case: fault.model_dump() for case, fault in faults.items()}
        print(
            json.dumps(
                {"task": task.id, "cases": len(results), "valid": len(results) - len(faults), "faults": found}
            )
        )
    else:
        for case, fault in faults.items():
            print(f"{case}: {fault.code}: {fault.message}")
        print(f"{len(results) - len(faults)} of {len(results)} cases are present and valid")
    return INVALID if faults else DONE


def _metrics(options: argparse.Namespace) -> int:
    from evaluator.metrics.registry import METRICS

    if options.json:
        print(json.dumps([asdict(metric) for metric in METRICS.values()], indent=1, ensure_ascii=False))
        return DONE
    for metric in METRICS.values():
        print(f"{metric.name}\n    {metric.definition}\n    {metric.range}, {metric.better}; {metric.source}")
    return DONE


def _task(task_id: str) -> Task:
    from tasks.registry import TaskError, load_task

    try:
        return load_task(task_id)
    except TaskError as error:
        raise _Problem(USAGE, str(error)) from None


def _manifest(path: Path, task: Task) -> Manifest:
    from tasks.manifest import ManifestError, read_manifest

    try:
        manifest = read_manifest(path)
    except ManifestError as error:
        raise _Problem(ENVIRONMENT, str(error)) from None
    if manifest.task != task.id:
        raise _Problem(
            USAGE, f"{path} belongs to {manifest.task}, not to {task.id}; give the data of that task"
        )
    return manifest


def _require_folder(path: Path, code: int) -> None:
    if not path.is_dir():
        raise _Problem(code, f"expected a folder at {path}, found none")
