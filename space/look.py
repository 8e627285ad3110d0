"""How the Space looks: one theme, light and dark, all of it local."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

_ASSETS = Path(__file__).parent / "assets"
_FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "DejaVu Sans Mono", "monospace")


def _texts(ending: str) -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(_ASSETS.glob(f"*{ending}")))


CSS = _texts(".css")
HEAD = f'<meta name="viewport" content="width=device-width, initial-scale=1"><script>{_texts(".js")}</script>'


def theme() -> gr.themes.Base:
    """Plain fonts of the reader's own system: a named web font would be a request to somebody else."""
    base = gr.themes.Base(
        primary_hue="teal",
        neutral_hue="slate",
        font=_FONT,
        font_mono=_MONO,
        radius_size="sm",
        spacing_size="sm",
    )
    return base.set(
        body_background_fill="#ffffff",
        body_background_fill_dark="#0f141a",
        block_background_fill_dark="#161d25",
        background_fill_primary_dark="#0f141a",
        background_fill_secondary_dark="#161d25",
        input_background_fill_dark="#1e2832",
        checkbox_label_background_fill_dark="#1e2832",
        checkbox_border_color_dark="#55636f",
        border_color_primary_dark="#2b3742",
        block_border_color_dark="#2b3742",
        block_border_width="1px",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
    )
