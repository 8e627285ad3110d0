"""``push``, ``pull``, ``compact`` and ``verify``: finished runs on the Hugging Face Hub.

Exit codes: 0 done, 2 usage, 3 something could not be published, pulled or does not agree; it is named.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from hf_datasets.hub import Hub
    from hf_datasets.publish import Publication
    from hf_datasets.results.dry_run import Plan
    from hf_datasets.results.push import Outcome, Watch

RepoArgument = Annotated[str, typer.Argument(help="Dataset repository ORG/NAME.")]
RevisionOption = Annotated[str | None, typer.Option(help="Branch, tag or commit; main by default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllowedSigners = Annotated[
    Path | None, typer.Option(help="OpenSSH file of allowed signers; every record must be signed by one.")
]

SecretEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-env", help="One more variable with a secret; those named like keys or tokens are known."
    ),
]


def push(
    runs: Annotated[Path, typer.Argument(help="Folder with finished runs, at any depth.")],
    repo: Annotated[str, typer.Option(help="Dataset repository ORG/NAME; made where there is none.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be published; send nothing.")
    ] = False,
    pr: Annotated[
        bool, typer.Option("--pr", help="Open a pull request instead of committing to main.")
    ] = False,
    scores_only: Annotated[
        bool, typer.Option("--scores-only", help="No previews, traces or details, whatever the terms allow.")
    ] = False,
    secret_env: SecretEnv = None,
    as_json: AsJson = False,
) -> None:
    """Publish finished runs. Each once, whole or not at all; run again after an interruption."""
    with _errors_as_exit():
        from hf_datasets.results.dry_run import plan
        from hf_datasets.results.push import push as push_runs
        from hf_datasets.results.receipt import as_json as receipt
        from hf_datasets.results.receipt import lines

        if not runs.is_dir():
            _fail(f"{runs} is not a folder; expected finished runs, such as runs/", code=2)
        hub = _hub(repo)
        publish = _publisher(scores_only, secret_env or [])
        with _progress(runs) as watch:
            if dry_run:
                planned = plan(runs, hub, publish, pull_request=pr, watch=watch)
                outcome = planned.outcome
            else:
                revision = _pull_request(hub, runs) if pr else None
                if not pr:
                    hub.create(private=private)

                def seen(done: Outcome, looked_at: int) -> None:
                    watch(done, looked_at)
                    if not looked_at:  # a commit
                        _keep_receipt(runs, done)

                outcome = push_runs(runs, hub, publish, revision=revision, watch=seen)
                _keep_receipt(runs, outcome)
    if dry_run:
        typer.echo(json.dumps(planned.as_json(), indent=1) if as_json else "\n".join(_planned(planned)))
    else:
        typer.echo(json.dumps(receipt(outcome), indent=1) if as_json else "\n".join(lines(outcome)))
    if not outcome.complete:
        raise typer.Exit(3)


def pull(
    repo: RepoArgument,
    out: Annotated[Path, typer.Option(help="Folder for the results; an earlier pull there is replaced.")],
    revision: RevisionOption = None,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Records and tables; no previews, traces, details, outputs.")
    ] = False,
    allowed_signers: AllowedSigners = None,
    as_json: AsJson = False,
) -> None:
    """Download results. A folder that the Space and verify read; without a network, what was pulled last."""
    with _errors_as_exit():
        from hf_datasets.results.pull import pull as pull_results

        _require_checkable(allowed_signers)
        hub = _hub(repo)
        pulled = pull_results(
            hub, out, revision=revision, files=not tables_only, allowed_signers=allowed_signers, say=hub.say
        )
    for problem in pulled.problems:
        typer.echo(f"problem: {problem}", err=True)
    if as_json:
        typer.echo(json.dumps({**vars(pulled), "folder": str(pulled.folder)}, indent=1))
    else:
        source = "the cache" if pulled.from_cache else repo
        typer.echo(f"{out}: {pulled.records} records from {source} at {pulled.sha[:12]}")
    if pulled.problems:
        raise typer.Exit(3)


def compact(repo: RepoArgument, revision: RevisionOption = None) -> None:
    """Merge the parts of a repository's tables. Records are not touched."""
    with _errors_as_exit():
        from hf_datasets.results.compact import compact as compact_parts

        typer.echo(f"{repo}: compact at {compact_parts(_hub(repo), revision)[:12]}")


