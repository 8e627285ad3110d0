"""The run's page in a real browser: drill-down, trace, what is missing, hostile text."""

from __future__ import annotations

import json
import shutil

import pytest

from benchmarks.made_runs import make_run, write_run
from evaluator.trace import Exec, Reply, RunStarted
from hf_datasets.records import dump_record, load_record
from tasks.names import Tier
from tasks.registry import load_task

pytestmark = pytest.mark.browser

BODY = "#run-body"
SECTIONS = ("Overview", "Rubric items", "Cases", "Errors", "Plan", "Trace", "Provenance")
EVIL = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"


ANYTHING = ":is(.amb-section, .amb-note, .amb-table, .amb-event)"


def opened(page, url, wanted=ANYTHING):
    page.goto(url)
    page.locator(f"{BODY} >> {wanted}").first.wait_for()
    return page


def run_id(results, task="kidney-seg-task", agent="stratus"):
    return load_record(results / task / "lite" / agent / "r00" / "record.json").run_id


def choose(page, section, wanted):
    page.locator("#run-sections").get_by_text(section, exact=True).click()
    page.locator(f"{BODY} >> {wanted}").first.wait_for()


def test_every_section_opens_and_its_address_restores_it(
    drawn_space, drawn_results, page, new_page, pictures
):
    run = run_id(drawn_results)
    opened(page, drawn_space.url("run", run=run))
    wanted = {
        "Overview": ".amb-timeline", "Rubric items": "th >> text=plan_exists", "Cases": "text=Cases 1 to 3 of 3",
        "Errors": "text=because", "Plan": ".amb-plan", "Trace": ".amb-event", "Provenance": "text=Limits in force",
    }  # fmt: skip
    for section in SECTIONS:
        choose(page, section, wanted[section])
        page.screenshot(path=pictures / f"run-{section.split()[0].lower()}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), section
    page.wait_for_function("location.search.includes('section=Provenance')")
    again = opened(new_page(width=390, color_scheme="dark"), page.url)
    again.locator(f"{BODY} >> text=Limits in force").wait_for()
    assert again.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    again.screenshot(path=pictures / "run-phone-dark.png", full_page=True)


def test_from_a_run_to_its_case_and_to_its_trace(drawn_space, drawn_results, page):
    opened(page, drawn_space.url("run", run=run_id(drawn_results)))
    choose(page, "Cases", "tbody tr")
    page.locator(f"{BODY} tbody th a").first.click()
    page.locator("#compare-body figure").first.wait_for()
    assert "case=" in page.url
    page.locator("#compare-body").get_by_role("link", name="stratus lite r00").click()
    page.locator(f"{BODY} tbody tr").first.wait_for()
    choose(page, "Rubric items", "tbody tr")
    page.locator(f"{BODY} tbody a").first.click()
    chosen = page.locator(f"{BODY} .amb-chosen")
    chosen.wait_for()
    assert "#1" in chosen.inner_text()


def test_the_trace_is_searched_filtered_and_copied(drawn_space, drawn_results, new_page):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    opened(page, drawn_space.url("run", run=run_id(drawn_results), section="Trace"), ".amb-event")
    page.get_by_label("agent", exact=True).check()
    page.wait_for_function("!document.querySelector('#run-body .amb-event:not([data-role=agent])')")
    page.get_by_label("Search the trace").fill("PILOT case")
    page.keyboard.press("Enter")
    page.locator(f"{BODY} mark").first.wait_for()
    page.wait_for_function(
        "location.search.includes('words=PILOT') && location.search.includes('roles=agent')"
    )
    page.locator(f"{BODY} .amb-copy").first.click()
    page.get_by_text("Copied").wait_for()
    assert "pilot case" in page.evaluate("navigator.clipboard.readText()")


def test_sections_are_reached_by_keyboard(drawn_space, drawn_results, page):
    opened(page, drawn_space.url("run", run=run_id(drawn_results)))
    page.locator("#run-sections input").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.locator(f"{BODY} >> text=Items of S1").wait_for()


# --- runs that lack parts, and hostile ones ---


@pytest.fixture
def odd_space(tmp_path, serve):
    """Runs with a trace of ten megabytes, hostile text in every part, no judge, and nothing but a record."""
    task = load_task("vqa-rad-task")
    folders = {}
    for agent in ("long", "evil", "unjudged", "alone", "torn"):
        folders[agent] = tmp_path / "runs" / task.id / "lite" / agent / "r00"
        write_run(folders[agent], make_run(task, Tier.LITE, agent, 0), files=agent != "alone")
    _lengthen(folders["long"] / "trace.jsonl")
    _make_evil(folders["evil"])
    record = load_record(folders["unjudged"] / "record.json")
    empty = dict.fromkeys(("judge", "s1", "s2", "s3", "agentic", "overall", "judgement_sha256"))
    text = dump_record(record.model_copy(update={**empty, "items": (), "stages": ()}))
    (folders["unjudged"] / "record.json").write_text(text)
    (folders["unjudged"] / "judgement.json").unlink()
    (folders["torn"] / "report.json").write_text('{"schema_version": 99}')
    (folders["torn"] / "judgement.json").write_bytes(b"\xff")
    shutil.rmtree(folders["torn"] / "workspace")
    ids = {agent: load_record(folder / "record.json").run_id for agent, folder in folders.items()}
    return serve("--results", tmp_path / "runs"), ids


def _lengthen(path):
    event = Exec(
        turn=1, call="c", language="python", exit_code=0, seconds=1.0, output="x" * 4000, output_bytes=4000
    )
    with path.open("ab") as file:
        for seq in range(100, 2700):
            body = {"type": "exec", "seq": seq, "t": 1.0, "prev": ""} | event.model_copy(
                update={"seq": seq, "output": f"needle {seq} " + "x" * 4000}
            ).model_dump(mode="json")
            file.write(json.dumps(body).encode() + b"\n")
    assert path.stat().st_size > 10_000_000


def _make_evil(folder):
    record = load_record(folder / "record.json")
    record = record.model_copy(update={"model": EVIL, "end_detail": EVIL, "flags": (EVIL,), "gpus": (EVIL,),
                                       "sandbox": EVIL, "error_codes": (EVIL,), "hardware_class": EVIL})  # fmt: skip
    (folder / "record.json").write_text(dump_record(record))
    judgement = json.loads((folder / "judgement.json").read_text())
    for item in judgement["items"]:
        item["reason"] = EVIL
    (folder / "judgement.json").write_text(json.dumps(judgement))
    report = json.loads((folder / "report.json").read_text())
    report["cases"][0] |= {"flags": [EVIL], "error": {"code": EVIL, "message": EVIL}, "case_id": EVIL}
    (folder / "report.json").write_text(json.dumps(report))
    (folder / "workspace" / "plan.md").write_text(f"# {EVIL}\n[x](javascript:alert(1))\n")
    (folder / "workspace" / "plan.png").write_bytes(EVIL.encode())
    events = [
        RunStarted(at="now", task="t", tier="lite", release="phantom", agent=EVIL, brief_sha256="0", cases=1),
        Reply(seq=1, turn=1, text=EVIL),
    ]
    lines = [json.dumps({"type": event.type} | event.model_dump(mode="json")) for event in events]
    (folder / "trace.jsonl").write_text("\n".join(lines) + "\n")


def test_odd_runs_say_what_is_wrong_and_stay_up(odd_space, page, watched):
    space, ids = odd_space
    watched.allowed = (
        "AbortError",
        "Connection errored out",
    )  # pages are left while they still wait for the server
    for section in SECTIONS:
        opened(page, space.url("run", run=ids["evil"], section=section))
        page.locator("#run-head .amb-tiles").wait_for()
        assert not page.evaluate("window.hacked"), section
        assert page.locator("#run-head img, #run-body img[src=x], #run-body script").count() == 0, section
    opened(page, space.url("run", run=ids["long"], section="Trace", words="needle 2699"), ".amb-event")
    assert page.locator(f"{BODY} .amb-event").count() == 1
    opened(page, space.url("run", run=ids["long"], section="Trace", event="1500"), ".amb-chosen")
    assert page.evaluate("document.body.innerHTML.length") < 1_500_000
    opened(page, space.url("run", run=ids["unjudged"], section="Rubric items"), ".amb-note")
    assert "missing, not zero" in page.locator(BODY).inner_text()
    assert page.locator("#run-head .amb-tile.amb-main").inner_text().split() == ["OVERALL", "–"]
    opened(page, space.url("run", run=ids["alone"], section="Trace"), ".amb-note")
    assert "holds no trace" in page.locator(BODY).inner_text()
    for section, words in (("Cases", "report.json is damaged"), ("Rubric items", "judgement.json is damaged"),
                           ("Plan", "holds no plan.md")):  # fmt: skip
        opened(page, space.url("run", run=ids["torn"], section=section), ".amb-note")
        assert words in page.locator(BODY).inner_text()
    page.goto(space.url("run", run="no-such-run"))
    page.get_by_text("There is no run no-such-run").wait_for()
