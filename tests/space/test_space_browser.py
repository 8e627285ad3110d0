"""The board's pages in a real browser, on results of the size of a real experiment."""

from __future__ import annotations

import csv
import re

import pytest

pytestmark = pytest.mark.browser

BOARD = "#board-content"
PAGES = {"leaderboard": ".amb-board", "stages": ".amb-heats", "failures": ".amb-chart", "cost": ".amb-chart"}


def column(page, key):
    """The texts of a column, top to bottom."""
    return page.evaluate(
        """(key) => { const table = document.querySelector('#board-content table[data-sortable]');
        const place = [...table.tHead.rows[0].cells].findIndex((cell) => cell.dataset.key === key);
        return [...table.tBodies[0].rows].map((row) => row.cells[place].innerText.trim()); }""",
        key,
    )


def agents(page):
    return page.locator(f"{BOARD} tbody th").evaluate_all("(cells) => cells.map((cell) => cell.dataset.sort)")


def opened(page, url, wanted=".amb-board"):
    page.goto(url)
    page.locator(f"{BOARD} {wanted}").first.wait_for()
    return page


@pytest.mark.parametrize("view", PAGES)
def test_every_page_opens_in_light_dark_and_on_a_phone(space, new_page, pictures, view):
    for name, options in {
        "light": {}, "dark": {"color_scheme": "dark"}, "phone": {"width": 390, "height": 844},
    }.items():  # fmt: skip
        page = opened(new_page(**options), space.url(view), PAGES[view])
        page.get_by_text("864 runs").first.wait_for()
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", dark)[:3])) < 200) == (name == "dark")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), (
            "the page scrolls sideways"
        )
        page.screenshot(path=pictures / f"{view}-{name}.png", full_page=True)


def test_the_leaderboard_has_every_column_with_its_definition(space, page):
    opened(page, space.url())
    assert agents(page) == ["cirrus", "nimbus", "stratus"]
    heads = page.locator(f"{BOARD} thead abbr").all_inner_texts()
    assert heads == [
        "Agent", "OVERALL", "AGENTIC", "TASK", "S1", "S2", "S3", "S4", "S5", "Seg", "Enh", "VQA", "Report", "Det",
        "Cls", "Syn", "USD", "Turns", "Min", "Failed %", "Runs", "Model", "Badges",
    ]  # fmt: skip
    definitions = [abbr.get_attribute("title") for abbr in page.locator(f"{BOARD} thead abbr").all()]
    assert all(len(text) > 15 for text in definitions)
    assert re.fullmatch(r"\d\d\.\d ±\d\.\d", column(page, "overall")[0])
    assert "rules" in column(page, "badges")[0]


def test_filters_narrow_the_board_and_the_address_restores_them(space, page, new_page):
    opened(page, space.url())
    all_runs = column(page, "coverage")
    page.get_by_label("lite", exact=True).check()
    page.locator(f"{BOARD} caption", has_text="432 runs").wait_for()
    tracks = page.get_by_label("Tracks (none: all)")
    tracks.click()
    page.get_by_role("option", name="vqa", exact=True).click()
    page.locator(f"{BOARD} caption", has_text="81 runs").wait_for()
    page.keyboard.press("Escape")
    assert column(page, "coverage") != all_runs
    page.wait_for_function("location.search.includes('tier=lite') && location.search.includes('track=vqa')")
    page.get_by_label("Search agent or model").fill("NIMB")
    page.wait_for_function("document.querySelectorAll('#board-content tbody tr').length === 1")
    page.wait_for_function("location.search.includes('q=NIMB')")
    again = opened(new_page(), page.url)
    again.locator(f"{BOARD} caption", has_text="81 runs").wait_for()
    assert agents(again) == ["nimbus"]
    assert again.get_by_label("lite", exact=True).is_checked()
    assert again.get_by_label("Search agent or model").input_value() == "NIMB"
    assert column(again, "overall") == column(page, "overall")


def test_sorting_by_a_click_and_by_an_address(space, page, new_page):
    opened(page, space.url())
    by = page.locator(f"{BOARD} th[data-key=cost_usd] button")
    by.click()
    costs = [float(text) for text in column(page, "cost_usd")]
    assert costs == sorted(costs)
    assert page.locator(f"{BOARD} th[data-key=cost_usd]").get_attribute("aria-sort") == "ascending"
    by.click()
    assert [float(text) for text in column(page, "cost_usd")] == sorted(costs, reverse=True)
    assert "sort=-cost_usd" in page.url
    page.get_by_label("standard", exact=True).check()
    page.locator(f"{BOARD} caption", has_text="432 runs").wait_for()
    assert agents(page) == ["cirrus", "nimbus", "stratus"]
    again = opened(new_page(), space.url(sort="overall"))
    assert agents(again) == ["stratus", "nimbus", "cirrus"]


