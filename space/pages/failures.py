"""Failures: which error codes fire, what they go with, who recovers, and how runs end."""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup

from evaluator.fired import TITLES
from hf_datasets.stats import end_reasons, error_shares, overall_by_codes
from space.boardpage import Asked, build_board_page
from space.boardtable import DASH
from space.charts import Mark, bars, figure, legend, lines, series_legend
from space.markup import el, join, note, table
from space.pages.leaderboard import search
from space.palette import PALETTE
from space.site import Site
from tasks.names import Track

LEAD = (
    "Error codes say what went wrong; they are assigned after a run from its trace and report and never scored. "
    "Several may fire in one run. What goes with them is association, not cause."
)
_COLOURS = dict(PALETTE.codes)
_MAX_LINES = 8


def build(site: Site) -> None:
    build_board_page(site, "Failures", LEAD, _content, has_published=False)


def _content(asked: Asked) -> Markup:
    if asked.board is None:
        return note(
            "As reported in the paper: of all fired codes E1 0.9 %, E3 37.7 %, E5 38.1 %, E2 and E4 together 23.3 %; "
            "runs with one code score 48 % below runs with none. Choose another board for figures by agent.",
            "warning",
        )
    board = asked.board
    agents = list(search(board.table(asked.wanted), asked.search)["agent"])
    if not agents:
        return note("No agent of this board has these words in its name.", "warning")
    runs = board.chosen(asked.wanted)
    plan = board.plan[asked.wanted.cells(board.plan)]
    runs, plan = runs[runs["agent"].isin(agents)], plan[plan["agent"].isin(agents)]
    shares = error_shares(runs, plan)
    return join(
        [
            el("div", _codes(shares, agents, "agent", "Codes by agent"),
               _codes(error_shares(runs, plan, "track"), [track.value for track in Track], "track", "Codes by track"),
               class_="amb-two"),
            legend([(f"{code} {title}", _COLOURS[code]) for code, title in TITLES.items()]),
            el("div", _recovery(shares, agents), _by_number(runs, plan, agents), class_="amb-two"),
            el("div", _subtypes(runs), _ends(runs, plan, agents), class_="amb-two"),
        ]
    )  # fmt: skip


def _codes(shares: pd.DataFrame, names: list[str], by: str, heading: str) -> Markup:
    found = shares.set_index(by)
    rows = []
    for name in names:
        if name not in found.index:
            continue
        parts = [(code, float(found.loc[name, code])) for code in TITLES]
        marks = [Mark(code, _COLOURS[code], share, text=f"{name}, {code} {TITLES[code]}: {100 * share:.1f} %")
                 for code, share in parts]  # fmt: skip
        rows.append((name, marks))
    if not (found[list(TITLES)] > 0).to_numpy().any():
        return el("div", el("h2", heading, class_="amb-h2"), note("No code fired in these runs."))
    chart = figure(
        bars(rows, label=f"Shares of error codes by {by}"), "Of all codes that fired, the share of each"
    )
    return el("div", el("h2", heading, class_="amb-h2"), chart)


def _recovery(shares: pd.DataFrame, agents: list[str]) -> Markup:
    found = shares.set_index("agent")
    rows = []
    for agent in agents:
        row = found.loc[agent]
        rows.append(
            (agent, _percent(row["recovery_rate"]), int(row["n_troubled"]),
             DASH if row["engineering_to_knowledge"] != row["engineering_to_knowledge"]
             else f"{row['engineering_to_knowledge']:.0f} : 1", *(_percent(row[code]) for code in TITLES))
        )  # fmt: skip
    heads = (
        "Agent",
        "Recovered %",
        "of runs with ≥ 2 codes",
        "E2-E5 : E1",
        *(f"{code} %" for code in TITLES),
    )
    return el(
        "div",
        el("h2", "Who recovers", class_="amb-h2"),
        table(
            heads,
            rows,
            caption="Runs with two or more codes that still delivered every case; shares of codes",
        ),
    )


def _by_number(runs: pd.DataFrame, plan: pd.DataFrame, agents: list[str]) -> Markup:
    found = overall_by_codes(runs, plan)
    most = int(found["codes"].max()) if len(found) else 0
    series = []
    for number, agent in enumerate(agents[:_MAX_LINES]):
        rows = found[found["agent"] == agent]
        series.append(
            [Mark(agent, PALETTE.of(number), row.overall, x=row.codes, symbol=PALETTE.symbol(number),
                  text=f"{agent}, {row.codes} codes: {100 * row.overall:.1f} ({row.n_present} runs)")
             for row in rows.itertuples()]
        )  # fmt: skip
    chart = lines(series, [str(count) for count in range(most + 1)], label="OVERALL by number of codes")
    names = series_legend(agents[:_MAX_LINES])
    return el("div", el("h2", "OVERALL by number of codes", class_="amb-h2"),
              figure(chart, "Mean OVERALL x100 of runs with 0, 1, 2 ... different codes", names))  # fmt: skip


def _subtypes(runs: pd.DataFrame) -> Markup:
    counts = runs["error_codes"].explode().dropna().value_counts()
    rows = [(name, f"{count:,}", f"{100 * count / len(runs):.1f}") for name, count in counts.items()]
    return el("div", el("h2", "Sub-types", class_="amb-h2"),
              table(("Code", "Runs", "% of runs"), rows, caption=f"How often each fired in {len(runs):,} runs")
              if rows else note("No code fired in these runs."))  # fmt: skip


def _ends(runs: pd.DataFrame, plan: pd.DataFrame, agents: list[str]) -> Markup:
    found = end_reasons(runs, plan).set_index("agent")
    reasons = [name for name in found.columns if name != "n_planned" and found[name].any()]
    rows = [(agent, *(f"{int(found.loc[agent, name]):,}" for name in reasons)) for agent in agents]
    heads = ("Agent", *(name.replace("_", " ") for name in reasons))
    return el(
        "div",
        el("h2", "How runs end", class_="amb-h2"),
        table(
            heads,
            rows,
            caption="Planned runs by the reason they ended; provider and infra errors are run again",
        ),
    )


def _percent(value: float) -> str:
    return DASH if value != value else f"{100 * value:.1f}"
