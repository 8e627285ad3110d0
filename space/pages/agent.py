"""Agent: the runs behind a row of the leaderboard; each opens the Run page."""

from __future__ import annotations

import gradio as gr
import pandas as pd
from markupsafe import Markup

from space.board import Board
from space.boardpage import Asked, Extras, build_board_page
from space.boardtable import DASH
from space.markup import el, join, note, percent
from space.runtable import PAGE, run_table
from space.site import Site

LEAD = "All runs of an agent on a board, by task and tier, and one by one."


def build(site: Site) -> None:
    build_board_page(site, "Runs of an agent", LEAD, _content, _extras)


def _extras() -> Extras:
    with gr.Row(elem_classes="amb-controls"):
        return {
            "agent": gr.Textbox(label="Agent", min_width=200),
            "page": gr.Number(1, label=f"Page of {PAGE} runs", precision=0, minimum=1, min_width=110),
        }


def _content(asked: Asked) -> Markup:
    if asked.board is None:
        return note("The published table names no single runs; choose another board.", "warning")
    agents = sorted(asked.board.runs["agent"].unique())
    agent = asked.extra["agent"]
    if agent not in agents:
        links = [el("a", name, href=Site.link("agent", **(asked.state | {"agent": name}))) for name in agents]
        return join([note("Choose an agent of this board:"), el("p", links, class_="amb-links")])
    runs = asked.board.chosen(asked.wanted)
    runs = runs[runs["agent"] == agent].sort_values(["task", "tier", "repeat"])
    if runs.empty:
        return note(f"{agent} has no run that passes these filters.", "warning")
    pages = -(-len(runs) // PAGE)
    page = min(max(1, int(asked.extra["page"] or 1)), pages)
    caption = f"{agent}: {len(runs):,} runs, page {page} of {pages}"
    return join(
        [_cells(asked, asked.board, agent), el("h2", "Runs", class_="amb-h2"), run_table(runs, page, caption)]
    )


def _cells(asked: Asked, board: Board, agent: str) -> Markup:
    """OVERALL by task and tier with the number of runs; an empty cell is a dash."""
    means = board.means("overall", asked.wanted).table
    means = means[means["agent"] == agent]
    tiers = sorted(means["tier"].unique())
    rows = []
    for task, group in means.groupby("task", sort=True):
        by_tier = group.set_index("tier")
        link = el("a", task, href=Site.link("agent", **(asked.state | {"agent": agent, "task": task})))
        cells = [_cell(by_tier.loc[tier]) if tier in by_tier.index else el("td", DASH) for tier in tiers]
        rows.append(el("tr", el("th", link, scope="row"), cells))
    head = el(
        "tr", el("th", "Task", scope="col"), [el("th", tier, scope="col", class_="num") for tier in tiers]
    )
    caption = f"{agent}: OVERALL x100 by task and tier, runs with a score / planned"
    inner = el("table", el("caption", caption), el("thead", head), el("tbody", rows))
    table = el("div", inner, class_="amb-table amb-narrow", tabindex="0", role="region", aria_label=caption)
    return el("details", el("summary", f"By task and tier ({len(rows)} tasks)"), table, open=len(rows) <= 12)


def _cell(cell: pd.Series) -> Markup:
    mean, present, planned = (cell[name] for name in ("mean", "n_present", "n_planned"))
    shown = DASH if mean != mean else percent(mean)
    return el("td", shown, el("span", f" {present}/{planned}", class_="small"), class_="num")
