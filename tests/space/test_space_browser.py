"""The board's pages in a real browser."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_the_leaderboard_opens(space, page, pictures):
    page.goto(space.url())
    page.get_by_text("864 runs").wait_for()
    page.screenshot(path=pictures / "leaderboard.png", full_page=True)
