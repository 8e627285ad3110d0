"""Tables and pages on narrow terminals, wide ones and none."""

from __future__ import annotations

import re
import sys

import pytest

from runner.tables import fitted, plain, print_table

ROW = {
    "task": "kidney-seg-task",
    "agent": "baseline",
    "OVERALL": 93.456,
    "USD": None,
    "license": "CC BY-NC-SA 4.0 on the Hub, while the record at Zenodo states CC BY 4.0",
    "folder": "runs/kidney-seg-task/lite/baseline/r00",
}


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Standard output passes for a terminal; its width comes from the test."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    return monkeypatch


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    terminal.setenv("COLUMNS", str(width))
    print_table([ROW, ROW])
    lines = printed(capsys)
    assert all(len(line) <= width for line in lines)
    text = " ".join(lines)
    assert all(str(ROW[name]) in text for name in ("task", "agent", "folder"))


def test_a_narrow_terminal_gets_blocks_with_names_beside_values(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.setenv("COLUMNS", "60")
    print_table([ROW])
    assert printed(capsys) == [
        "kidney-seg-task",
        "  agent baseline   OVERALL 93.5   license CC BY-NC-SA 4.0 on",
        "  the Hub, while the record at Zenodo states CC BY 4.0",
        "  folder runs/kidney-seg-task/lite/baseline/r00",
    ]


def test_without_a_terminal_every_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([ROW, ROW])
    head, rule, *rows = printed(capsys)
    assert head.split() == list(ROW)
    assert set(rule.strip()) == {"─"}
    assert len(rows) == 2
    assert all(" 93.5 " in row and row.rstrip().endswith("/r00") for row in rows)


def test_a_page_is_broken_between_words_on_a_terminal_only(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "30")
    page = "short\n\n   because the method is a classical one\n"
    assert fitted(page) == "short\n\n   because the method is a\n     classical one\n"
    terminal.setattr(sys.stdout, "isatty", lambda: False)
    assert fitted(page) == page


def test_long_integers_are_read_in_groups_of_three() -> None:
    assert [plain(value) for value in (99_999, 1_160_000_000, -250_000, True)] == [
        "99999",
        "1,160,000,000",
        "-250,000",
        "True",
    ]
