"""Leaderboard: one row an agent, only runs that may be compared."""

from __future__ import annotations

import gradio as gr
import pandas as pd
from markupsafe import Markup

from space.board import Board
from space.boardpage import Asked, Extras, build_board_page
from space.boards import board_title
from space.boardtable import board_table
from space.charts import Mark, dots, figure
from space.columns import HIDDEN_AT_FIRST, OPTIONAL
from space.downloads import FORMATS
from space.markup import el, join, note
from space.palette import PALETTE
from space.published import SOURCE, published_table
from space.site import Site

LEAD = (
    "Agents that do medical-AI research, each run isolated and scored offline on hidden references. All scores x100; "
    "a dash is a missing value, never a zero. Point at a column's name for its definition."
)
_CHART_ROWS = 30


def build(site: Site) -> None:
    build_board_page(site, "Leaderboard", LEAD, _content, _columns)


def _columns() -> Extras:
    with gr.Accordion("Columns", open=False):
        shown = [column.key for column in OPTIONAL if column.key not in HIDDEN_AT_FIRST]
        return {
            "cols": gr.CheckboxGroup(
                [(column.title, column.key) for column in OPTIONAL], value=shown, show_label=False,
                container=False, elem_id="columns",
            )
        }  # fmt: skip


def _content(asked: Asked) -> Markup:
    table = published_table() if asked.board is None else asked.board.table(asked.wanted)
    found = search(table, asked.search)
    if found.empty:
        return note(f"No agent or model of this board has '{asked.search}' in its name.", "warning")
    shown = board_table(
        found,
        asked.extra["cols"],
        _badges(asked.board),
        lambda agent: Site.link("agent", agent=agent, **asked.state) if asked.board else None,
        _caption(asked),
    )
    return join([_about(asked), shown, _downloads(asked), _intervals(found)])


def search(table: pd.DataFrame, words: str) -> pd.DataFrame:
    """The rows whose agent or model holds the words."""
    wanted = words.strip().lower()
    if not wanted:
        return table
    texts = table["agent"].astype(str) + " " + table["model"].fillna("").astype(str)
    return table[texts.str.lower().str.contains(wanted, regex=False)]


def _about(asked: Asked) -> Markup | None:
    if asked.board is None:
        text = (
            f"As reported in the paper ({SOURCE}); nothing here was measured by this code, and no interval or stage "
            "score was printed. Filters do not apply to it."
        )
        demo = " The demonstration's own board stands in the list above." if asked.snapshot.is_demo else ""
        return note(text + demo, "warning")
    if asked.snapshot.is_demo:
        return note(
            "A demonstration: real runs of the scripted baseline agent on small generated data (phantoms). They show "
            "what the pages do, not how good a model is. With --results FOLDER or --results REPO your own stand here.",
            "warning",
        )
    return None


def _caption(asked: Asked) -> str:
    if asked.board is None:
        return f"Published results, {SOURCE}"
    runs = len(asked.board.chosen(asked.wanted))
    return f"{board_title(asked.board.key)}; {runs:,} runs"


def _badges(board: Board | None) -> list[str]:
    if board is None:
        return ["as reported"]
    release, judge, _, hardware, *others = board.key.split(" | ")
    return [f"judge: {judge}", hardware, f"{release} release", *others]


def _downloads(asked: Asked) -> Markup:
    links = [el("a", name.upper(), href=_download("board", name, asked), download=True) for name in FORMATS]
    runs = [
        el("a", f"runs as {name.upper()}", href=_download("runs", name, asked), download=True)
        for name in FORMATS
    ]
    parts = [el("span", "Download this board:"), *links, *([] if asked.board is None else runs)]
    return el("p", parts, class_="amb-links") + _api(asked)


def _api(asked: Asked) -> Markup:
    """How a program reads the same table."""
    state = asked.state
    lists = [list(state[name]) for name in ("track", "task", "tier", "status")]
    values = ", ".join(repr(value) for value in (state["board"], *lists, state["since"], state["until"]))
    code = (
        "from gradio_client import Client\n\n"
        'client = Client("http://127.0.0.1:7860")    # or the name of the Space\n'
        f'client.predict({values}, api_name="/leaderboard")\n'
        "# more: /boards, /runs, /run, /status\n"
    )
    return el("details", el("summary", "The same table for a program"), el("pre", code), class_="amb-code")


def _download(table: str, form: str, asked: Asked) -> Markup:
    state = {name: value for name, value in asked.state.items() if value or name == "board"}
    return Site.link(f"download/{table}.{form}", **state)


def _intervals(table: pd.DataFrame) -> Markup | None:
    """OVERALL with its interval: whether a lead is one."""
    scored = table.dropna(subset="overall").head(_CHART_ROWS)
    if scored.empty:
        return None
    has_intervals = "overall_low" in scored and scored["overall_low"].notna().any()
    marks = [_mark(number, row, has_intervals) for number, row in enumerate(scored.to_dict("records"))]
    caption = "OVERALL x100" + (
        ", whiskers: 95 % bootstrap interval (runs within cells)" if has_intervals else ""
    )
    return join([el("h2", "How sure is the order?", class_="amb-h2") if has_intervals else None,
                 figure(dots(marks, label=f"OVERALL of {len(marks)} agents"), caption)])  # fmt: skip


def _mark(number: int, row: dict[str, float], has_intervals: bool) -> Mark:
    low, high = (row["overall_low"], row["overall_high"]) if has_intervals else (None, None)
    known = low is not None and not pd.isna(low)
    text = f"{row['agent']}: {100 * row['overall']:.1f}"
    if known:
        text += f", 95 % interval {100 * row['overall_low']:.1f} to {100 * row['overall_high']:.1f}"
    return Mark(str(row["agent"]), PALETTE.of(number), row["overall"], symbol=PALETTE.symbol(number),
                low=low if known else None, high=high if known else None, text=text)  # fmt: skip
