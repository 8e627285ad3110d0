"""The log of requests: whole lines, bounded, and summed up for the record."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.egress.ledger import LABELS_ASKED_FOR, LONGEST, Download, Ledger, downloads_of, read_ledger
from runner.errors import UsageProblem


def entry(**changes) -> Download:
    fields = {
        "t": 1.0,
        "method": "GET",
        "host": "pypi.org",
        "port": 443,
        "verdict": "allowed",
        "rule": "packages",
    }
    return Download.model_validate({**fields, **changes})


def test_there_is_no_file_without_a_request(tmp_path):
    ledger = Ledger(tmp_path / "log")
    ledger.close()
    assert not (tmp_path / "log").exists()
    assert list(read_ledger(tmp_path / "log")) == []
    assert downloads_of(tmp_path / "log").requests == 0


def test_requests_are_summed_and_a_search_for_labels_is_flagged(tmp_path):
    path = tmp_path / "log"
    ledger = Ledger(path)
    ledger.write(entry(received=100, sent=5))
    ledger.write(entry(received=50))
    ledger.write(entry(verdict="failed", received=7))  # broke off; what came is here
    ledger.write(entry(verdict="refused", rule="unlisted"))
    ledger.close()
    found = downloads_of(path)
    assert (found.requests, found.received, found.flags) == (2, 157, ())
    path.unlink()
    ledger = Ledger(path)
    ledger.write(entry(verdict="refused", rule="labels"))
    ledger.close()
    assert downloads_of(path).flags == (LABELS_ASKED_FOR,)


def test_beyond_the_bound_requests_are_counted_only(tmp_path):
    path = tmp_path / "log"
    ledger = Ledger(path, most=3)
    for _ in range(10):
        ledger.write(entry(received=10))
    ledger.close()
    entries = list(read_ledger(path))
    assert len(entries) == 4
    assert entries[-1].more == 7
    assert (downloads_of(path).requests, downloads_of(path).received) == (10, 100)


def test_a_crowd_of_refusals_hides_neither_what_came_in_nor_a_search_for_labels(tmp_path):
    path = tmp_path / "log"
    ledger = Ledger(path, most=2)
    for _ in range(5):
        ledger.write(entry(verdict="refused", rule="unlisted"))
    ledger.write(entry(verdict="refused", rule="labels"))
    for size in (30, 12):
        ledger.write(entry(received=size))
    ledger.close()
    found = downloads_of(path)
    assert (found.requests, found.received, found.flags) == (2, 42, (LABELS_ASKED_FOR,))
    assert [(one.rule, one.more) for one in read_ledger(path)][2:] == [
        ("unlisted", 3), ("labels", 1), ("packages", 2)
    ]  # fmt: skip


def test_long_and_odd_texts_are_clipped_and_stay_one_line(tmp_path):
    path = tmp_path / "log"
    ledger = Ledger(path)
    ledger.write(entry(path="/" + "x" * 10_000, host="a\nb\u2028c\x1b[31m"))
    ledger.close()
    assert path.read_bytes().count(b"\n") == 1
    (read,) = read_ledger(path)
    assert len(read.path) == LONGEST


def test_threads_share_it_without_mixing_lines(tmp_path):
    path = tmp_path / "log"
    ledger = Ledger(path)

    def write():
        for _ in range(50):
            ledger.write(entry(path="/" + "x" * 300))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    ledger.write(entry())  # too late: nothing is written after the run
    assert len(list(read_ledger(path))) == 400


def test_a_log_that_is_there_already_is_not_written_to(tmp_path):
    (tmp_path / "log").write_text("")
    with pytest.raises(FileExistsError):
        Ledger(tmp_path / "log").write(entry())


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    path = tmp_path / "log"
    ledger = Ledger(path)
    ledger.write(entry())
    real = os.write

    def half(descriptor, data):
        real(descriptor, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        ledger.write(entry())
    monkeypatch.setattr(os, "write", real)
    ledger.write(entry())
    ledger.close()
    assert len(list(read_ledger(path))) == 2


def test_a_cut_last_line_is_left_out_and_a_damaged_one_is_named(tmp_path):
    path = tmp_path / "log"
    line = entry().model_dump_json() + "\n"
    path.write_text(line + line[:20])
    assert len(list(read_ledger(path))) == 1
    path.write_text(line + "{}\n" + line)
    with pytest.raises(UsageProblem, match=r"log:2 is damaged"):
        downloads_of(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "log"
    path.write_bytes(data)
    with contextlib.suppress(UsageProblem):
        assert downloads_of(path).requests >= 0
