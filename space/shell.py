"""What stands above every page: name, navigation, the switch between light and dark, and how old the data are."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

from space.markup import el
from space.pages import PAGES
from space.site import HOME, Site
from space.snapshot import Snapshot

_SHOWN_PROBLEMS = 20
_MARK = Markup(
    '<svg viewBox="0 0 24 24" aria-hidden="true"><rect x="1" y="1" width="22" height="22" rx="6" '
    'fill="var(--amb-accent)"/><path d="M4 13h4l2-6 4 11 2-5h4" fill="none" stroke="var(--amb-on-accent)" '
    'stroke-width="2.2" stroke-linejoin="round" stroke-linecap="round"/></svg>'
)


def top(view: str) -> Markup:
    """Name and navigation; the page that is open is marked."""
    entries = [
        el("a", page.title, href=Site.link(page.view), aria_current="page" if page.view == view else None)
        for page in PAGES
        if page.listed
    ]
    brand = el("a", _MARK, "AutoMedBench", class_="amb-brand", href=Site.link(HOME))
    switch = el("button", "Light / dark", type="button", class_="amb-theme", data_theme_switch=True)
    skip = el("a", "Skip to the content", href="#content", class_="amb-skip")
    nav = el("nav", entries, class_="amb-nav", aria_label="Pages")
    return el("header", skip, brand, nav, switch, class_="amb-top") + el("span", id="content")


def status(snapshot: Snapshot, now: datetime | None = None) -> Markup:
    """What is shown, how old it is, and what could not be read."""
    age = (now or datetime.now(UTC)) - snapshot.loaded_at
    said = el(
        "span",
        el("b", f"{len(snapshot.runs):,} runs"),
        f" from {snapshot.source} · read {_ago(age.total_seconds())}",
    )
    return el("div", said, _problems(snapshot), _failure(snapshot), class_="amb-status", role="status")


def _problems(snapshot: Snapshot) -> Markup | None:
    if not snapshot.problems:
        return None
    shown = snapshot.problems[:_SHOWN_PROBLEMS]
    more = len(snapshot.problems) - len(shown)
    lines = [el("li", line[:600]) for line in shown] + ([el("li", f"and {more:,} more")] if more else [])
    one = len(snapshot.problems) == 1
    summary = f"{len(snapshot.problems):,} {'record' if one else 'records'} left out"
    return el("details", el("summary", summary), el("ul", lines))


def _failure(snapshot: Snapshot) -> Markup | None:
    if snapshot.failure is None:
        return None
    text = f"The results cannot be read now ({snapshot.failure[:600]}). What is shown are the last good ones."
    return el("p", text, class_="amb-note amb-bad")


def _ago(seconds: float) -> str:
    if seconds < 5:
        return "just now"
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {name} ago"
    return f"{seconds:.0f} s ago"
