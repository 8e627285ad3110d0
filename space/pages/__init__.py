"""The Space's pages, in the order of the navigation bar.

A page is a module with ``build(site: Site) -> None``, called once inside the page's own Blocks context. It reads the
data anew in its events (``site.data()``), never while it is built.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """``view`` is the path and the module's name; ``title`` stands in the navigation bar unless ``listed`` is False."""

    view: str
    title: str
    listed: bool = True


PAGES = (
    Page("leaderboard", "Leaderboard"),
    Page("agent", "Agent", listed=False),
    Page("stages", "Stages"),
    Page("failures", "Failures"),
    Page("cost", "Cost"),
    Page("tasks", "Tasks"),
    Page("run", "Run"),
    Page("compare", "Compare"),
    Page("submit", "Submit"),
    Page("about", "About"),
)
