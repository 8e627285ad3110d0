"""What somebody wants to hand in is read under caps and held against the schema and itself."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.made_runs import make_run, write_run
from hf_datasets.records import RunRecord, dump_record
from space.intake.findings import check_upload
from space.intake.upload import MAX_RECORD, UploadRefused, read_upload
from space.pages.submit import check_file
from tasks.names import Tier
from tasks.registry import load_task, task_digest

TASK = load_task("vqa-rad-task")
EVIL = "<script>window.hacked=1</script>"


@pytest.fixture
def run(tmp_path) -> Path:
    """A run folder as the runner leaves it."""
    folder = tmp_path / "runs" / TASK.id / "lite" / "cirrus" / "r00"
    write_run(folder, make_run(TASK, Tier.LITE, "cirrus", 0))
    edit(folder, task_sha256=task_digest(TASK.id))
    return folder


def record_in(folder: Path) -> RunRecord:
    return RunRecord.model_validate_json((folder / "record.json").read_bytes())


def edit(folder: Path, **fields) -> None:
    (folder / "record.json").write_text(dump_record(record_in(folder).model_copy(update=fields)))


def names(path: Path, known=frozenset()) -> dict[str, str]:
    """Findings of the only run: name and weight."""
    (checked,) = check_upload(read_upload(path), known)
    return {finding.name: finding.weight for finding in checked.findings}


def packed(folder: Path, target: Path) -> Path:
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder))
    else:
        with tarfile.open(target, "w:gz" if target.suffix == ".gz" else "w") as archive:
            archive.add(folder, ".")
    return target


@pytest.mark.parametrize("name", ["runs.zip", "runs.tar", "runs.tar.gz"])
def test_an_archive_of_a_good_run_has_no_error(run, tmp_path, name) -> None:
    (checked,) = check_upload(read_upload(packed(tmp_path / "runs", tmp_path / name)))
    assert checked.is_good, checked.findings
    assert checked.record == record_in(run)
    assert {finding.name for finding in checked.findings} <= {"phantom", "absent", "flags"}


def test_a_record_alone_is_checked(run) -> None:
    assert names(run / "record.json") == {"phantom": "note"}


def test_every_field_that_breaks_the_schema_is_named(run) -> None:
    content = json.loads((run / "record.json").read_text())
    content |= {"overall": 7, "agent": EVIL, "extra": 1}
    del content["turns"]
    (run / "record.json").write_text(json.dumps(content))
    (checked,) = check_upload(read_upload(run / "record.json"))
    said = " ".join(finding.text for finding in checked.findings)
    assert checked.record is None
    assert not checked.is_good
    for field in ("overall", "agent", "extra", "turns"):
        assert f"{field}:" in said


def test_a_newer_schema_is_called_so(run) -> None:
    content = json.loads((run / "record.json").read_text()) | {"schema_version": 2}
    (run / "record.json").write_text(json.dumps(content))
    assert names(run / "record.json") == {"schema_version": "error"}


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"overall": 0.999999}, "overall"),
        ({"agentic": 0.111}, "agentic"),
        ({"n_scored": 99}, "counts"),
        ({"completion": 0.123}, "completion"),
        ({"task": "no-such-task"}, "unknown_task"),
        ({"track": "report"}, "track"),
        ({"metric": "other"}, "metric"),
    ],
)
def test_a_record_that_contradicts_itself_is_an_error(run, fields, finding) -> None:
    content = json.loads((run / "record.json").read_text()) | fields
    (run / "record.json").write_text(json.dumps(content))
    assert names(run / "record.json")[finding] == "error"


def test_a_run_that_ended_before_it_started_is_an_error(run) -> None:
    edit(run, finished_at=record_in(run).started_at - timedelta(seconds=1))
    assert names(run / "record.json")["times"] == "error"


def test_files_are_held_against_the_digests_of_the_record(run, tmp_path) -> None:
    with (run / "trace.jsonl").open("ab") as file:
        file.write(b"{}\n")
    found = names(packed(tmp_path / "runs", tmp_path / "r.zip"))
    assert found["digest"] == "error"


def test_what_is_not_wrong_but_to_be_known(run) -> None:
    record = record_in(run)
    limits = record.limits.model_copy(update={"turns": 7})
    edit(run, limits=limits, task_sha256="0" * 64, judge=None)
    content = json.loads((run / "record.json").read_text()) | {
        "end_reason": "provider_error",
        "release": "full",
    }
    (run / "record.json").write_text(json.dumps(content))
    found = names(run / "record.json", frozenset({record.run_id}))
    for name in ("limits", "task_version", "not_counted", "known"):
        assert found[name] == "warning"
    assert found["unjudged"] == "note"


def test_a_run_that_stands_twice_is_an_error(run, tmp_path) -> None:
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for place in ("a", "b"):
            archive.write(run / "record.json", f"{place}/record.json")
    first, second = check_upload(read_upload(path))
    assert first.is_good
    assert "twice" in {finding.name for finding in second.findings}


# --- hostile archives ---


def tar_of(path: Path, *members: tuple[str, bytes, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return path


def test_nothing_is_followed_and_nothing_is_written(run, tmp_path) -> None:
    record = (run / "record.json").read_bytes()
    path = tar_of(
        tmp_path / "evil.tar",
        ("../../record.json", tarfile.REGTYPE, record),
        ("/abs/record.json", tarfile.REGTYPE, record),
        ("link/record.json", tarfile.SYMTYPE, b""),
        ("fifo/record.json", tarfile.FIFOTYPE, b""),
        ("good/record.json", tarfile.REGTYPE, record),
    )
    before = sorted(tmp_path.rglob("*"))
    upload = read_upload(path)
    assert [found.place for found in upload.runs] == ["good"]
    assert len(upload.passed_over) == 4
    assert sorted(tmp_path.rglob("*")) == before
    assert "4 members are no plain files" in check_file(path, frozenset())


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("space.intake.upload.MAX_UNPACKED", 1 << 20)
    for name in ("bomb.zip", "bomb.tar.gz"):
        path = tmp_path / name
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("r/trace.jsonl", bytes(8 << 20))
        else:
            with tarfile.open(path, "w:gz") as archive:
                info = tarfile.TarInfo("r/other.bin")
                info.size = 8 << 20
                archive.addfile(info, io.BytesIO(bytes(8 << 20)))
        with pytest.raises(UploadRefused, match="unpacks to more than"):
            read_upload(path)


def test_too_many_members_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("space.intake.upload.MAX_MEMBERS", 10)
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(11):
            archive.writestr(f"{number}.txt", b"")
    with pytest.raises(UploadRefused, match="members"):
        read_upload(path)


def test_a_record_without_end_is_too_large(tmp_path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"{" + b" " * (MAX_RECORD + 10) + b"}")
    assert names(path) == {"too_large": "error"}


@given(st.binary(max_size=400))
def test_any_bytes_are_answered(tmp_path_factory, content) -> None:
    path = tmp_path_factory.mktemp("any") / "file.bin"
    for head in (b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"{"):
        path.write_bytes(head + content)
        assert "amb-note" in check_file(path, frozenset()) or "cannot be sent" in check_file(
            path, frozenset()
        )


def test_hostile_text_in_a_record_stays_text(run) -> None:
    content = json.loads((run / "record.json").read_text()) | {"agent": EVIL, EVIL: 1}
    (run / "record.json").write_text(json.dumps(content))
    html = check_file(run / "record.json", frozenset())
    assert "<script" not in html
    assert "&lt;script" in html


def test_the_commands_exist() -> None:
    """What the page tells people to type is a command of this version."""
    from typer.testing import CliRunner

    from hf_datasets.cli import app as datasets
    from runner.cli import app as runner
    from space.pages.submit import STEPS

    apps = {"runner": runner, "hf_datasets": datasets}
    for _, _, command in STEPS:
        _, _, room, name, *rest = command.split()
        answer = CliRunner().invoke(apps[room], [name, "--help"])
        assert answer.exit_code == 0, command
        options = {word for word in rest if word.startswith("--")}
        assert all(option in answer.output for option in options), command


def test_a_header_of_a_gigabyte_is_refused_before_it_is_read(tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 200 << 20
    with gzip.open(tmp_path / "runs.tar.gz", "wb") as packed:
        packed.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(8 << 20))
    with pytest.raises(UploadRefused, match="between two files"):
        read_upload(tmp_path / "runs.tar.gz")
