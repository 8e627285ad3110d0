import os
import socket
import time

import pytest

import runner.workspace
from runner.workspace import WorkspaceWatch

CASES = ["c1", "c2", "c3"]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "outputs").mkdir()
    return tmp_path


def put(root, path, content=b"x", at=None):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    if at is not None:
        os.utime(target, (at, at))
    return target


def watch(root, **more):
    return WorkspaceWatch(root, CASES, ["a.nii.gz", "b.nii.gz"], **more)


def changes(event):
    return {change.path: change.change for change in event.changes}


def test_created_changed_deleted(root):
    put(root, "keep.txt")
    put(root, "old.txt")
    put(root, "gone.txt")
    seen = watch(root)
    assert seen.look(1, "x").changes == ()
    put(root, "old.txt", b"longer")
    put(root, "deep/er/new.txt", b"1234")
    (root / "gone.txt").unlink()
    event = seen.look(1, "y")
    assert changes(event) == {"old.txt": "changed", "deep/er/new.txt": "created", "gone.txt": "deleted"}
    assert {change.path: change.size for change in event.changes}["deep/er/new.txt"] == 4
    assert seen.look(1, "z").changes == ()


def test_same_size_rewrite_is_a_change(root):
    file = put(root, "x", b"aaaa", at=1000)
    seen = watch(root)
    file.write_bytes(b"bbbb")
    assert changes(seen.look(1, "y")) == {"x": "changed"}


def test_cases_complete_in_the_order_of_their_files(root):
    seen = watch(root)
    put(root, "outputs/c1/a.nii.gz", at=300)
    put(root, "outputs/c1/b.nii.gz", at=100)
    put(root, "outputs/c2/a.nii.gz", at=200)
    put(root, "outputs/c2/b.nii.gz", at=250)
    put(root, "outputs/c3/a.nii.gz", at=50)
    put(root, "outputs/other/a.nii.gz", at=50)
    event = seen.look(1, "x")
    assert event.new_cases == ("c2", "c1")
    assert (event.new_cases_total, event.complete_cases) == (2, 2)
    (root / "outputs/c1/a.nii.gz").unlink()
    put(root, "outputs/c3/b.nii.gz")
    event = seen.look(1, "y")
    assert event.new_cases == ("c3",)
    assert event.complete_cases == 2


def test_only_regular_files_complete_a_case(root):
    seen = watch(root)
    put(root, "outputs/c1/a.nii.gz")
    (root / "outputs/c1/b.nii.gz").symlink_to(put(root, "elsewhere"))
    put(root, "outputs/c2/a.nii.gz")
    os.mkfifo(root / "outputs/c2/b.nii.gz")
    (root / "outputs/c3").symlink_to(root / "outputs/c1")
    assert seen.look(1, "x").complete_cases == 0


def test_reading_an_output_is_seen_once(root):
    seen = watch(root)
    files = [put(root, f"outputs/c1/{name}.nii.gz") for name in "ab"]
    assert seen.look(1, "write").read_cases == ()
    time.sleep(0.02)
    files[0].read_bytes()
    if files[0].stat().st_atime_ns <= files[0].stat().st_mtime_ns:
        pytest.skip("this mount does not keep access times")
    assert seen.look(2, "read").read_cases == ("c1",)
    time.sleep(0.02)
    files[1].read_bytes()
    assert seen.look(3, "again").read_cases == ()


def test_an_old_modification_time_is_not_a_reading(root):
    seen = watch(root)
    file = put(root, "outputs/c1/a.nii.gz")
    os.utime(file, (2_000_000, 1_000_000))
    assert seen.look(1, "copy").read_cases == ()


def test_looking_reads_nothing(root):
    file = put(root, "outputs/c1/a.nii.gz")
    before = file.stat().st_atime_ns
    time.sleep(0.02)
    seen = watch(root)
    seen.look(1, "x")
    assert file.stat().st_atime_ns == before


