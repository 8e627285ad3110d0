"""A report as pages: HTML that needs nothing else, and Markdown with its figures as files beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from evaluator.fired import TITLES
from hf_datasets import stats
from hf_datasets.failures import TABLE, Cause
from runner.sweep.report import tables
from runner.sweep.report.figures import Dot, code_shares, cost_against_score, panels
from runner.sweep.report.material import CHANGED, NOT_SEALED, NOT_STARTED, Material
from runner.sweep.report.tables import OPEN, TRACKS, Board, Table
from tasks.scoring import STAGE_NAMES


@dataclass(frozen=True)
class Figure:
    """``name`` is that of its file."""

    name: str
    title: str
    svg: str


@dataclass(frozen=True)
class Section:
    """One board of the report."""

    name: str
    present: int
    planned: int
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    missing: Table


def sections(material: Material) -> list[Section]:
    """One section a board, the largest first; runs on different boards are never averaged together."""
    runs = stats.with_boards(material.runs)
    names = [name for name, _ in sorted(Counter(runs["board"]).items(), key=lambda item: (-item[1], item[0]))]
    if not names and material.plan is not None:
        return [_section("no run yet", runs, material, 1)]
    return [
        _section(name, runs[runs["board"] == name], material, number) for number, name in enumerate(names, 1)
    ]


def _section(name: str, runs: pd.DataFrame, material: Material, number: int) -> Section:
    plan = stats.observed_plan(runs) if material.plan is None else material.plan
    cases = material.cases[material.cases["run_id"].isin(runs["run_id"])]
    board = Board.of(runs, cases, plan)
    total = board.means["task_score"].over().iloc[0]
    shown = (
        tables.overall_by_track(board),
        tables.agentic_by_tier(board),
        tables.stages(board),
        tables.resources_by(board, "agent"),
        tables.resources_by(board, "track"),
        tables.errors(board),
        tables.overall_by_codes(board),
        tables.reliability(board),
        tables.comparisons(board),
        tables.ends(board),
    )
    return Section(
        name=stats.board_title(name) if len(runs) else name,
        present=int(total["n_present"]),
        planned=int(total["n_planned"]),
        tables=tuple(table for table in shown if table.rows),
        figures=tuple(figure for figure in _figures(board, f"board{number}-") if figure.svg),
        missing=_missing(board, material),
    )


def _figures(board: Board, prefix: str) -> list[Figure]:
    agents = board.agents()
    tracks = {TRACKS[track]: _dots(board, "overall", track) for track in board.tracks}
    stages = {stage: _dots(board, stage.lower()) for stage in STAGE_NAMES}
    shares = stats.error_shares(board.runs, board.plan).set_index("agent")
    codes = {agent: {str(code): float(shares.loc[agent, code]) for code in TITLES} for agent in agents}
    cost = stats.resources(board.runs, board.plan).set_index("agent")["cost_usd"]
    overall = _dots(board, "overall")
    titles = ("OVERALL with 95 % intervals", "OVERALL by track", "Stages", "Shares of fired error codes",
              "OVERALL over US dollars a run")  # fmt: skip
    drawn = (
        panels(titles[0], {"": overall}),
        panels(titles[1], tracks),
        panels(titles[2], stages),
        code_shares(titles[3], codes),
        cost_against_score(titles[4], overall, [float(cost[agent]) for agent in agents]),
    )
    names = ("overall", "tracks", "stages", "codes", "cost")
    return [Figure(prefix + name, title, svg) for name, title, svg in zip(names, titles, drawn, strict=True)]


def _dots(board: Board, column: str, track: str | None = None) -> list[Dot]:
    """One an agent, in the order of the tables."""
    keys = ("agent",) if track is None else ("agent", "track")
    table = board.means[column].over(*keys)
    if track is not None:
        table = table[table["track"] == track]
    table = table.set_index("agent").reindex(board.agents())
    return [Dot(str(agent), row["mean"], row["low"], row["high"]) for agent, row in table.iterrows()]


def _missing(board: Board, material: Material) -> Table:
    """Every cell that lacks runs, and why, as far as anybody knows."""
    there, anywhere = (
        set(runs[_KEY].itertuples(index=False, name=None)) for runs in (board.runs, material.runs)
    )
    rows = []
    for cell in board.plan.sort_values(["agent", "task", "tier"]).itertuples():
        keys = [(cell.agent, cell.task, cell.tier, repeat) for repeat in range(cell.n_planned)]
        gone = [key for key in keys if key not in there]
        if gone:
            causes = Counter(
                ELSEWHERE if key in anywhere else material.ended.get(key, NOT_STARTED) for key in gone
            )
            why = "; ".join(f"{number} {words_on(cause)}" for cause, number in sorted(causes.items()))
            repeats = " ".join(f"r{key[3]:02d}" for key in gone)
            rows.append((cell.agent, cell.task, cell.tier, f"{len(gone)}/{cell.n_planned}", why, repeats))
    columns = ("agent", "task", "tier", "missing", "why", "repeats")
    return Table("What is missing", "Planned runs without a record that counts.", columns, tuple(rows))


_KEY = ["agent", "task", "tier", "repeat"]
ELSEWHERE = "elsewhere"
_WORDS = {
    ELSEWHERE: "on another board",
    NOT_STARTED: "not started",
    NOT_SEALED: "without a sealed record",
    CHANGED: "made before an input of the lock changed",
}


def words_on(cause: str) -> str:
    """Why a run is missing, in words."""
    return _WORDS.get(cause) or f"{cause} ({TABLE[Cause(cause)].words})"


def html(material: Material, found: list[Section]) -> str:
    return _templates(autoescape=True).get_template("report.html.j2").render(
        material=material, sections=found, unplanned=_unplanned(material), open=OPEN
    )  # fmt: skip


def markdown(material: Material, found: list[Section]) -> str:
    return _templates(autoescape=False).get_template("report.md.j2").render(
        material=material, sections=found, unplanned=_unplanned(material), open=OPEN
    )  # fmt: skip


def _unplanned(material: Material) -> list[str]:
    if material.plan is None:
        return []
    outside = stats.unplanned(material.runs, material.plan)
    return [f"{row.task} {row.tier} {row.agent} r{row.repeat:02d}" for row in outside.itertuples()]


def _templates(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("runner.sweep.report"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = _plain
    return environment


def _plain(text: str) -> str:
    """Text that is only text in Markdown: no markup, no new line, no end of a cell."""
    line = " ".join(text.split())
    return "".join(f"\\{char}" if char in r"\`*_{}[]<>#|!" else char for char in line)
