"""``build-release`` and ``download-release``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tasks.names import Release

ReleaseArgument = Annotated[Release, typer.Argument(help="lite or full.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def build_release(
    release: ReleaseArgument,
    out: Annotated[Path, typer.Option(help="Folder of the public part.")],
    data: Annotated[Path, typer.Option(help="Root of the staged data.")] = Path("data"),
    references_out: Annotated[
        Path | None, typer.Option(help="Folder of the gated part; OUT with -references by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build a release. Task packages, staged inputs where terms allow it, references in a part of their own."""
    from hf_datasets.releases import build_release as build

    with _errors_as_exit():
        form = build(release, data, out, references_out or out.with_name(f"{out.name}-references"))
    if as_json:
        typer.echo(form.model_dump_json(indent=1))
        return
    for entry in form.tasks:
        typer.echo(f"{entry.id}: {f'{entry.data.cases} cases' if entry.data else 'package without data'}")
    typer.echo(f"{len(form.tasks)} tasks, {form.cells} cells in {out}")


def download_release(
    release: ReleaseArgument,
    source: Annotated[str, typer.Option("--from", help="Dataset repository ORG/NAME, or a folder.")],
    data: Annotated[Path, typer.Option(help="Root of the staged data.")] = Path("data"),
    references: Annotated[
        str | None,
        typer.Option(help="Where the gated part lies (@COMMIT at a commit); SOURCE-references by default."),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Commit of the repository; the newest by default.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="Only this task; may be given several times.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a release. Everything is checked against its digest; the commit is pinned in the data folder."""
    from hf_datasets.release_download import download_release as download

    with _errors_as_exit():
        fetched = download(
            release,
            source,
            data,
            references=references,
            revision=revision,
            tasks=tuple(task or ()),
            say=lambda line: typer.echo(line, err=True),
        )
    if as_json:
        typer.echo(json.dumps([vars(one) for one in fetched], indent=1))
        return
    for one in fetched:
        typer.echo(f"{one.task}: {one.state}, {one.detail}")


@contextmanager
def _errors_as_exit() -> Iterator[None]:
    from hf_datasets.release_form import ReleaseError

    try:
        yield
    except (ReleaseError, OSError) as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(3) from None
