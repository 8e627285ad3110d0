"""``python -m hf_datasets``: make phantoms, fetch and stage raw data, releases and results.

Exit codes: 0 done, 2 usage, 3 the data can't be used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hf_datasets.families import FAMILIES, UnknownTask
from hf_datasets.releases_cli import build_release, download_release
from hf_datasets.results_cli import compact, pull, push, verify
from hf_datasets.submissions_cli import submit, verify_submission

if TYPE_CHECKING:
    from hf_datasets.staging import Plan
    from tasks.manifest import Manifest

app = typer.Typer(
    help="Data for runs (phantoms, staging, releases) and results on the Hub.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

app.command("build-release")(build_release)
app.command("download-release")(download_release)
for command in (push, pull, compact, verify, submit, verify_submission):
    app.command()(command)

TaskArgument = Annotated[str | None, typer.Argument(help="Task id, for example kidney-seg-task.")]
AllOption = Annotated[
    bool, typer.Option("--all", help="Every task, each in a subfolder <task-id>/ of the raw data.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def phantom(
    out: Annotated[Path, typer.Option(help="Folder for the raw phantom.")],
    task: TaskArgument = None,
    every: AllOption = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Generate small data in the upstream's own raw layout."""

    def make(task_id: str, folder: Path) -> dict[str, object]:
        from hf_datasets.phantoms import make_phantom

        return {"task": task_id, "raw": str(make_phantom(task_id, folder, seed)), "seed": seed}

    _for_each(
        task,
        every,
        out,
        make,
        lambda row: f"{row['task']}: phantom with seed {row['seed']} in {row['raw']}",
        as_json,
    )


@app.command()
def stage(
    source: Annotated[Path, typer.Option(help="Raw data as the upstream delivers them.")],
    out: Annotated[Path, typer.Option(help="Root of the staged data; they go to OUT/<release>/<task-id>/.")],
    task: TaskArgument = None,
    every: AllOption = False,
    release: Annotated[str, typer.Option(help="phantom, lite or full.")] = "full",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many cases, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw and of the case ids.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be staged; write nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn raw data into public and private case folders with a manifest."""
    if release not in ("phantom", "lite", "full"):
        raise typer.BadParameter(f"expected phantom, lite or full, found {release!r}", param_hint="--release")

    def run(task_id: str, folder: Path) -> dict[str, object]:
        from hf_datasets import staging

        if dry_run:
            return _planned(staging.plan(task_id, folder, out, release=release, limit=limit, seed=seed))
        manifest = staging.stage(task_id, folder, out, release=release, limit=limit, seed=seed)
        return _staged(manifest, out / release / task_id)

    verb = "would stage" if dry_run else "staged"
    _for_each(
        task,
        every,
        source,
        run,
        lambda row: f"{row['task']}: {verb} {row['cases']} cases in {row['folder']}",
        as_json,
    )


@app.command()
def fetch(
    task: Annotated[str, typer.Argument(help="Task id, for example heart-seg-task.")],
    out: Annotated[Path, typer.Option(help="Folder for the raw data.")],
    as_json: JsonOption = False,
) -> None:
    """Download raw data that are open to all. Where they are not, print the steps and the terms."""
    from hf_datasets.fetch import FetchError, is_fetchable, steps
    from hf_datasets.fetch import fetch as fetch_task
    from tasks.registry import TaskError, load_task

    try:
        asked = load_task(task)
        if not is_fetchable(asked):
            typer.echo(
                json.dumps({"task": task, "files": [], "steps": steps(asked)}) if as_json else steps(asked)
            )
            raise typer.Exit(3)
        files = fetch_task(asked, out, say=lambda line: typer.echo(line, err=True))
    except TaskError as error:
        _fail(str(error), code=2)
    except (FetchError, OSError) as error:
        _fail(str(error), code=3)
    if as_json:
        typer.echo(json.dumps({"task": task, "files": [str(path) for path in files]}))
    else:
        typer.echo(f"{task}: {len(files)} files in {out}; {' '.join(asked.source.acquisition.split())}")


def _for_each(
    task: str | None,
    every: bool,
    root: Path,
    act: Callable[[str, Path], dict[str, object]],
    line: Callable[[dict[str, object]], str],
    as_json: bool,
) -> None:
    """Act on one task in ``root`` itself or on all tasks in their subfolders; print a line for each."""
    if (task is None) == (not every):
        raise typer.BadParameter("expected a task id or --all, and not both")
    rows = []
    for task_id, folder in [(task, root)] if task else [(name, root / name) for name in FAMILIES]:
        with _errors_as_exit():
            rows.append(act(task_id, folder))
        if not as_json:
            typer.echo(line(rows[-1]))
    if as_json:
        typer.echo(json.dumps(rows, indent=1))


@contextmanager
def _errors_as_exit() -> Iterator[None]:
    from hf_datasets.phantoms import PhantomError
    from hf_datasets.staging import StagingError

    try:
        yield
    except UnknownTask as error:
        _fail(str(error), code=2)
    except (PhantomError, StagingError) as error:
        _fail(str(error), code=3)
    except OSError as error:
        _fail(f"{error.filename or 'disk'}: {error.strerror or error}", code=3)


def _fail(message: str, *, code: int) -> None:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)


def _planned(plan: Plan) -> dict[str, object]:
    return {
        "task": plan.task.id,
        "release": str(plan.release),
        "folder": str(plan.target),
        "cases": len(plan.cases),
        "available": plan.available,
        "ids": {case_id: case.origin for case_id, case in plan.cases},
    }


def _staged(manifest: Manifest, folder: Path) -> dict[str, object]:
    return {
        "task": manifest.task,
        "release": str(manifest.release),
        "folder": str(folder),
        "cases": len(manifest.cases),
        "license": manifest.license,
        "redistribution": str(manifest.redistribution),
    }
