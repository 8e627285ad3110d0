"""The command ``sweep report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="A sweep's folder, or any folder of runs.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; FOLDER/report by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as a JSON list.")] = False,
) -> None:
    """Write tables, figures and what is missing, as HTML and Markdown."""
    from runner.sweep.report.write import write_report

    written = [str(path) for path in write_report(folder, out)]
    print(json.dumps(written, indent=1) if as_json else "\n".join(written))
