"""Stages: where in a run agents win and lose, S1 to S5, by track, by tier and by rubric item."""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup

from evaluator.rubric import RubricError, load_rubric
from hf_datasets.stats import tier_change
from space.board import Board
from space.boardpage import Asked, build_board_page
from space.charts import Mark, figure, lines, series_legend
from space.columns import STAGES, track_title
from space.heat import heat_table
from space.markup import el, join, note
from space.pages.leaderboard import search
from space.palette import PALETTE
from space.published import SOURCE, published_table
from space.site import Site
from tasks.names import Track
from tasks.scoring import STAGE_NAMES

LEAD = (
    "S1 Plan, S2 Setup and S3 Validate are judged from trace and artifacts; S4 Inference and S5 Submit are computed. "
    "All x100."
)
_MAX_LINES = 8


def build(site: Site) -> None:
    build_board_page(site, "Stages", LEAD, lambda asked: _content(asked))


def _content(asked: Asked) -> Markup:
    if asked.board is None:
        return _published()
    board, found = asked.board, search(asked.board.table(asked.wanted), asked.search)
    if found.empty:
        return note("No agent of this board has these words in its name.", "warning")
    agents = list(found["agent"])
    shown = agents[:_MAX_LINES]
    profiles = [_profile(row, number) for number, row in enumerate(found.head(_MAX_LINES).to_dict("records"))]
    profile = figure(
        lines(profiles, list(_PLACES), label=f"Stage profile of {len(shown)} agents"),
        "Profile: mean of each stage, whiskers 95 % bootstrap interval",
        series_legend(shown),
    )  # fmt: skip
    sides = el("div", el("div", el("h2", "Who wins where", class_="amb-h2"), profile),
               el("div", el("h2", "Lite and Standard tier", class_="amb-h2"), _tiers(board, asked, agents)),
               class_="amb-two")  # fmt: skip
    return join(
        [
            el("h2", "Stages by agent", class_="amb-h2"),
            _by_agent(found),
            sides,
            el("h2", "Stages by agent and track", class_="amb-h2"),
            _by_track(board, asked, agents),
            el("h2", "Rubric items", class_="amb-h2"),
            _items(asked, board, agents),
        ]
    )


def _published() -> Markup:
    """AGENTIC by tier is all of the stages that the paper prints as numbers."""
    table = published_table()
    series = [
        [Mark(row["agent"], PALETTE.of(number), row[f"agentic_{tier}"], x=place, symbol=PALETTE.symbol(number),
              text=f"{row['agent']}, {tier}: {100 * row[f'agentic_{tier}']:.1f}")
         for place, tier in enumerate(("standard", "lite"))]
        for number, row in enumerate(table.to_dict("records"))
    ]  # fmt: skip
    chart = lines(series, list(_TIER_PLACES), label="AGENTIC by tier, as reported")
    names = series_legend(list(table["agent"]))
    text = f"As reported in the paper ({SOURCE}); stage scores were printed as a picture only. Filters do not apply."
    return join([note(text, "warning"), figure(chart, "AGENTIC x100 by tier", names)])


_TIER_PLACES = ("Standard (choose within bounds)", "Lite (a named method)")
_PLACES = tuple(f"{stage} {name}" for stage, name in STAGE_NAMES.items())
_HEADS = [(column.title, column.text) for column in STAGES]


def _profile(row: dict[str, float], number: int) -> list[Mark]:
    agent = str(row["agent"])
    marks = []
    for place, column in enumerate(STAGES):
        mean, low, high = (_known(row[f"{column.key}{end}"]) for end in ("", "_low", "_high"))
        if mean is not None:
            text = f"{agent}, {column.title}: {100 * mean:.1f}"
            marks.append(Mark(agent, PALETTE.of(number), mean, x=place, low=low, high=high, text=text,
                              symbol=PALETTE.symbol(number)))  # fmt: skip
    return marks


def _by_agent(table: pd.DataFrame) -> Markup:
    rows = []
    for row in table.to_dict("records"):
        cells = []
        for column in STAGES:
            low, high = _known(row[f"{column.key}_low"]), _known(row[f"{column.key}_high"])
            text = "" if low is None or high is None else f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
            cells.append((_known(row[column.key]), text))
        rows.append((row["agent"], cells))
    return heat_table("Agent", _HEADS, rows, "Mean of each stage x100, run-weighted over the planned cells")


