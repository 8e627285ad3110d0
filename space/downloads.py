"""Tables over HTTP: what a page shows, for spreadsheets and programs, under the address that the page itself has."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from space.boardpage import PUBLISHED, board_named, filter_of
from space.columns import EXPORTED
from space.published import published_table
from space.site import Site, listed
from space.snapshot import Snapshot

FORMATS = ("csv", "json", "parquet")
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
_LISTS = ("track", "task", "tier", "status")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that begins like this."""


def add_downloads(app: FastAPI, site: Site) -> None:
    @app.get("/download/{name}.{form}")
    def download(name: str, form: str, request: Request) -> Response:
        if name not in ("board", "runs") or form not in FORMATS:
            expected = ", ".join(f"{table}.{ending}" for table in ("board", "runs") for ending in FORMATS)
            return PlainTextResponse(
                f"expected one of {expected}; found {name[:80]}.{form[:20]}", status_code=404
            )
        state = dict(request.query_params)
        table = (board_rows if name == "board" else run_rows)(site.data(), state)
        headers = {"Content-Disposition": f'attachment; filename="automedbench-{name}.{form}"'}
        return Response(written(table, form), media_type=_TYPES[form], headers=headers)


def board_rows(snapshot: Snapshot, state: dict[str, str]) -> pd.DataFrame:
    """A board's table with the exported columns; scores in [0, 1], missing values left missing."""
    board = board_named(snapshot, state.get("board"))
    table = published_table() if board is None else board.table(_filter(state))
    table = table.assign(board=PUBLISHED if board is None else board.key)
    return table[[name for name in EXPORTED if name in table]]


def run_rows(snapshot: Snapshot, state: dict[str, str]) -> pd.DataFrame:
    """The runs of a board that pass the filters; with ``agent``, of that one alone."""
    board = board_named(snapshot, state.get("board"))
    runs = snapshot.runs.iloc[:0] if board is None else board.chosen(_filter(state))
    agent = state.get("agent")
    return runs[runs["agent"] == agent] if agent else runs


def written(table: pd.DataFrame, form: str) -> bytes:
    """A table in one of ``FORMATS``."""
    if form == "json":
        text: str = table.to_json(orient="records", date_format="iso", double_precision=10)
        return text.encode() + b"\n"
    if form == "parquet":
        out = io.BytesIO()
        table.to_parquet(out, index=False)
        return out.getvalue()
    plain = table.map(_cell) if len(table) else table
    return plain.to_csv(index=False).encode()  # type: ignore[no-any-return]


def _cell(value: Any) -> Any:
    """Lists as words; a text that a spreadsheet would run gets a quote before it."""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return "'" + value if isinstance(value, str) and value.startswith(_FORMULA) else value


def _filter(state: dict[str, str]) -> Any:
    return filter_of({name: listed(text) if name in _LISTS else text for name, text in state.items()})
