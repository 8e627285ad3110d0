"""The results that the AutoMedBench paper (arXiv 2606.01961, June 2026) prints, as reported there: Tables 4, 5 and 9.

None of these numbers was measured by this code. Intervals were not printed; a dash is what was not printed either.
"""

from __future__ import annotations

import pandas as pd

SOURCE = "arXiv 2606.01961, Tables 4, 5 and 9"
LABEL = "Published table (as reported in the paper)"

_TABLE = """\
agent            model                        seg  enh  vqa  report det  overall standard lite minutes turns tokens usd
claude-opus-4.6  anthropic/claude-opus-4.6    67.2 78.3 55.5 55.8   85.7 66.5    81.8 81.1 28.9 35.0 1.27 19.77
glm-5            z-ai/glm-5                   58.0 68.8 64.0 48.6   83.3 61.6    71.9 77.9 30.8 45.9 1.34 2.73
gemini-3.1-pro   google/gemini-3.1-pro-preview 54.7 70.9 62.3 47.7   77.2 59.0    69.7 71.7 23.3 27.3 0.82 5.85
chatgpt-5.4      openai/gpt-5.4               59.4 75.1 36.5 40.8   73.8 55.3    78.9 66.0 22.7 14.0 0.25 3.94
minimax-m2.5     minimax/minimax-m2.5         46.5 74.5 55.8 28.9   80.0 51.6    65.3 66.4 30.3 43.2 1.34 2.70
qwen3.5          qwen/qwen3.5-397b-a17b       42.8 63.5 57.0 38.7   81.4 51.2    61.7 66.6 29.4 31.5 0.88 1.83
"""
_TRACKS = {
    "seg": "segmentation",
    "enh": "enhancement",
    "vqa": "vqa",
    "report": "report",
    "det": "detection",
}


def published_table() -> pd.DataFrame:
    """One row an agent in a board's columns, with ``agentic_standard`` and ``agentic_lite``; scores in [0, 1]."""
    head, *lines = (line.split() for line in _TABLE.splitlines())
    printed = pd.DataFrame(lines, columns=head)
    numbers = printed.drop(columns=["agent", "model"]).astype(float)
    table = printed[["agent", "model"]].copy()
    table["rank"] = range(1, len(table) + 1)
    table["overall"] = numbers["overall"] / 100
    for short, track in _TRACKS.items():
        table[f"track_{track}"] = numbers[short] / 100
    table["agentic_standard"], table["agentic_lite"] = numbers["standard"] / 100, numbers["lite"] / 100
    table["minutes"], table["turns"] = numbers["minutes"], numbers["turns"]
    table["tokens"], table["cost_usd"] = numbers["tokens"] * 1e6, numbers["usd"]
    return table
