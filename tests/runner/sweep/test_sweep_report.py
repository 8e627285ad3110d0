"""The report of a folder: the figures of its records, what is missing of them, and nothing from elsewhere."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from evaluator.trace import EndReason
from hf_datasets.records import dump_record, load_record
from runner.errors import UsageProblem
from runner.sweep.cli import app
from runner.sweep.folder import SweepFolder
from runner.sweep.form import SweepForm
from runner.sweep.lock import freeze, store
from runner.sweep.report.write import write_report
from tasks.names import Tier

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks/ is no installed package

from benchmarks.made_runs import write_results

TASKS = ("kidney-seg-task", "vqa-rad-task", "bccd-det-task")


class Page(HTMLParser):
    """Tables by caption, each a list of rows, and every address that the page would load."""

    VOID = ("meta", "link", "img", "br", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.addresses: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self._caption = ""
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "tr":
            self.tables[self._caption].append([])

    def handle_startendtag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if not self._open:
            return
        if self._open[-1] == "caption":
            self._caption = data
            self.tables[data] = []
        elif self._open[-1] in ("td", "th"):
            self.tables[self._caption][-1].append(data)


@pytest.fixture
def results(tmp_path) -> Path:
    """Two made-up agents on three tasks, two tiers, three repeats."""
    runs = tmp_path / "runs"
    write_results(runs, ("cirrus", "stratus"), TASKS, repeats=3)
    return runs


def page_of(root: Path) -> Page:
    return Page(write_report(root)[0].read_text())


def test_the_tables_hold_the_run_weighted_means(results):
    records = [load_record(path) for path in results.glob("*/*/*/r*/record.json")]
    rows = page_of(results).tables["OVERALL by track"]
    assert rows[0] == ["agent", "rank", "Seg", "VQA", "Det", "Overall", "95 %", "runs", "of those there"]
    for agent, *values in rows[1:]:
        mine = [record.overall for record in records if record.agent == agent]
        assert values[4] == f"{100 * sum(mine) / len(mine):.1f}"
        assert values[6] == "18/18"
        low, high = map(float, values[5].split(" to "))
        assert low < float(values[4]) < high
    assert [row[0] for row in rows[1:]] == ["cirrus", "stratus"]


def test_the_page_loads_nothing_and_its_figures_are_whole(results):
    written = write_report(results)
    page = Page(written[0].read_text())
    assert page.addresses == []
    assert "@import" not in page.text
    assert "url(" not in page.text
    figures = [path for path in written if path.suffix == ".svg"]
    assert len(figures) == 5
    for path in figures:
        root = ElementTree.fromstring(path.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert path.name in written[1].read_text()
    dots = ElementTree.fromstring(figures[0].read_text()).findall(".//{*}circle")
    assert len(dots) == 2


def test_the_same_records_give_the_same_bytes(results, tmp_path):
    first = [path.read_bytes() for path in write_report(results, tmp_path / "one")]
    assert first == [path.read_bytes() for path in write_report(results, tmp_path / "two")]


def test_markdown_tables_have_as_many_cells_in_every_row(results):
    text = write_report(results)[1].read_text()
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({line.count(" | ") for line in block.splitlines() if "---" not in line}) == 1


def test_what_is_missing_is_said_with_its_cause(results):
    cell = results / "vqa-rad-task" / "lite" / "cirrus"
    (cell / "r01" / "record.json").unlink()
    record = load_record(cell / "r02" / "record.json")
    nothing = dict.fromkeys(("overall", "agentic", "task_score", "s1", "s2", "s3", "s4", "s5", "completion"))
    gone = record.model_copy(update=nothing | {"end_reason": EndReason.INFRA_ERROR})
    (cell / "r02" / "record.json").unlink()
    (cell / "r02" / "unscored.json").write_text(dump_record(gone))
    page = page_of(results)
    [row] = page.tables["What is missing"][1:]
    assert row[:4] == ["cirrus", "vqa-rad-task", "lite", "2/3"]
    assert row[4] == "1 infra_error (the sandbox died under the run); 1 without a sealed record"
    assert row[5] == "r01 r02"
    by_agent = {row[0]: row for row in page.tables["OVERALL by track"]}
    assert by_agent["cirrus"][7] == "16/18"
    assert by_agent["stratus"][7] == "18/18"


def test_an_agent_without_a_run_in_a_cell_has_no_mean_and_is_not_left_out(results):
    for path in results.glob("vqa-rad-task/lite/stratus/r*/record.json"):
        path.unlink()
    row = {row[0]: row for row in page_of(results).tables["OVERALL by track"]}["stratus"]
    assert row[1] == row[3] == row[5] == "–"
    assert row[7] == "15/18"
    assert row[8] != "–"


def test_a_record_that_an_agent_wrote_into_its_workspace_is_none(results):
    forged = results / "vqa-rad-task" / "lite" / "stratus" / "r00" / "workspace" / "a" / "b" / "c" / "r00"
    forged.mkdir(parents=True)
    record = load_record(forged.parents[4] / "record.json")
    (forged / "record.json").write_text(
        dump_record(record.model_copy(update={"run_id": "x", "overall": 1.0}))
    )
    assert {row[0]: row[7] for row in page_of(results).tables["OVERALL by track"][1:]} == {
        "cirrus": "18/18", "stratus": "18/18"
    }  # fmt: skip


def test_runs_that_must_not_mix_have_sections_of_their_own(results):
    for number, path in enumerate(sorted(results.glob("vqa-rad-task/lite/stratus/r*/record.json"))):
        record = load_record(path)
        changes = [{"network": "open"}, {"limits": record.limits.model_copy(update={"turns": 7})}, {}][number]
        path.write_text(dump_record(record.model_copy(update=changes)))
    page = page_of(results)
    sections = page.text.split("phantom release")[1:]
    assert len(sections) == 3
    assert "34 of 36 planned runs are scored" in sections[0]
    assert sum("network open" in section and "1 of 1 planned" in section for section in sections) == 1
    assert sum("turns 7" in section.splitlines()[0] for section in sections) == 1
    assert "on another board" in sections[0]


def test_a_folder_in_which_no_run_counts_is_said_to_be_one(results):
    for path in results.glob("*/*/*/r*/record.json"):
        path.unlink()
    written = write_report(results)
    assert "No run here has a record that counts" in Page(written[0].read_text()).text
    assert "No run here has a record that counts" in written[1].read_text()


def test_a_damaged_record_is_named_and_hides_nothing(results):
    (results / "vqa-rad-task" / "lite" / "stratus" / "r00" / "record.json").write_text('{"overall": <b>1</b>')
    page = page_of(results)
    assert "stratus/r00/record.json" in page.text
    assert page.tables["OVERALL by track"][1][7] == "18/18"


def test_the_command_prints_what_it_wrote(results, tmp_path):
    answer = CliRunner().invoke(app, ["report", str(results), "--out", str(tmp_path / "out"), "--json"])
    assert answer.exit_code == 0
    written = [Path(name) for name in json.loads(answer.stdout)]
    assert [path.name for path in written[:2]] == ["report.html", "report.md"]
    assert all(path.is_file() for path in written)


@pytest.mark.bubblewrap
def test_a_locked_sweep_is_measured_against_its_lock(tmp_path, data, usable):
    usable("bubblewrap")
    form = SweepForm(name="mine", agents=("noop",), tasks=("vqa-rad-task",), repeats=3, sandbox="bubblewrap")
    folder = SweepFolder(tmp_path / "mine")
    store(folder, freeze(form, data))
    page = page_of(folder.root)
    assert "0 of 6 planned runs are scored" in page.text
    assert page.tables["OVERALL by track"][1] == ["noop", *"––––", "0/6", "–"]
    assert [row[4] for row in page.tables["What is missing"][1:]] == ["3 not started"] * 2

    write_results(folder.runs, ("noop",), ("vqa-rad-task",), (Tier.LITE,), repeats=4)
    page = page_of(folder.root)
    assert "3 of 6 planned runs are scored" in page.text
    assert "vqa-rad-task lite noop r03" in page.text.split("Not planned")[1]
    assert [row[2:4] for row in page.tables["What is missing"][1:]] == [["standard", "3/3"]]


@pytest.mark.parametrize("made", [False, True])
def test_a_folder_without_runs_is_refused_in_one_line(tmp_path, made):
    place = tmp_path / "nothing"
    if made:
        place.mkdir()
    with pytest.raises(UsageProblem, match=r"no run in it|not a folder of runs") as caught:
        write_report(place)
    assert "\n" not in str(caught.value)
