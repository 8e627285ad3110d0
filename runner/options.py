"""Options that several commands share: one name, one meaning, one line of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

RunFolder = Annotated[Path, typer.Argument(help="Folder of the run, for example runs/TASK/TIER/AGENT/r00.")]
RunsDir = Annotated[Path, typer.Option(help="Where run folders go.")]
DataDir = Annotated[Path, typer.Option(help="Where staged data lie (phantoms are made here when needed).")]
Sandbox = Annotated[
    Literal["auto", "docker", "bubblewrap"],
    typer.Option(help="What isolates the agent; auto prefers Docker."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
AgentsFile = Annotated[Path | None, typer.Option("--agents", help="YAML file with more agent profiles.")]
JudgeName = Annotated[
    str, typer.Option(help="Who judges: 'rules' (no key), 'llm', or a profile of --judges.")
]
JudgesFile = Annotated[Path | None, typer.Option("--judges", help="YAML file with judge profiles.")]
