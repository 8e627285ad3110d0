"""Odd results in a real browser: the page stays up and says what is wrong."""

from __future__ import annotations

import json
import shutil

import pytest

from hf_datasets.records import dump_record

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror=\"document.title='hacked'\">"
BOARD = "#board-content"


def test_hostile_corrupt_unjudged_and_missing_runs_and_a_source_that_breaks(
    serve, page, results, record, pictures
):
    hostile = record(agent="hostile", model=EVIL, overall=0.6, cost_usd=3.0, end_detail=EVIL)
    folder = results(
        hostile, record(agent="good", overall=0.9, cost_usd=None), record(agent="unjudged", overall=None, s1=None),
        record(agent="worst", overall=0.0, cost_usd=1.0),
    )  # fmt: skip
    damaged = folder / EVIL.replace("/", "-")
    damaged.mkdir()
    (damaged / "record.json").write_text("{")
    newer = folder / "newer"
    newer.mkdir()
    (newer / "record.json").write_text(json.dumps(json.loads(dump_record(hostile)) | {"schema_version": 9}))
    space = serve("--results", folder, "--refresh", "0.5")
    page.goto(space.url())
    page.locator(f"{BOARD} .amb-board").wait_for()

    def agents():
        return page.locator(f"{BOARD} tbody th").evaluate_all(
            "(cells) => cells.map((cell) => cell.dataset.sort)"
        )

    # What is missing is a dash and stands last, whichever way one sorts.
    assert agents() == ["good", "hostile", "worst", "unjudged"]
    for key, upwards, downwards in (
        ("overall", ["worst", "hostile", "good", "unjudged"], ["good", "hostile", "worst", "unjudged"]),
        ("cost_usd", ["worst", "hostile"], ["hostile", "worst"]),
    ):
        button = page.locator(f"{BOARD} th[data-key={key}] button")
        seen = []
        for _ in range(2):
            button.click()
            seen.append(agents()[: len(upwards)])
        assert sorted(seen) == sorted([upwards, downwards])
    row = page.locator(f"{BOARD} tbody tr", has_text="unjudged")
    assert "–" in row.inner_text()
    assert "judge" in row.locator("td.none").first.get_attribute("title")

    # Markup of a record is text; a damaged and a newer record are named.
    assert EVIL in page.locator(f"{BOARD} tbody tr", has_text="hostile").inner_text()
    page.locator("#status summary", has_text="2 records left out").press("Enter")
    page.get_by_text("schema version 9").wait_for()
    assert EVIL.replace("/", "-") in page.locator("#status").inner_text()
    assert page.title() == "AutoMedBench"
    page.screenshot(path=pictures / "odd-results.png", full_page=True)

    # The source goes away: the last good results stay, and the page says so; and it comes back.
    shutil.move(folder, folder.with_name("gone"))
    page.wait_for_timeout(1500)
    page.reload()
    page.get_by_text("cannot be read now").wait_for()
    page.locator(f"{BOARD} .amb-board").wait_for()
    assert len(agents()) == 4
    page.screenshot(path=pictures / "broken-source.png", full_page=True)
    shutil.move(folder.with_name("gone"), folder)
    shutil.rmtree(damaged)
    page.wait_for_timeout(1500)
    page.reload()
    page.get_by_text("1 record left out").wait_for()
    assert page.get_by_text("cannot be read now").count() == 0


def test_an_empty_folder_shows_the_published_table_and_says_there_are_no_runs(serve, page, tmp_path):
    (tmp_path / "nothing").mkdir()
    space = serve("--results", tmp_path / "nothing")
    for view in ("", "stages", "failures", "cost", "agent"):
        page.goto(space.url(view))
        page.locator(f"{BOARD} .amb-note, {BOARD} .amb-board").first.wait_for()
        page.get_by_text("0 runs").first.wait_for()