def test_links_are_not_followed(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    put(outside, "secret.txt")
    seen = watch(root)
    (root / "link").symlink_to(outside, target_is_directory=True)
    (root / "loop").symlink_to(root, target_is_directory=True)
    assert changes(seen.look(1, "x")) == {"link": "created", "loop": "created"}


def test_a_folder_that_becomes_a_link_under_our_eyes(root, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("outside")
    put(outside, "secret.txt")
    (root / "trap").mkdir()
    seen = watch(root)
    opened = runner.workspace._opened

    def swap_first(name, parent=None):
        if name == "trap":
            (root / "trap").rmdir()
            (root / "trap").symlink_to(outside)
        return opened(name, parent)

    monkeypatch.setattr(runner.workspace, "_opened", swap_first)
    assert seen.look(1, "x").changes == ()


def test_the_outputs_folder_may_be_a_link_or_missing(root):
    (root / "outputs").rmdir()
    seen = watch(root)
    assert seen.look(1, "x").complete_cases == 0
    put(root, "real/c1/a.nii.gz")
    put(root, "real/c1/b.nii.gz")
    (root / "outputs").symlink_to("real")
    assert seen.look(2, "y").complete_cases == 0


def test_home_is_not_walked(root):
    seen = watch(root)
    put(root, "home/.cache/pip/x")
    put(root, "sub/home/y")
    assert changes(seen.look(1, "x")) == {"sub/home/y": "created"}


def test_a_flood_is_bounded_and_outputs_come_first(root):
    seen = watch(root, max_entries=200)
    for number in range(500):
        put(root, f"aaa/{number}")
    put(root, "outputs/c1/a.nii.gz")
    put(root, "outputs/c1/b.nii.gz")
    event = seen.look(1, "x")
    assert event.complete_cases == 1
    assert len(event.changes) == 40
    assert event.more <= 200
    event = seen.look(2, "y")
    assert "deleted" not in changes(event).values()


def test_many_changes_and_cases_are_counted(root):
    cases = [f"k{number:03d}" for number in range(30)]
    seen = WorkspaceWatch(root, cases, ["a"])
    for case in cases:
        put(root, f"outputs/{case}/a")
    for number in range(30):
        put(root, f"w/{number}")
    event = seen.look(1, "x")
    assert (len(event.changes), event.more) == (40, 20)
    assert (len(event.new_cases), event.new_cases_total, event.complete_cases) == (20, 30, 30)


def test_odd_names_and_kinds(root, monkeypatch):
    monkeypatch.chdir(root)  # a socket's path must be short
    seen = watch(root)
    (root / os.fsdecode(b"bad\xff\n")).write_bytes(b"")
    put(root, "n" * 200 + "/" + "m" * 200)
    server = socket.socket(socket.AF_UNIX)
    server.bind("sock")
    server.close()
    event = seen.look(1, "x")
    assert len(event.changes) == 3
    assert any(change.path == "bad\ufffd\n" for change in event.changes)
    assert all(len(change.path) <= 240 for change in event.changes)


def test_folders_deeper_than_the_bound_are_left_alone(root):
    seen = watch(root)
    put(root, "/".join(["d"] * 40) + "/file")
    put(root, "near")
    assert changes(seen.look(1, "x")) == {"near": "created"}


def test_the_plan_and_weights_are_listed_before_everything_else(root):
    seen = watch(root)
    for number in range(60):
        put(root, f"a/{number:02d}")
    put(root, "net.ckpt", b"w" * (1 << 20))
    put(root, "plan.md")
    put(root, "plan.png")
    event = seen.look(1, "x")
    assert [change.path for change in event.changes[:3]] == ["plan.md", "plan.png", "net.ckpt"]
    assert event.more == 23


def test_weights_below_home_are_seen_and_nothing_else_there(root):
    seen = watch(root)
    put(root, "home/.cache/hub/models/net.safetensors", b"w" * (1 << 20))
    put(root, "home/.cache/hub/blobs/0123abcd", b"w" * (1 << 20))
    put(root, "home/.cache/hub/small.safetensors")
    put(root, "home/lib/large.so", b"w" * (1 << 20))
    assert set(changes(seen.look(1, "x"))) == {
        "home/.cache/hub/models/net.safetensors",
        "home/.cache/hub/blobs/0123abcd",
    }


def test_a_flood_below_home_hides_no_work(root, monkeypatch):
    monkeypatch.setattr(runner.workspace, "MAX_HOME_ENTRIES", 50)
    seen = watch(root)
    for number in range(100):
        put(root, f"home/{number}")
    put(root, "outputs/c1/a.nii.gz")
    put(root, "outputs/c1/b.nii.gz")
    assert seen.look(1, "x").complete_cases == 1


def test_reading_weights_is_seen_once(root):
    seen = watch(root)
    file = put(root, "home/models/net.pt", b"w" * (1 << 20))
    assert seen.look(1, "write").read_weights == ()
    time.sleep(0.02)
    file.read_bytes()
    if file.stat().st_atime_ns <= file.stat().st_mtime_ns:
        pytest.skip("this mount does not keep access times")
    assert seen.look(2, "read").read_weights == ("home/models/net.pt",)
    assert seen.look(3, "again").read_weights == ()
