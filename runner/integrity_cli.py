"""``verify`` and ``sign``: is a run what its record says, and who stands behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from runner.options import AsJson

EXIT_DIFFERS = 1
"""Something is not what it was sealed as. As with ``diff``: 0 the same, 1 different, 2 and more trouble."""

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs.")]


def verify(
    run: Runs,
    data: Annotated[Path, typer.Option(help="Where staged data lie.")] = Path("data"),
    again: Annotated[
        bool, typer.Option("--again", help="Also score the submission again; needs a sandbox.")
    ] = False,
    allowed_signers: Annotated[
        Path | None, typer.Option(help="OpenSSH file of allowed signers; every record must then be signed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute runs from their folders. Trace, digests, stages, totals and the record; names what differs, exit 1."""
    from runner.rejudge import find_runs
    from runner.tables import plain
    from runner.verify import require_signature, verify_all

    found = list(verify_all(find_runs(run), data, again))
    if allowed_signers is not None:
        for one in found:
            require_signature(one, allowed_signers)
    if as_json:
        print(json.dumps([one.row() for one in found], indent=1))
    else:
        for one in found:
            print(f"{one.state}: {plain(str(one.folder))}")
            for line in (*one.differences, *one.notes):
                print(f"  {plain(line)}")
    if any(one.state == "differs" for one in found):
        raise typer.Exit(EXIT_DIFFERS)
    if code := max(one.exit_code for one in found):
        raise typer.Exit(code)


def sign(
    run: Runs,
    key: Annotated[Path, typer.Option(help="SSH private key, or the public key of one that an agent holds.")],
) -> None:
    """Sign the records of finished runs with an SSH key. The signature lies beside each as record.json.sig."""
    from hf_datasets.signing import SigningError, sign_record
    from runner.cell import RECORD
    from runner.errors import EnvironmentProblem
    from runner.rejudge import find_runs

    for folder in find_runs(run):
        try:
            print(f"signed: {sign_record(folder / RECORD, key)}")
        except SigningError as error:
            raise EnvironmentProblem(f"{folder}: {error}") from None
