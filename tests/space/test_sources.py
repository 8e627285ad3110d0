"""Where results come from, and what happens when it is not what was hoped for."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from hf_datasets.records import dump_record
from space.refresh import Refresher
from space.shell import status
from space.source import DemoSource, FolderSource, PulledSource, SourceError, source_of


def test_bad_records_are_named_and_hide_nothing(results, record):
    folder = results(record(), record(repeat=1), record(repeat=2), record(repeat=3))
    newer = json.loads(dump_record(record())) | {"schema_version": 2}
    (folder / "run-00000" / "record.json").write_text(json.dumps(newer))
    (folder / "run-00001" / "record.json").write_text("{")
    nan = dump_record(record(repeat=2)).replace('"overall": 0.5', '"overall": NaN')
    (folder / "run-00002" / "record.json").write_text(nan)
    data = FolderSource(folder).read()
    assert list(data.runs["repeat"]) == [3]
    assert [any(f"run-0000{n}" in line for line in data.problems) for n in range(4)] == [
        True,
        True,
        True,
        False,
    ]
    assert any("schema version 2" in line for line in data.problems)


def test_a_copied_run_counts_once_and_is_named(results, record):
    folder = results(record())
    shutil.copytree(folder / "run-00000", folder / "run-00000 copy")
    data = FolderSource(folder).read()
    assert len(data.runs) == 1
    assert len(data.problems) == 1
    assert "run-00000 copy" in data.problems[0]


def test_an_empty_folder_is_a_board_with_nothing_on_it(tmp_path):
    data = FolderSource(tmp_path).read().prepare()
    assert len(data.runs) == 0
    assert not data.boards
    assert not data.problems


@pytest.mark.parametrize("name", ["no/such/folder", "no-such-folder", "/no/such"])
def test_what_is_no_source_is_said_in_one_line(name):
    with pytest.raises(SourceError, match="expected a folder of runs, or OWNER/NAME") as error:
        source_of(name)
    assert "\n" not in str(error.value)


def test_a_run_is_opened_with_its_files_and_nothing_beside_them(results, record, tmp_path):
    folder = results(record())
    run_folder = folder / "run-00000"
    (run_folder / "trace.jsonl").write_text("")
    (tmp_path / "secret").write_text("x")
    (run_folder / "report.json").symlink_to(tmp_path / "secret")
    run = FolderSource(folder).read().run(record().run_id)
    assert run.record == record()
    assert run.trace == run_folder / "trace.jsonl"
    assert run.file("report.json") is None
    assert run.file("../../secret") is None
    assert dict(run.previews) == {}
    assert FolderSource(folder).read().run("no-such-run") is None


def test_the_last_good_results_stay_when_the_source_breaks_and_come_anew_when_it_is_back(results, record):
    folder = results(record())
    source = Refresher(FolderSource(folder), seconds=3600)
    try:
        good = source()
        shutil.move(folder, folder.with_name("gone"))
        broken = source.refresh()
        assert len(broken.runs) == 1
        assert broken.loaded_at == good.loaded_at
        assert str(folder) in broken.failure
        assert "cannot be read now" in status(broken)
        shutil.move(folder.with_name("gone"), folder)
        results_again = folder / "run-00009"
        results_again.mkdir()
        (results_again / "record.json").write_text(dump_record(record(repeat=9)))
        back = source.refresh()
        assert len(back.runs) == 2
        assert back.failure is None
    finally:
        source.close()


def test_a_source_that_fails_in_a_new_way_does_not_end_the_reading(results, record):
    class Odd(FolderSource):
        broken = False

        def read(self):
            if self.broken:
                raise ZeroDivisionError("odd")
            return super().read()

    odd = Odd(results(record()))
    source = Refresher(odd, seconds=3600)
    odd.broken = True
    assert "odd" in source.refresh().failure
    odd.broken = False
    assert source.refresh().failure is None
    source.close()


def test_the_age_is_shown(results, record):
    data = FolderSource(results(record())).read()
    assert "3 min ago" in status(data, data.loaded_at + timedelta(minutes=3))
    assert data.loaded_at <= datetime.now(UTC)


def test_the_demonstration_is_real_runs_on_phantoms_one_task_a_track(tmp_path):
    data = DemoSource().read()
    assert data.is_demo
    assert not data.problems
    assert set(data.runs["release"]) == {"phantom"}
    assert set(data.runs["agent"]) == {"baseline"}
    assert data.runs["track"].nunique() == 7
    assert data.runs["overall"].notna().all()
    for run_id in data.runs["run_id"]:
        run = data.run(run_id)
        assert run.trace
        assert run.plan
        assert run.file("report.json")
        assert run.file("judgement.json")


def test_nothing_at_hand_is_the_demonstration_and_a_runs_folder_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(source_of(None), DemoSource)
    run = tmp_path / "runs" / "vqa-rad-task" / "lite" / "noop" / "r00"
    run.mkdir(parents=True)
    (run / "cell.json").touch()
    assert isinstance(source_of(None), DemoSource)  # begun is not finished
    (run / "record.json").write_text("{}")
    assert source_of(None).read().source == "runs"
    (tmp_path / "runs" / "data" / "runs").mkdir(parents=True)
    assert isinstance(source_of("runs"), PulledSource)


@pytest.mark.filterwarnings("error")
def test_a_folder_without_runs_is_read_without_a_warning(tmp_path):
    assert FolderSource(tmp_path).read().runs.empty
