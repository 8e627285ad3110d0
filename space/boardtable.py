"""A board as an HTML table: sortable, first column pinned, definitions on hover, missing values a dash."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from space.columns import COLUMNS, Column
from space.markup import chip, el, join

DASH = "–"
Link = Callable[[str], str | None]
_FIRST_UP = {"low": "up", "high": "down"}


def board_table(
    table: pd.DataFrame, shown: Collection[str], badges: Sequence[str], link: Link, caption: str
) -> Markup:
    """The rows of ``Board.table`` with the columns whose keys are ``shown``; the fixed ones always are.

    Parameters
    ----------
    badges : sequence of str
        What holds for every row of the board: judge, hardware, release.
    link : callable
        Agent -> address of its runs, None where there are none to show.
    """
    columns = [column for column in COLUMNS if _is_shown(column, shown, table)]
    best = {column.key: _best(table, column) for column in columns}
    heads = [_head(column) for column in columns]
    rows = [
        el("tr", [_cell(column, row, best[column.key], badges, link) for column in columns])
        for row in table.to_dict("records")
    ]
    # The agent is what a row is about and what stays in sight: it stands first, its rank before its name.
    inner = el(
        "table", el("caption", caption), el("thead", el("tr", heads)), el("tbody", rows), data_sortable=True
    )
    return el("div", inner, class_="amb-table amb-board", tabindex="0", role="region", aria_label=caption)


def _is_shown(column: Column, shown: Collection[str], table: pd.DataFrame) -> bool:
    if column.kind == "rank":
        return False
    if column.kind in ("agent", "badges", "text"):
        return not column.optional or column.key in shown
    return column.key in shown and ("n_planned" if column.kind == "coverage" else column.key) in table


def _head(column: Column) -> Markup:
    button = el("button", el("abbr", column.title, title=column.text), type="button", data_sorts=True)
    return el("th", button, scope="col", data_key=column.key, data_kind="number" if column.is_number else "text",
              data_first=_FIRST_UP[column.better] if column.is_number else "up",
              class_="num" if column.is_number else None)  # fmt: skip


def _cell(
    column: Column, row: dict[str, Any], best: float | None, badges: Sequence[str], link: Link
) -> Markup:
    if column.kind == "agent":
        return _agent(row, link)
    if column.kind == "coverage":
        return _coverage(row)
    if column.kind == "badges":
        status = str(row.get("status") or "")
        kind = "good" if status in ("re-scored", "re-run") else ""
        return el(
            "td", chip(status, kind) if status else None, [chip(text) for text in badges], data_sort=status
        )
    value = _value(row.get(column.key))
    if value is None:
        return el(
            "td",
            DASH,
            class_="num none" if column.is_number else "none",
            data_sort="",
            title=_why(column, row),
        )
    if column.kind == "text":
        return el("td", value, data_sort=value)
    class_ = "num best" if best is not None and value == best else "num"
    return el(
        "td",
        _figure(column, value, row),
        class_=class_,
        data_sort=f"{value:.9g}",
        title=_interval(column, row),
    )


def _agent(row: dict[str, Any], link: Link) -> Markup:
    rank, tied = _value(row.get("rank")), row.get("tied_with") or ()
    text = f"{rank}" if rank is not None else DASH
    hint = f"rank {text}" + (f", not told apart from {', '.join(tied)}" if len(tied) else "")
    address = link(row["agent"])
    name = el("a", row["agent"], href=address) if address else el("span", row["agent"])
    return el(
        "th", el("span", text, class_="amb-rank", title=hint), " ", name, scope="row", data_sort=row["agent"]
    )


def _coverage(row: dict[str, Any]) -> Markup:
    present, planned = int(row.get("n_present") or 0), int(row.get("n_planned") or 0)
    parts = [f"{100 * present / planned:.0f} % of the planned runs"] if planned else []
    if row.get("n_unjudged"):
        parts.append(f"{int(row['n_unjudged'])} wait for a judge")
    if row.get("n_empty"):
        parts.append(f"{int(row['n_empty'])} planned cells have no run")
    kind = "num" if present >= planned else "num amb-partial"
    return el("td", f"{present}/{planned}", class_=kind, data_sort=present / planned if planned else "",
              title="; ".join(parts))  # fmt: skip


def _figure(column: Column, value: float, row: dict[str, Any]) -> Markup:
    if column.kind == "score":
        low, high = _value(row.get(f"{column.key}_low")), _value(row.get(f"{column.key}_high"))
        spread = None
        if column.key == "overall" and low is not None and high is not None:
            spread = el("span", f" ±{50 * (high - low):.1f}", class_="small")
        return join([f"{100 * value:.1f}", spread])
    if column.kind == "share":
        return join([f"{100 * value:.1f}"])
    if column.kind == "usd":
        return join([f"{value:.2f}"])
    return join([_short_number(value)])


def _short_number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    return f"{value / 1e3:.0f}k" if value >= 1e4 else f"{value:.1f}"


def _interval(column: Column, row: dict[str, Any]) -> str | None:
    low, high = _value(row.get(f"{column.key}_low")), _value(row.get(f"{column.key}_high"))
    if column.kind != "score" or low is None or high is None:
        return None
    return f"95 % interval {100 * low:.1f} to {100 * high:.1f}"


def _why(column: Column, row: dict[str, Any]) -> str:
    """What a dash means."""
    if column.key == "overall" and row.get("n_unjudged"):
        return f"{int(row['n_unjudged'])} runs wait for a judge"
    if column.kind == "score" and row.get("n_empty"):
        present = _value(row.get("mean_present"))
        there = f"; mean over the runs that are there: {100 * present:.1f}" if present is not None else ""
        return f"{int(row['n_empty'])} planned cells have no scored run{there if column.key == 'overall' else ''}"
    return "not known"


def _best(table: pd.DataFrame, column: Column) -> float | None:
    if column.kind != "score" or column.key not in table or len(table) < 2:
        return None
    best = table[column.key].max()
    return None if pd.isna(best) else float(best)


def _value(value: Any) -> Any:
    """A value, None where it is missing in whatever form."""
    return None if value is None or (not isinstance(value, str) and pd.isna(value)) else value
