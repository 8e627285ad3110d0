"""The tables for programs: endpoints that ``gradio_client`` calls by name, documented by their signatures.

    from gradio_client import Client
    client = Client("http://127.0.0.1:7860")
    client.predict(api_name="/boards")
    client.predict(board, ["vqa"], [], ["lite"], api_name="/leaderboard")

Scores lie in [0, 1]; what is missing is null. The functions' docstrings are what the API's page shows.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr
import pandas as pd

from space.boardpage import PUBLISHED
from space.boards import board_title
from space.downloads import board_rows, run_rows, written
from space.published import LABEL
from space.site import Site

MOST_RUNS = 1000


def add_api(site: Site) -> None:
    """Register the endpoints; called inside the Blocks context of the first page."""

    def boards() -> list[dict[str, Any]]:
        """All boards: key, title and number of runs. Runs of different boards are never averaged together."""
        found = [
            {"board": key, "title": board_title(key), "runs": len(board.runs)}
            for key, board in site.data().boards.items()
        ]
        return [*found, {"board": PUBLISHED, "title": LABEL, "runs": 0}]

    def leaderboard(
        board: str = "", track: list[str] | None = None, task: list[str] | None = None, tier: list[str] | None = None,
        status: list[str] | None = None, since: str = "", until: str = "",
    ) -> list[dict[str, Any]]:  # fmt: skip
        """One row an agent, best first. board: a key from /boards, "" for the first one. track, task, tier, status:
        take only these; None or empty for all. since, until: days such as 2026-05-31 on which runs ended."""
        return _rows(board_rows(site.data(), _state(site, board, track, task, tier, status, since, until)))

    def runs(
        board: str = "", agent: str = "", track: list[str] | None = None, task: list[str] | None = None,
        tier: list[str] | None = None, start: int = 0, count: int = 100,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """The runs of a board in the published columns, from number start on, at most 1000 at once."""
        found = run_rows(site.data(), _state(site, board, track, task, tier, None, "", "") | {"agent": agent})
        first = max(0, start)
        return _rows(found.iloc[first : first + min(max(0, count), MOST_RUNS)])

    def run(run_id: str) -> dict[str, Any]:
        """The whole record of one run, its rubric items and limits included; empty where there is none."""
        found = site.data().run(run_id)
        return found.record.model_dump(mode="json") if found else {}

    def status() -> dict[str, Any]:
        """Where the results come from, when they were read, and what could not be read."""
        data = site.data()
        return {
            "source": data.source, "loaded_at": data.loaded_at.isoformat(), "runs": len(data.runs),
            "problems": list(data.problems), "failure": data.failure, "is_demo": data.is_demo,
        }  # fmt: skip

    for endpoint in (boards, leaderboard, runs, run, status):
        gr.api(endpoint, api_name=endpoint.__name__, queue=False)


def _state(
    site: Site, board: str, track: list[str] | None, task: list[str] | None, tier: list[str] | None,
    status: list[str] | None, since: str, until: str,
) -> dict[str, str]:  # fmt: skip
    known = [*site.data().boards, PUBLISHED]
    if board and board not in known:
        raise gr.Error(f"there is no board {board[:200]!r}; /boards lists them", print_exception=False)
    lists = {"track": track, "task": task, "tier": tier, "status": status}
    return {"board": board, "since": since, "until": until} | {
        name: ",".join(map(str, values or ())) for name, values in lists.items()
    }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON knows them: times as text, what is missing as null."""
    rows: list[dict[str, Any]] = json.loads(written(table, "json"))
    return rows
