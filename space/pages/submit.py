"""Submit: look at a record or an archive of runs before anything is sent, and at the commands that send them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from markupsafe import Markup

from space.intake.findings import Checked, Finding, check_upload
from space.intake.upload import MAX_MEMBERS, MAX_UNPACKED, MAX_UPLOAD, UploadRefused, read_upload
from space.markup import chip, el, join, note, percent, section, table
from space.site import Site, state_of

MAX_LISTED = 100
_KINDS = {"error": "bad", "warning": "half", "note": ""}
_EXAMPLE = "OWNER/automedbench-results"

STEPS = (
    (
        "Run",
        "Each finished run of your agent leaves a folder with a record.json.",
        "python -m runner run --help",
    ),
    ("Check", "Recompute the numbers of your runs from their folders.", "python -m runner verify runs"),
    (
        "Look at what would leave",
        "What may be published of a run follows the terms of its task's data.",
        f"python -m hf_datasets push runs --repo {_EXAMPLE} --dry-run",
    ),
    (
        "Submit",
        "Opens a pull request with your runs, each whole or not at all.",
        f"python -m hf_datasets submit runs --to {_EXAMPLE}",
    ),
)


def build(site: Site) -> None:
    gr.HTML(_intro(), padding=False)
    upload = gr.File(
        label="record.json, or a zip, tar or tar.gz of run folders", type="filepath", height=140,
        file_types=[".json", ".zip", ".tar", ".gz", ".tgz"], elem_id="submit-file",
    )  # fmt: skip
    result = gr.HTML(elem_id="submit-result", padding=False)
    gr.HTML(_steps(), padding=False, elem_id="submit-steps")

    def check(path: str | None) -> str:
        return check_file(Path(path), _known(site)) if path else ""

    def opened(request: gr.Request) -> str:
        """A link may name a run whose state somebody asks about."""
        run_id = state_of(request).get("run")
        return _status(site, run_id) if run_id else ""

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    site.on_load(opened, [result])
    upload.change(check, upload, result, **quiet)


def _known(site: Site) -> frozenset[str]:
    runs = site.data().runs
    return frozenset(map(str, runs["run_id"])) if len(runs) else frozenset()


def check_file(path: Path, known: frozenset[str]) -> Markup:
    """All findings about an uploaded file."""
    try:
        upload = read_upload(path)
    except UploadRefused as refused:
        return note(f"This file cannot be checked: {refused}.", "bad")
    if not upload.runs:
        return note("The archive holds no record.json: pack the folders of finished runs.", "bad")
    checked = check_upload(upload, known)
    good = sum(one.is_good for one in checked)
    verdict = (
        note(f"All {len(checked)} runs can be sent.", "good")
        if good == len(checked)
        else note(f"{len(checked) - good} of {len(checked)} runs cannot be sent as they are.", "bad")
    )
    odd = None
    if upload.passed_over:
        names = ", ".join(upload.passed_over[:5])
        odd = note(
            f"{len(upload.passed_over)} members are no plain files and were passed over: {names}", "warning"
        )
    return el("div", verdict, odd, _table(checked[:MAX_LISTED]), _more(checked), role="status")


def _table(checked: Sequence[Checked]) -> Markup:
    rows = [
        [
            one.record.run_id if one.record else one.place,
            chip("can be sent", "good") if one.is_good else chip("cannot be sent", "bad"),
            one.record.task if one.record else "–",
            percent(one.record.overall) if one.record else "–",
            el("ul", [_finding(finding) for finding in one.findings], class_="amb-findings")
            if one.findings
            else "none",
        ]
        for one in checked
    ]
    heads = ("run", "verdict", "task", "OVERALL", "findings")
    return table(heads, rows, caption="Checked here, sent nowhere", class_="amb-wide")


def _listed(findings: Sequence[Finding]) -> Markup | str:
    return (
        el("ul", [_finding(finding) for finding in findings], class_="amb-findings") if findings else "none"
    )


def _finding(finding: Finding) -> Markup:
    return el("li", chip(finding.name, _KINDS[finding.weight], finding.weight), " ", finding.text)


def _more(checked: Sequence[Checked]) -> Markup | None:
    left = len(checked) - MAX_LISTED
    return el("p", f"and {left} more runs, checked likewise") if left > 0 else None


def _status(site: Site, run_id: str) -> Markup:
    if run_id in _known(site):
        link = el("a", run_id, href=Site.link("run", run=run_id))
        return note(join(["These results hold the run ", link, "."]), "good")
    return note(f"These results hold no run {run_id}: it was not accepted yet, or was taken back.", "warning")


def _intro() -> Markup:
    caps = f"Up to {MAX_UPLOAD >> 20} MiB, {MAX_MEMBERS:,} files and {MAX_UNPACKED >> 30} GiB unpacked."
    return el(
        "div",
        el("h1", "Submit", class_="amb-h1"),
        el(
            "p",
            "Check runs before you send them. The file is read here under caps, compared with the schema and with "
            "itself, and forgotten; nothing is published by it. ",
            caps,
            class_="amb-lead",
        ),
    )


def _steps() -> Markup:
    items = [
        el("li", el("b", name), ". ", text, el("pre", command, class_="amb-plan", tabindex="0"))
        for name, text, command in STEPS
    ]
    return section("From a run to the board", el("ol", items, class_="amb-steps"))
