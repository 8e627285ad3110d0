"""Compare in a real browser, on every track."""

from __future__ import annotations

import re

import pytest

from hf_datasets.records import load_record

pytestmark = pytest.mark.browser

BODY = "#compare-body"
TRACKS = {
    "segmentation": "kidney-seg-task", "enhancement": "ldct-denoising-task", "vqa": "vqa-rad-task",
    "report": "iu-xray-report-task", "detection": "bccd-det-task", "classification": "skin-lesion-cls-task",
    "synthesis": "synthrad2025-mrct-task",
}  # fmt: skip


def opened(page, url):
    page.goto(url)
    page.locator(f"{BODY} figure").first.wait_for()
    return page


def drawn(page):
    """The first slice that is shown, as the browser holds it."""
    return page.locator(f"{BODY} .amb-slice").first.get_attribute("src")


def wait_for_another(page, before):
    page.wait_for_function(
        f"(before) => document.querySelector('{BODY} .amb-slice')?.getAttribute('src') !== before", arg=before
    )


@pytest.mark.parametrize("track", TRACKS)
def test_two_runs_and_the_reference_on_every_track(drawn_space, page, new_page, pictures, track):
    opened(page, drawn_space.url("compare", task=TRACKS[track]))
    names = page.locator(f"{BODY} .amb-side figcaption strong").all_inner_texts()
    assert {"cirrus lite r00", "stratus lite r00", "reference"} <= set(names)
    assert page.locator(f"{BODY} img:not([alt])").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    page.screenshot(path=pictures / f"compare-{track}.png", full_page=True)
    first = page.get_by_label("Case (what the runs scored on it)").input_value()
    page.get_by_role("button", name="Next case").click()
    page.locator(f"{BODY} .amb-note.amb-bad").first.wait_for()  # the second case of stratus is damaged
    assert page.get_by_label("Case (what the runs scored on it)").input_value() != first
    page.wait_for_function("location.search.includes('case=')")
    again = opened(new_page(width=390, color_scheme="dark"), page.url)
    again.locator(f"{BODY} .amb-note.amb-bad").first.wait_for()
    assert again.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    assert not again.evaluate("window.hacked")
    again.screenshot(path=pictures / f"compare-{track}-phone-dark.png", full_page=True)


def test_slices_planes_and_layers_of_masks(drawn_space, page, new_page):
    opened(page, drawn_space.url("compare", task=TRACKS["segmentation"]))
    slider = page.get_by_role("slider", name="Axial slice")
    before = drawn(page)
    slider.focus()
    slider.press("ArrowRight")  # by keyboard alone
    wait_for_another(page, before)
    place = page.evaluate("new URLSearchParams(location.search).get('z')")
    assert f"axial slice {place} of" in page.locator(f"{BODY} .amb-slice").first.get_attribute("alt")
    page.get_by_text("agreement", exact=True).click()
    page.get_by_text("not in reference (false)").wait_for()
    page.get_by_text("three planes", exact=True).click()
    page.wait_for_function(f"document.querySelectorAll('{BODY} .amb-slice').length === 9")
    assert page.get_by_role("slider", name="Sagittal slice").is_visible()
    page.wait_for_function(
        "location.search.includes('view=three') && location.search.includes('layer=agreement')"
    )
    again = opened(new_page(), page.url)
    assert again.locator(f"{BODY} .amb-slice").count() == 9
    assert drawn(again) == drawn(page)


def test_the_swipe_moves_by_keyboard(drawn_space, page):
    opened(page, drawn_space.url("compare", task=TRACKS["enhancement"]))
    bar = page.get_by_role("slider", name=re.compile("Bar between input and"))
    bar.focus()
    bar.press("ArrowRight")
    assert page.locator(".amb-swipe").evaluate("box => box.style.getPropertyValue('--cut')") == "51%"
    page.get_by_label("Right of the bar").click()
    page.get_by_role("option", name="reference").click()
    page.get_by_role("slider", name="Bar between input and reference").wait_for()


def test_the_threshold_of_boxes(drawn_space, page, new_page):
    opened(page, drawn_space.url("compare", task=TRACKS["detection"]))
    counts = page.locator(f"{BODY} .amb-counts").first
    everything = counts.inner_text()
    slider = page.get_by_role("slider", name="Least score of a box")
    slider.focus()
    slider.press("End")
    page.wait_for_function(
        f"(before) => document.querySelector('{BODY} .amb-counts').innerText !== before", arg=everything
    )
    assert counts.inner_text().startswith("0 of")
    page.wait_for_function("location.search.includes('threshold=1')")
    again = opened(new_page(), page.url)
    assert again.locator(f"{BODY} .amb-counts").first.inner_text() == counts.inner_text()


def test_one_run_three_runs_and_none(drawn_space, drawn_results, page):
    run = load_record(drawn_results / TRACKS["vqa"] / "lite" / "cirrus" / "r00" / "record.json").run_id
    opened(page, drawn_space.url("compare", task=TRACKS["vqa"], runs=run))
    assert page.locator(f"{BODY} .amb-side figcaption strong").all_inner_texts() == [
        "cirrus lite r00",
        "reference",
    ]
    page.goto(drawn_space.url("compare", task="no-such-task"))
    page.get_by_text("There is no task no-such-task").wait_for()


def test_without_staged_data_the_runs_own_pictures_are_shown(space, serve, drawn_results, page, pictures):
    running = serve("--results", drawn_results)
    opened(page, running.url("compare", task=TRACKS["segmentation"]))
    assert "started without staged data" in page.locator(BODY).inner_text()
    image = page.locator(f"{BODY} .amb-preview").first
    image.scroll_into_view_if_needed()
    page.wait_for_function(f"document.querySelector('{BODY} .amb-preview').naturalWidth > 0")
    page.get_by_text("What was handed in, without the input").click()
    page.locator(f"{BODY} .amb-slice").first.wait_for()
    page.screenshot(path=pictures / "compare-previews.png", full_page=True)
