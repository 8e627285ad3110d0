"""Runs as an HTML table, one row a run, each opening the Run page."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from space.boardtable import DASH
from space.columns import track_title
from space.markup import chip, el, percent
from space.site import Site

PAGE = 100
_HEADS = (
    ("run", "Run", "text", "Opens the run: its configuration, stages, items, cases and trace"),
    ("track", "Track", "text", "Track of the task"),
    ("tier", "Tier", "text", "How much the brief disclosed"),
    ("overall", "OVERALL", "number", "(AGENTIC + TASK) / 2, x100"),
    ("agentic", "AGENTIC", "number", "How the work was done, x100"),
    ("task_score", "TASK", "number", "What was delivered, x100"),
    *((f"s{n}", f"S{n}", "number", f"Stage {n}, x100") for n in range(1, 6)),
    ("completion", "Cases", "number", "Cases with a score / all"),
    ("end_reason", "End", "text", "Why the run ended"),
    ("error_codes", "Codes", "text", "Error codes that fired; diagnostic, never scored"),
    ("minutes", "Min", "number", "Working minutes"),
    ("cost_usd", "USD", "number", "US dollars; a dash where no price is known"),
    ("finished_at", "Finished", "text", "UTC"),
)


def run_table(runs: pd.DataFrame, page: int, caption: str) -> Markup:
    """The ``page``-th hundred of the runs, counted from 1."""
    shown = runs.iloc[(page - 1) * PAGE : page * PAGE]
    heads = [
        el("th", el("button", el("abbr", title, title=text), type="button", data_sorts=True), scope="col",
           data_key=key, data_kind=kind, class_="num" if kind == "number" else None)
        for key, title, kind, text in _HEADS
    ]  # fmt: skip
    rows = [_row(run) for run in shown.to_dict("records")]
    inner = el(
        "table", el("caption", caption), el("thead", el("tr", heads)), el("tbody", rows), data_sortable=True
    )
    return el("div", inner, class_="amb-table", tabindex="0", role="region", aria_label=caption)


def _row(run: dict[str, Any]) -> Markup:
    name = f"{run['task']} r{run['repeat']:02d}"
    link = el("a", name, href=Site.link("run", run=run["run_id"]))
    codes = [chip(code, title=code) for code in sorted({code.split(".")[0] for code in run["error_codes"]})]
    minutes = run["seconds_working"] / 60
    cases = f"{run['n_scored']}/{run['n_cases']}"
    share = run["completion"]
    return el(
        "tr",
        el("th", link, scope="row", data_sort=name),
        el("td", track_title(run["track"]), data_sort=run["track"]),
        el("td", run["tier"], data_sort=run["tier"]),
        [_score(run[key]) for key in ("overall", "agentic", "task_score", "s1", "s2", "s3", "s4", "s5")],
        el("td", cases, class_="num", data_sort="" if pd.isna(share) else f"{share:.6g}"),
        el("td", run["end_reason"], data_sort=run["end_reason"]),
        el("td", codes or DASH, data_sort=" ".join(run["error_codes"])),
        el("td", f"{minutes:.1f}", class_="num", data_sort=f"{minutes:.6g}"),
        _dollars(run["cost_usd"]),
        el("td", str(run["finished_at"])[:16], data_sort=str(run["finished_at"])),
    )


def _score(value: float) -> Markup:
    if pd.isna(value):
        return el("td", DASH, class_="num none", data_sort="", title="not scored")
    return el("td", percent(value), class_="num", data_sort=f"{value:.9g}")


def _dollars(value: float) -> Markup:
    if pd.isna(value):
        return el("td", DASH, class_="num none", data_sort="", title="no known price")
    return el("td", f"{value:.2f}", class_="num", data_sort=f"{value:.9g}")
