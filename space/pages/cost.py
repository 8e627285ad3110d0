"""Cost: what a score takes in money, time and tokens, and which agents nobody beats on both."""

from __future__ import annotations

import gradio as gr
import pandas as pd
from markupsafe import Markup

from hf_datasets.stats import cost_per_completed, resources
from space.board import Board
from space.boardpage import Asked, Extras, build_board_page
from space.boardtable import DASH
from space.charts import Mark, figure, pareto, scatter
from space.markup import el, join, note, table
from space.pages.leaderboard import search
from space.palette import PALETTE
from space.published import SOURCE, published_table
from space.site import Site

LEAD = (
    "Each point is an agent: its OVERALL against what a run takes. The dashed line joins those that no cheaper agent "
    "beats. Prices are list prices on the day of the run unless the record says otherwise; treat them as rough."
)
AXES = {
    "cost_usd": ("US dollars a run", True),
    "minutes": ("Working minutes a run", False),
    "turns": ("Replies a run", False),
    "tokens": ("Tokens a run", True),
}
_NAMES = {"cost_usd": "USD", "minutes": "Minutes", "turns": "Turns", "tokens": "Tokens"}


def build(site: Site) -> None:
    build_board_page(site, "Cost", LEAD, _content, _extras)


def _extras() -> Extras:
    choices = [(name, key) for key, name in _NAMES.items()]
    return {"axis": gr.Radio(choices, value="cost_usd", label="Against", elem_id="axis")}


def _content(asked: Asked) -> Markup:
    scores = published_table() if asked.board is None else asked.board.table(asked.wanted)
    found = search(scores, asked.search)
    if found.empty:
        return note("No agent of this board has these words in its name.", "warning")
    axis = asked.extra["axis"] if asked.extra["axis"] in AXES else "cost_usd"
    parts = [_chart(found, axis), _left_out(found, axis)]
    if asked.board is None:
        parts.insert(0, note(f"As reported in the paper ({SOURCE}).", "warning"))
        parts.append(_published_figures(found))
    else:
        parts += [_by_agent(asked, asked.board, list(found["agent"])), _by_track(asked, asked.board)]
    return join(parts)


def _chart(found: pd.DataFrame, axis: str) -> Markup:
    known = found.dropna(subset=[axis, "overall"])
    if known.empty:
        return note(f"No agent here has both a score and known {_NAMES[axis]}.")
    order = {agent: number for number, agent in enumerate(found["agent"])}
    marks = [_mark(row, axis, order[row["agent"]]) for row in known.to_dict("records")]
    title, log = AXES[axis]
    front = pareto(marks)
    best = ", ".join(marks[i].name for i in front)
    chart = scatter(marks, x_title=title + (" (log scale)" if log else ""), y_title="OVERALL x100", front=front,
                    label=f"OVERALL against {title}; not beaten: {best}", log=log, width=860, height=420)  # fmt: skip
    whiskers = "; whiskers: 95 % interval" if any(mark.low is not None for mark in marks) else ""
    return figure(chart, f"Not beaten on both: {best}{whiskers}")


def _mark(row: dict[str, float], axis: str, number: int) -> Mark:
    low, high = row.get("overall_low"), row.get("overall_high")
    known = low is not None and low == low
    text = f"{row['agent']}: OVERALL {100 * row['overall']:.1f}, {_NAMES[axis]} {row[axis]:,.4g}"
    return Mark(str(row["agent"]), PALETTE.of(number), row["overall"], x=row[axis], symbol=PALETTE.symbol(number),
                low=low if known else None, high=high if known else None, text=text)  # fmt: skip


def _left_out(found: pd.DataFrame, axis: str) -> Markup | None:
    missing = found[found[axis].isna() | found["overall"].isna()]["agent"]
    if missing.empty:
        return None
    return note(f"Not in the picture, for want of a score or of known {_NAMES[axis]}: {', '.join(missing)}.")


def _by_agent(asked: Asked, board: Board, agents: list[str]) -> Markup:
    runs, plan = board.chosen(asked.wanted), board.plan[asked.wanted.cells(board.plan)]
    took = resources(runs, plan).set_index("agent")
    done = cost_per_completed(runs, plan).set_index("agent")
    rows = [
        (agent, _figure(took.loc[agent, "cost_usd"], 2), _figure(done.loc[agent, "cost_per_completed"], 2),
         _figure(done.loc[agent, "cost_usd"], 2), _figure(took.loc[agent, "minutes"], 1),
         _figure(took.loc[agent, "turns"], 1), _figure(took.loc[agent, "tokens"], 0),
         f"{int(done.loc[agent, 'n_completed'])}/{int(done.loc[agent, 'n_scored'])}")
        for agent in agents
    ]  # fmt: skip
    heads = (
        "Agent",
        "USD a run",
        "USD a completed run",
        "USD in all",
        "Minutes",
        "Turns",
        "Tokens",
        "Completed",
    )
    caption = "Means a run; a completed run delivered every case, and failed runs are paid for too"
    return join([el("h2", "By agent", class_="amb-h2"), table(heads, rows, caption=caption)])


def _by_track(asked: Asked, board: Board) -> Markup:
    plan = board.plan[asked.wanted.cells(board.plan)]
    took = resources(board.chosen(asked.wanted), plan, "track")
    rows = [(row["track"], _figure(row["cost_usd"], 2), _figure(row["minutes"], 1), _figure(row["turns"], 1),
             _figure(row["tokens"], 0), f"{row['n_present']}/{row['n_planned']}")
            for row in took.to_dict("records")]  # fmt: skip
    heads = ("Track", "USD a run", "Minutes", "Turns", "Tokens", "Runs")
    return join(
        [el("h2", "By track", class_="amb-h2"), table(heads, rows, caption="Means a run over all agents")]
    )


_DIGITS = {"cost_usd": 2, "tokens": 0}


def _published_figures(found: pd.DataFrame) -> Markup:
    rows = [(row["agent"], *(_figure(row[key], _DIGITS.get(key, 1)) for key in _NAMES))
            for row in found.to_dict("records")]  # fmt: skip
    return table(("Agent", *_NAMES.values()), rows, caption=f"Means a run, as reported ({SOURCE})")


def _figure(value: float, digits: int) -> str:
    return DASH if value != value else f"{value:,.{digits}f}"
