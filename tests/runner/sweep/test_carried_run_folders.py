"""Run folders on their way between machines: whole or refused, and no trick of a workspace goes along."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import socket
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.sweep import carry
from runner.sweep.carry import (
    NOT_CARRIED,
    Damaged,
    arriving,
    packed,
    put_beside,
    put_over,
    remove,
    require_sealed,
    unpack,
)  # fmt: skip


def tree_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def folder(tmp_path):
    """A run folder with an empty folder, an empty file and a file larger than a piece."""
    place = tmp_path / "sent" / "r00"
    (place / "workspace" / "empty").mkdir(parents=True)
    (place / "workspace" / "large").write_bytes(os.urandom(2_500_000))
    (place / "workspace" / "nothing").touch()
    (place / "workspace" / "ünïcode\nname").write_text("x")
    (place / "record.json").write_text("{}")
    return place


def test_what_is_unpacked_is_what_was_packed(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(carry, "PIECE", 1_000_000)
    pieces = list(packed(folder))
    assert len(pieces) == 4
    assert all(len(piece) <= 2 * carry.PIECE for piece in pieces)
    unpack(pieces, tmp_path / "arrived")
    assert tree_of(tmp_path / "arrived") == tree_of(folder)
    sent, arrived = folder / "record.json", tmp_path / "arrived" / "record.json"
    assert int(arrived.stat().st_mtime) == int(sent.stat().st_mtime)


names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=60
).filter(lambda name: name not in (".", "..") and len(name.encode()) < 200)


@given(st.dictionaries(names, st.binary(max_size=2000), max_size=6))
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_names_and_bytes_arrive(tmp_path_factory, files):
    place = tmp_path_factory.mktemp("any")
    (place / "sent").mkdir()
    for name, content in files.items():
        (place / "sent" / name).write_bytes(content)
    unpack(packed(place / "sent"), place / "arrived")
    assert tree_of(place / "arrived") == tree_of(place / "sent")


def test_only_regular_files_are_carried_each_once_and_the_rest_is_named(folder, tmp_path):
    workspace = folder / "workspace"
    (workspace / "link").symlink_to("/etc/passwd")
    (workspace / "linked folder").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(workspace / "socket"))
    (workspace / "again").hardlink_to(workspace / "large")
    with (workspace / "holes").open("wb") as file:
        file.truncate(1 << 40)
    arrived = tmp_path / "arrived"
    unpack(packed(folder), arrived)
    text = (arrived / NOT_CARRIED).read_text()
    assert len(text.splitlines()) == 6
    for name in ("link", "linked folder", "pipe", "socket", "holes", "large"):
        assert f"'workspace/{name}': " in text
        assert not (arrived / "workspace" / name).exists()
    assert (arrived / "workspace" / "again").stat().st_size == 2_500_000


@pytest.fixture
def endless(tmp_path):
    """A folder nested deeper than recursion goes and than paths are long."""
    place = tmp_path / "endless"
    place.mkdir()
    below = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deeper", dir_fd=below)
        above, below = below, os.open("deeper", os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(below)
    yield place
    remove(place)


def test_an_endless_tree_is_carried_in_part_and_can_be_removed(endless, tmp_path):
    unpack(packed(endless), tmp_path / "arrived")
    assert "too deep" in (tmp_path / "arrived" / NOT_CARRIED).read_text()
    assert len(list((tmp_path / "arrived").rglob("deeper"))) == carry.MAX_DEPTH + 1
    remove(endless)
    assert not endless.exists()


def test_more_entries_than_the_bound_stay_behind(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(carry, "MAX_ENTRIES", 3)
    unpack(packed(folder), tmp_path / "arrived")
    assert "what is in 'workspace': too many" in (tmp_path / "arrived" / NOT_CARRIED).read_text()
    assert (tmp_path / "arrived" / "record.json").exists()


def test_names_beyond_the_bound_are_counted(tmp_path):
    place = tmp_path / "sent"
    place.mkdir()
    for number in range(1005):
        (place / f"{number}").symlink_to("nowhere")
    unpack(packed(place), tmp_path / "arrived")
    lines = (tmp_path / "arrived" / NOT_CARRIED).read_text().splitlines()
    assert len(lines) == 1001
    assert lines[-1] == "and 5 more"


def test_a_stream_that_lacks_a_piece_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(carry, "PIECE", 1_000_000)
    pieces = list(packed(folder))
    for number, damaged in enumerate(
        [[], *(pieces[:end] for end in range(1, 4)), pieces[1:], pieces[:1] + pieces[2:]]
    ):
        with pytest.raises(Damaged, match="damaged"):
            unpack(damaged, tmp_path / f"arrived{number}")


@given(st.data())
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_anywhere_is_noticed(tmp_path_factory, folder, data):
    archive, digest = packed(folder)
    at = data.draw(st.one_of(st.integers(0, 3000), st.integers(0, len(archive) - 1)))
    changed = archive[:at] + bytes([archive[at] ^ data.draw(st.integers(1, 255))]) + archive[at + 1 :]
    with pytest.raises((Damaged, OSError, ValueError)):
        unpack([changed, digest], tmp_path_factory.mktemp("changed") / "arrived")


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_no_member_leaves_the_folder(tmp_path, name):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    sent = made.getvalue()
    place = tmp_path / "deep" / "arrived"
    with contextlib.suppress(Damaged):
        unpack([sent, hashlib.sha256(sent).digest()], place)
    assert [path for path in tmp_path.rglob("outside") if place not in path.parents] == []


def test_a_new_attempt_keeps_the_one_before_it(tmp_path):
    folder = tmp_path / "r00"
    folder.mkdir()
    (folder / "cell.json").write_text("first")
    with arriving(folder) as place:
        place.mkdir()
        (place / "cell.json").write_text("second")
        put_beside(place, folder)
    assert (folder / "cell.json").read_text() == "second"
    assert (tmp_path / "r00.attempt1" / "cell.json").read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r00", "r00.attempt1"]


def test_what_went_on_with_a_folder_is_brought_into_it(tmp_path):
    folder = tmp_path / "r00"
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / "kept").write_text("kept")
    (folder / "unscored.json").write_text("old")
    (folder / "report.json").write_text("old")
    with arriving(folder) as place:
        (place / "superseded").mkdir(parents=True)
        (place / "superseded" / "report-1.json").write_text("old")
        (place / "report.json").write_text("new")
        (place / "record.json").write_text("new")
        put_over(place, folder)
    assert tree_of(folder) == {
        "workspace": None, "workspace/kept": b"kept", "superseded": None, "superseded/report-1.json": b"old",
        "report.json": b"new", "record.json": b"new",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["r00"]


def test_an_arrival_that_fails_leaves_nothing(tmp_path):
    folder = tmp_path / "r00"
    with pytest.raises(Damaged), arriving(folder) as place:
        unpack([b"x" * 2000], place)
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_did_not_arrive_as_it_was_sealed_is_refused(tmp_path):
    with pytest.raises(Damaged, match="did not arrive"):
        require_sealed(tmp_path, "0" * 64)
