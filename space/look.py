"""How the Space looks: one theme, light and dark, all of it local."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

_ASSETS = Path(__file__).parent / "assets"
_FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "DejaVu Sans Mono", "monospace")

CSS = (_ASSETS / "space.css").read_text("utf-8")
HEAD = f"<script>{(_ASSETS / 'space.js').read_text('utf-8')}</script>"


def theme() -> gr.themes.Base:
    """Plain fonts of the reader's own system: a named web font would be a request to somebody else."""
    return gr.themes.Base(
        primary_hue="cyan", neutral_hue="slate", font=_FONT, font_mono=_MONO, radius_size="sm"
    )
