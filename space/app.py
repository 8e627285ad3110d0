"""The Space's page over a folder of run records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
import pandas as pd

from space.board import board_of, leaderboard, read_results

INTRO = """# AutoMedBench
Agents that do medical-AI research, run isolated and scored offline. OVERALL = (AGENTIC + TASK) / 2, all values x100;
S1 Plan, S2 Setup, S3 Validate, S4 Inference, S5 Submit. A dash is a missing value, never a zero."""


def build(results: Path) -> gr.Blocks:
    """The page; records are read again at every visit and every change of the board."""

    def boards() -> Any:
        names = sorted({board_of(record) for record in read_results(results).records})
        return gr.update(choices=names, value=names[0] if names else None)

    def table(board: str | None) -> tuple[pd.DataFrame, str]:
        found = read_results(results)
        shown = tuple(record for record in found.records if board_of(record) == board)
        frame = pd.DataFrame(leaderboard(shown)).astype(object)
        frame = frame.where(frame.notna(), "-")
        problems = "\n".join(f"- `{line}`" for line in found.problems)
        note = (
            f"{len(shown)} runs on this board."
            if shown
            else f"No records under the results folder for {board or 'any board'}."
        )
        return frame, f"{note}\n\nRecords that could not be read:\n{problems}" if problems else note

    with gr.Blocks(title="AutoMedBench", analytics_enabled=False) as page:
        gr.Markdown(INTRO)
        board = gr.Dropdown(label="Board (runs on different ones are never mixed)", choices=[])
        rows = gr.Dataframe(label="Leaderboard", interactive=False, pinned_columns=1)
        note = gr.Markdown()
        page.load(boards, outputs=board).then(table, inputs=board, outputs=[rows, note])
        board.change(table, inputs=board, outputs=[rows, note])
    return page
