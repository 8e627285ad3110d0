"""Tasks, Submit and About in a real browser."""

from __future__ import annotations

import pytest

from evaluator.metrics.registry import METRICS
from tasks.brief import render
from tasks.registry import all_tasks, load_task
from tasks.schema import Release, Tier

pytestmark = pytest.mark.browser


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")


def test_the_catalogue_is_searched_and_filtered(space, page, new_page, pictures):
    page.goto(space.url("tasks"))
    page.get_by_text(f"{len(all_tasks())} of {len(all_tasks())} tasks").wait_for()
    page.screenshot(path=pictures / "tasks.png", full_page=True)
    page.get_by_label("vqa", exact=True).check()
    vqa = sum(task.track == "vqa" for task in all_tasks())
    page.get_by_text(f"{vqa} of {len(all_tasks())} tasks").wait_for()
    page.get_by_label("Search").fill("pathvqa")
    page.get_by_text(f"1 of {len(all_tasks())} tasks").wait_for()
    page.wait_for_function(
        "location.search.includes('tracks=vqa') && location.search.includes('words=pathvqa')"
    )
    again = new_page(width=390)
    again.goto(page.url)
    again.get_by_text(f"1 of {len(all_tasks())} tasks").wait_for()
    assert fits(again)
    again.get_by_label("Search").fill("nothing is called so")
    again.get_by_text("No task fits").wait_for()


def test_a_task_shows_its_standing_contract_and_briefs(space, page, new_page, pictures):
    task = load_task("kidney-seg-task")
    page.goto(space.url("tasks"))
    page.get_by_role("link", name=task.title).click()
    page.locator(".amb-standing-row").first.wait_for()
    assert "doing nothing (empty mask)" in page.locator("#task-body").inner_text()
    page.screenshot(path=pictures / "task-standing.png", full_page=True)
    page.get_by_text("Contract", exact=True).click()
    page.get_by_text("outputs/<case>/lesion.nii.gz").first.wait_for()
    page.get_by_text("Standard brief", exact=True).click()
    page.locator("#task-body pre.amb-long").wait_for()
    brief = render(task, Tier.STANDARD, release=Release.LITE, n_cases=task.cases or 20)
    assert page.locator("#task-body pre.amb-long").text_content() == brief.text
    page.wait_for_function("location.search.includes('part=Standard')")
    again = new_page(width=390, color_scheme="dark")
    again.goto(page.url)
    again.locator("#task-body pre.amb-long").wait_for()
    assert fits(again)
    again.screenshot(path=pictures / "task-phone-dark.png")
    page.goto(space.url("tasks", task="<script>no"))
    page.get_by_text("unknown task '<script>no'").wait_for()


def test_a_record_is_checked_before_anything_is_sent(space, big_results, page, tmp_path, pictures):
    record = next(big_results.glob("vqa-rad-task/lite/*/r00/record.json"))
    page.goto(space.url("submit"))
    page.get_by_text("From a run to the board").wait_for()
    page.locator("#submit-file input[type=file]").set_input_files(record)
    page.get_by_text("All 1 runs can be sent.").wait_for()
    assert "known" in page.locator("#submit-result").inner_text()
    bad = tmp_path / "record.json"
    bad.write_text(record.read_text().replace('"overall": ', '"overall": 7'))
    page.reload()
    page.get_by_text("From a run to the board").wait_for()
    page.locator("#submit-file input[type=file]").set_input_files(bad)
    page.get_by_text("1 of 1 runs cannot be sent as they are.").wait_for()
    assert "overall: Input should be less than or equal to 1" in page.locator("#submit-result").inner_text()
    assert fits(page)
    page.screenshot(path=pictures / "submit.png", full_page=True)


def test_a_link_says_whether_a_run_is_there(space, page):
    page.goto(space.url("submit", run="not-there"))
    page.get_by_text("hold no run not-there").wait_for()


def test_about_defines_every_metric_and_restores_its_part(space, page, new_page, pictures):
    page.goto(space.url("about"))
    page.get_by_text("AutoMedBench measures agents").wait_for()
    page.screenshot(path=pictures / "about.png", full_page=True)
    page.get_by_text("Metrics", exact=True).click()
    page.locator("#about-body tbody tr").first.wait_for()
    assert page.locator("#about-body tbody tr").count() == len(METRICS)
    page.wait_for_function("location.search.includes('part=Metrics')")
    for part, words in {"Scoring": "OVERALL", "Limits": "A rank is not a difference",
                        "Cite": "@misc", "Changelog": "Record schema 1"}.items():  # fmt: skip
        again = new_page(width=390, color_scheme="dark")
        again.goto(space.url("about", part=part))
        again.get_by_text(words).first.wait_for()
        assert fits(again), part
        again.screenshot(path=pictures / f"about-{part.lower()}-phone-dark.png")