def verify(
    folder: Annotated[Path, typer.Argument(help="Folder made by pull.")],
    allowed_signers: AllowedSigners = None,
    as_json: AsJson = False,
) -> None:
    """Recompute tables, totals and digests of pulled results from their records. Differences are named."""
    with _errors_as_exit():
        from hf_datasets.results.verify import verify as verify_results

        _require_checkable(allowed_signers)
        found = verify_results(folder, allowed_signers)
    if as_json:
        typer.echo(
            json.dumps({name: value for name, value in vars(found).items() if name != "of_run"}, indent=1)
        )
    else:
        for line in found.differences:
            typer.echo(f"differs: {line}")
        for line in found.notes:
            typer.echo(f"note: {line}")
        signatures = f", {found.signatures} signatures" if allowed_signers else ""
        typer.echo(
            f"{folder}: {found.runs} runs, {found.cases} cases{signatures}, "
            f"{found.reports} reports and {found.traces} traces "
            f"checked; {len(found.differences) or 'no'} difference{'' if len(found.differences) == 1 else 's'}"
        )
    if found.differences:
        raise typer.Exit(3)


def _require_checkable(allowed_signers: Path | None) -> None:
    """Say once, before anything is fetched, that no signature can be checked."""
    from hf_datasets.signing import SigningError, ssh_keygen

    if allowed_signers is None:
        return
    if not allowed_signers.is_file():
        _fail(f"{allowed_signers}: expected a file of allowed signers (see 'man ssh-keygen')", code=2)
    try:
        ssh_keygen()
    except SigningError as error:
        _fail(str(error), code=3)


def _hub(repo: str) -> Hub:
    from hf_datasets.hub import Hub

    return Hub(repo, say=lambda line: typer.echo(line, err=True))


def _publisher(scores_only: bool, secret_env: list[str]) -> Callable[[Path], Publication]:
    from hf_datasets.publish import publication
    from hf_datasets.redact import Redactor, environment_secrets

    redactor = Redactor(environment_secrets(secret_env))
    return lambda folder: publication(folder, redactor, scores_only=scores_only)


def _pull_request(hub: Hub, runs: Path) -> str:
    """The reference of the pull request for these very records; opened once, however often this runs."""
    from hashlib import sha256

    from hf_datasets.run_folders import RECORD, finished

    records = sorted(sha256((folder / RECORD).read_bytes()).hexdigest() for folder in finished(runs))
    title = f"Add {len(records)} runs ({sha256(''.join(records).encode()).hexdigest()[:8]})"
    number = hub.pull_request(title, "Pushed by `python -m hf_datasets push --pr`.")
    typer.echo(f"pull request {number} of {hub.repo}: {title}", err=True)
    return f"refs/pr/{number}"


def _keep_receipt(runs: Path, outcome: Outcome) -> None:
    from hf_datasets.results.receipt import write_receipt

    try:
        write_receipt(runs, outcome)
    except OSError as error:  # a folder that may only be read is published all the same
        typer.echo(f"note: no receipt in {runs}: {error.strerror}", err=True)


def _planned(planned: Plan) -> Iterator[str]:
    if planned.note:
        yield f"note: {planned.note}"
    for path, size in planned.write.items():
        yield f"write {size:>10} {path}"
    for path in sorted(planned.delete):
        yield f"delete           {path}"
    outcome = planned.outcome
    for run_id, words in outcome.withheld.items():
        yield from (f"withheld: {run_id}: {line}" for line in words)
    for kind, found in (("refused", outcome.refused), ("blocked", outcome.blocked)):
        yield from (f"{kind}: {run_id}: {reason}" for run_id, reason in found.items())
    yield from (f"unreadable: {problem}" for problem in outcome.unreadable)
    yield (
        f"{outcome.repo}: would publish {sum(planned.write.values())} bytes in {len(planned.write)} files and "
        f"{planned.commits} commits; {len(outcome.present)} runs are there already; nothing was sent"
    )


@contextmanager
def _progress(runs: Path) -> Iterator[Watch]:
    """A bar on a terminal, a line for each commit elsewhere."""
    from hf_datasets.run_folders import finished

    if not sys.stderr.isatty():
        yield (
            lambda done, seen: None if seen else typer.echo(f"{len(done.published)} runs published", err=True)
        )
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=sum(1 for _ in finished(runs)))
        yield lambda _, seen: bar.advance(task, seen)


@contextmanager
def _errors_as_exit() -> Iterator[None]:
    # Neither the client's own bars nor its words on every failed request: ours are said once.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    from hf_datasets.hub import BadName, HubError

    try:
        yield
    except (BadName, NotADirectoryError, FileExistsError) as error:
        _fail(str(error), code=2)
    except HubError as error:
        _fail(str(error), code=3)
    except OSError as error:
        _fail(f"{error.filename or 'disk'}: {error.strerror or error}", code=3)


def _fail(message: str, *, code: int) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)
