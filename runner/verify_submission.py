"""``python -m runner verify-submission``: the checks of hf_datasets, and the scores once more in a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hf_datasets.submissions_cli import AsJson, PublishOption, RepoOption, TargetArgument, check_and_print
from runner.options import Sandbox


def verify_submission(
    target: TargetArgument,
    repo: RepoOption = None,
    data: Annotated[
        Path, typer.Option(help="Where staged data lie; runs on others stay self-reported.")
    ] = Path("data"),
    sandbox: Sandbox = "auto",
    publish: PublishOption = False,
    as_json: AsJson = False,
) -> None:
    """Check a submission and score its outputs again. Schema, digests, completeness, limits, judge, scores."""
    from runner.rescore import SandboxScorer

    check_and_print(target, repo, SandboxScorer.of(data, sandbox), publish=publish, as_json=as_json)
