"""Leaderboard."""

from __future__ import annotations

import gradio as gr

from space.site import Site


def build(site: Site) -> None:
    table = gr.HTML()

    def show() -> str:
        return f"<p>{len(site.data().runs)} runs</p>"

    site.on_load(show, [table])