def test_columns_are_chosen_and_remembered_in_the_address(space, page, new_page):
    opened(page, space.url())
    page.get_by_role("button", name="Columns").click()
    page.locator("#columns").get_by_label("S3", exact=True).uncheck()
    page.locator(f"{BOARD} th[data-key=s3]").wait_for(state="detached")
    page.wait_for_function("location.search.includes('cols=')")
    again = opened(new_page(), page.url)
    assert again.locator(f"{BOARD} th[data-key=s3]").count() == 0
    assert again.locator(f"{BOARD} th[data-key=s2]").count() == 1


def test_a_board_is_downloaded_as_it_is_shown(space, page):
    opened(page, space.url(tier="lite", track="vqa"))
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV", exact=True).click()
    rows = list(csv.DictReader(waiting.value.path().read_text().splitlines()))
    assert [row["agent"] for row in rows] == agents(page)
    assert f"{100 * float(rows[0]['overall']):.1f}" == column(page, "overall")[0].split()[0]
    assert {row["n_present"] for row in rows} == {"27"}


def test_from_an_agent_to_its_runs_to_one_run(space, page, pictures, watched):
    # Pages are left by a click while Gradio still talks to the server, and its script says so.
    watched.allowed = ("Connection errored out",)
    opened(page, space.url(tier="lite"))
    page.get_by_role("link", name="nimbus").click()
    page.get_by_text("nimbus: 144 runs, page 1 of 2").wait_for()
    page.screenshot(path=pictures / "agent-light.png")
    assert "tier=lite" in page.url
    page.locator("details summary", has_text="By task and tier").click()
    page.get_by_role("link", name="vqa-rad-task", exact=True).click()
    page.get_by_text("nimbus: 3 runs, page 1 of 1").wait_for()
    page.get_by_role("link", name="vqa-rad-task r01").click()
    page.wait_for_url("**/run?run=vqa-rad-task.lite.nimbus.r01-*")
    page.locator("#run-head", has_text="nimbus").wait_for()


def test_the_other_pages_keep_their_filters_in_the_address(space, page, new_page):
    opened(page, space.url("cost", axis="turns"), ".amb-chart")
    assert page.get_by_label("Turns").is_checked()
    assert "Replies a run" in page.locator(f"{BOARD} svg").first.text_content()
    page.get_by_label("Tokens").check()
    page.locator(f"{BOARD} svg text", has_text="Tokens a run").wait_for()
    page.wait_for_function("location.search.includes('axis=tokens')")
    for view in ("stages", "failures"):
        again = opened(new_page(), space.url(view, track="vqa"), PAGES[view])
        shown = again.locator(BOARD).inner_text()
        assert "VQA" in shown or "vqa" in shown
        assert "segmentation" not in shown


def test_charts_have_a_text_and_error_bars(space, page):
    opened(page, space.url())
    chart = page.get_by_role("img", name="OVERALL of 3 agents")
    assert chart.locator("path.whisker").count() == 3
    assert "95 % interval" in chart.locator("circle title").first.text_content()
    opened(page, space.url("stages"), ".amb-heats")
    assert page.get_by_role("img", name="Stage profile of 3 agents").locator("path.whisker").count() == 15


def test_a_phone_keeps_the_agent_in_sight(space, new_page):
    page = opened(new_page(width=390, height=844), space.url())
    first = page.locator(f"{BOARD} tbody th").first
    before = first.bounding_box()["x"]
    page.locator(f"{BOARD} .amb-board").evaluate("(box) => { box.scrollLeft = 500; }")
    assert page.locator(f"{BOARD} .amb-board").evaluate("(box) => box.scrollLeft") == 500
    assert abs(first.bounding_box()["x"] - before) < 2


def test_the_keyboard_alone_reaches_navigation_filters_sorting_and_rows(space, page):
    opened(page, space.url())
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.innerText?.trim() || document.activeElement.ariaLabel")
        )
        if reached[-1] == "cirrus":
            break
    assert [word for word in reached if word in ("Skip to the content", "Stages", "OVERALL", "cirrus")] == [
        "Skip to the content", "Stages", "OVERALL", "cirrus",
    ]  # fmt: skip
    page.locator(f"{BOARD} th[data-key=overall] button").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert agents(page) == ["stratus", "nimbus", "cirrus"]
    page.get_by_role("link", name="stratus").focus()
    page.keyboard.press("Enter")
    page.get_by_text("stratus: 288 runs").wait_for()


def test_light_and_dark_are_switched_and_remembered(space, page):
    opened(page, space.url())
    page.get_by_role("button", name="Light / dark").click()
    assert page.evaluate("document.body.classList.contains('dark')")
    page.get_by_role("link", name="Stages").click()
    page.locator(f"{BOARD} .amb-heats").first.wait_for()
    assert page.evaluate("document.body.classList.contains('dark')")


def test_the_published_table_is_said_to_be_reported(space, page):
    opened(page, space.url(board="published"))
    assert agents(page)[0] == "claude-opus-4.6"
    assert column(page, "overall") == ["66.5", "61.6", "59.0", "55.3", "51.6", "51.2"]
    page.get_by_text("As reported in the paper").first.wait_for()
