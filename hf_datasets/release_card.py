"""The README of a release, as the Hub shows it."""

from __future__ import annotations

from hf_datasets.release_form import ReleaseForm
from tasks import canary

_GATE = (
    "These are the hidden references of a benchmark. By asking for access you agree not to publish them, not to train "
    "on them, and not to show them to an agent that is being measured."
)


def card(form: ReleaseForm, *, gated: bool) -> str:
    """The card of one part of a release; the gated one asks for consent before the files can be had."""
    title = f"AutoMedBench {form.release.capitalize()} release{', references' if gated else ''}"
    front = ["---", f"pretty_name: {title}", "license: other", "tags: [medical, benchmark, agents]"]
    if gated:
        front += [f"extra_gated_prompt: >-\n  {_GATE}"]
    return "\n".join(
        (*front, "---", f"# {title}", "", canary.NOTICE, "", _about(form, gated), "", *_table(form), "")
    )


def _about(form: ReleaseForm, gated: bool) -> str:
    if gated:
        return f"{_GATE} The inputs lie in the public part; `release.json` has the digests of both."
    return (
        f"{len(form.tasks)} tasks, {form.cells} cells. `release.json` lists every archive with its SHA-256; "
        f"`python -m hf_datasets download-release {form.release} --from REPO --data data` checks and unpacks them."
    )


def _table(form: ReleaseForm) -> list[str]:
    rows = ["| task | track | licence of the data | data |", "|---|---|---|---|"]
    for entry in form.tasks:
        data = f"{entry.data.cases} cases" if entry.data else f"not included: `{entry.how}`"
        rows.append(f"| `{entry.id}` | {entry.track} | {entry.license.replace('|', '/')} | {data} |")
    return rows
