"""``submit`` and ``verify-submission``.

``python -m hf_datasets verify-submission`` checks everything but the scores; ``python -m runner verify-submission``
also scores the outputs again, in the evaluator's sandbox.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hf_datasets.results_cli import SecretEnv

if TYPE_CHECKING:
    from hf_datasets.records import RunStatus
    from hf_datasets.submission_check import Checked, Scorer

TargetArgument = Annotated[
    str, typer.Argument(help="Pull request (its number, or refs/pr/N), or a folder made by pull.")
]
RepoOption = Annotated[str | None, typer.Option(help="Dataset repository ORG/NAME of the pull request.")]
PublishOption = Annotated[
    bool,
    typer.Option("--publish", help="Write the outcome into the pull request, or into main for a folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_PULL = re.compile(r"(?:refs/pr/)?([1-9][0-9]{0,8})")


def submit(
    runs: Annotated[
        Path, typer.Argument(help="Folder with the runs, at any depth; all of them are submitted.")
    ],
    to: Annotated[str, typer.Option(help="Dataset repository ORG/NAME of the results.")],
    secret_env: SecretEnv = None,
    as_json: AsJson = False,
) -> None:
    """Submit runs. A pull request with records, outputs where terms allow it, and a manifest of what was planned."""
    with _errors_as_exit(), tempfile.TemporaryDirectory(prefix="automedbench-outputs-") as packed:
        from hf_datasets.hub import Hub
        from hf_datasets.publish import publication
        from hf_datasets.redact import Redactor, environment_secrets
        from hf_datasets.submissions import submit as send

        if not runs.is_dir():
            _fail(f"{runs} is not a folder; expected finished runs, such as runs/", code=2)
        redactor = Redactor(environment_secrets(secret_env or []))
        hub = Hub(to, say=lambda line: typer.echo(line, err=True))
        sent = send(runs, hub, lambda folder: publication(folder, redactor, outputs=Path(packed)))
    form, outcome = sent.form, sent.outcome
    if as_json:
        done = {"reference": sent.reference, "runs": len(form.present), "commits": outcome.commits}
        typer.echo(
            json.dumps({"repo": to, "submission": form.id, **done, "refused": outcome.refused}, indent=1)
        )
    else:
        typer.echo(
            f"{to} {sent.reference}: {len(form.present)} runs of {len(form.planned)} cells, {form.path}"
        )
        for run_id, reason in outcome.refused.items():
            typer.echo(f"refused: {run_id}: {reason}")
    if not outcome.complete:
        raise typer.Exit(3)


def verify_submission(
    target: TargetArgument, repo: RepoOption = None, publish: PublishOption = False, as_json: AsJson = False
) -> None:
    """Check a submission. Schema, digests, completeness, limits, judge; 'python -m runner' scores it again too."""
    check_and_print(target, repo, None, publish=publish, as_json=as_json)


def check_and_print(
    target: str, repo: str | None, scorer: Scorer | None, *, publish: bool, as_json: bool
) -> None:
    """Check what ``target`` names and print a line for each run; exit code 3 where one is rejected."""
    with _errors_as_exit():
        checked = list(_checked(target, repo, scorer, publish))
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {
                        "submission": one.form.id,
                        "runs": [status.model_dump(mode="json") for status in one.statuses],
                    }
                    for one in checked
                ],
                indent=1,
            )
        )
    else:
        for one in checked:
            typer.echo(
                f"submission {one.form.id}: {len(one.form.present)} runs on release {one.form.release}"
            )
            for status in one.statuses:
                scores = status.checks.get("scores", "")
                note = f" ({scores})" if status.status == "self-reported" and scores else ""
                typer.echo(f"  {status.run_id}: {status.status}{note}")
    if not all(one.accepted for one in checked):
        raise typer.Exit(3)


def _checked(target: str, repo: str | None, scorer: Scorer | None, publish: bool) -> Iterator[Checked]:
    from hf_datasets.hub import Hub
    from hf_datasets.results.compact import publish_statuses
    from hf_datasets.results.layout import RECORDS
    from hf_datasets.results.pull import pull
    from hf_datasets.submission_check import check_submission, strays, submissions_in
    from hf_datasets.submissions import FOLDER, SubmissionError

    number = _PULL.fullmatch(target)
    if Path(target).is_dir():
        folder, reference = Path(target), None
    elif number is None:
        _fail(f"{target}: expected a pull request's number or a folder made by pull, found neither", code=2)
    else:
        folder, reference = None, f"refs/pr/{number[1]}"
    if repo is None and (publish or folder is None):
        _fail("expected --repo ORG/NAME, found none", code=2)
    hub = Hub(repo, say=lambda line: typer.echo(line, err=True)) if repo else None
    with tempfile.TemporaryDirectory(prefix="automedbench-submission-") as scratch:
        known: Mapping[str, str] = {}
        if folder is None:
            assert hub is not None
            folder = pull(hub, Path(scratch) / "results", revision=reference).folder
            known = hub.head([FOLDER, RECORDS]).files
        forms = [form for form in submissions_in(folder) if form.path not in known]
        if reference is not None and (found := strays(folder, forms, known)):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise SubmissionError(f"{reference}: {found[0]}{more}; ask for a pull request without")
        statuses: list[RunStatus] = []
        for form in forms:
            checked = check_submission(folder, form, scorer)
            statuses += checked.statuses
            yield checked
    if publish and hub is not None and statuses:
        publish_statuses(hub, statuses, reference)


@contextmanager
def _errors_as_exit() -> Iterator[None]:
    from hf_datasets.hub import HubError
    from hf_datasets.submissions import SubmissionError

    try:
        yield
    except (HubError, SubmissionError) as error:
        _fail(str(error), code=3)
    except (NotADirectoryError, FileExistsError) as error:
        _fail(str(error), code=2)
    except OSError as error:
        _fail(f"{error.filename or 'disk'}: {error.strerror or error}", code=3)


def _fail(message: str, *, code: int) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)