def _by_track(board: Board, asked: Asked, agents: list[str]) -> Markup:
    means = {column.key: board.means(column.key, asked.wanted).over("agent", "track") for column in STAGES}
    tables = {key: table.set_index(["agent", "track"])["mean"] for key, table in means.items()}
    tracks = sorted({track for _, track in next(iter(tables.values())).index})
    heads = [(f"{track_title(track)} {column.title}", column.text) for track in tracks for column in STAGES]
    rows = []
    for agent in agents:
        cells = [
            (_known(tables[column.key].get((agent, track))), f"{agent}, {track}, {column.title}")
            for track in tracks
            for column in STAGES
        ]
        rows.append((agent, cells))
    return heat_table("Agent", heads, rows, "Mean of each stage x100 on each track")


def _tiers(board: Board, asked: Asked, agents: list[str]) -> Markup:
    change = tier_change(board.means("agentic", asked.wanted), "agent").set_index("agent")
    there = [
        agent
        for agent in agents
        if agent in change.index and change.loc[agent, "lite"] == change.loc[agent, "lite"]
    ]
    if not there:
        return note("No task of this choice was run in both tiers.")
    series = []
    for agent in there[:_MAX_LINES]:
        row = change.loc[agent]
        said = f"{agent}: Standard {100 * row['standard']:.1f}, Lite {100 * row['lite']:.1f}"
        number = agents.index(agent)
        series.append([Mark(agent, PALETTE.of(number), row[tier], x=place, symbol=PALETTE.symbol(number), text=said)
                       for place, tier in enumerate(("standard", "lite"))])  # fmt: skip
    chart = lines(series, list(_TIER_PLACES), label="AGENTIC by tier",
                  height=240)  # fmt: skip
    rows = [el("li", el("b", agent), f": {_change(change.loc[agent])}") for agent in there]
    caption = "AGENTIC by tier, on tasks run in both; does more help raise the score?"
    return join([figure(chart, caption), el("ul", rows)])


def _change(row: pd.Series) -> str:
    points, low, high = (100 * row[name] for name in ("difference", "low", "high"))
    interval = f" (95 % interval {low:+.1f} to {high:+.1f})" if low == low else ""
    return f"{points:+.1f} points with more help{interval}, {100 * row['relative']:+.1f} %"


def _items(asked: Asked, board: Board, agents: list[str]) -> Markup:
    """How often each yes/no item holds; S3 is a level, its mean stands there."""
    runs = board.chosen(asked.wanted)
    items = asked.snapshot.items
    items = items[items["run_id"].isin(set(runs["run_id"]))].merge(runs[["run_id", "agent"]], on="run_id")
    if items.empty:
        return note("The items of these runs were not published.")
    grouped = items.groupby(["item", "agent"], observed=True)["value"].agg(["mean", "count"])
    order = items.drop_duplicates("item").sort_values("stage", kind="stable")
    questions = _questions()
    rows = []
    for item, stage in zip(order["item"], order["stage"], strict=True):
        cells = []
        for agent in agents:
            found = grouped.loc[(item, agent)] if (item, agent) in grouped.index else None
            cells.append((_known(found["mean"]) if found is not None else None,
                          f"{int(found['count'])} runs" if found is not None else ""))  # fmt: skip
        rows.append(
            (el("abbr", f"{stage} {str(item).replace('_', ' ')}", title=questions.get(str(item), "")), cells)
        )
    heads = [(agent, f"Share of {agent}'s runs that pass the item") for agent in agents]
    return heat_table(
        "Item", heads, rows, "Share of runs in % that pass the item, of those it applies to (S3: mean level)"
    )


def _questions() -> dict[str, str]:
    texts: dict[str, str] = {}
    for track in Track:
        try:
            texts |= {item.id: item.question for item in load_rubric(track).items if item.id not in texts}
        except RubricError:
            continue
    return texts


def _known(value: object) -> float | None:
    number = float(value) if isinstance(value, int | float) else None
    return None if number is None or number != number else number
