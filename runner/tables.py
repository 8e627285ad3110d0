"""Text on a terminal: tables that fit, or else blocks; missing values as a dash; no word broken."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 240
"""Without a terminal nobody wraps for us: a wide page keeps one row a line for grep and for logs."""

_LONG = 100_000
"""From here on an integer is read in groups of three."""


def print_table(rows: list[dict[str, Any]]) -> None:
    """The rows as a table of one line each; on a terminal too narrow for that, a block of lines for each row."""
    from rich.console import Console

    if not rows:
        print("nothing to list")
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)
    table = _table(rows)
    needed = console.measure(table, options=console.options.update(width=10 * _WIDE)).maximum
    if console.is_terminal and needed > console.width:
        print("\n".join(_block(row, console.width) for row in rows))
    else:
        console.print(table, markup=False)


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(plain(value) for value in row.values()))
    return table


def _block(row: dict[str, Any], width: int) -> str:
    """The first value as a heading, then every other one that is there, with its name."""
    heading, *others = ((name, plain(value)) for name, value in row.items())
    pairs = [f"{name} {value}" for name, value in others if value != "-"]
    # A short pair is never parted; a long one may break between its words.
    pairs = [pair if len(pair) > width // 2 else pair.replace(" ", "\xa0") for pair in pairs]
    lines = textwrap.wrap("   ".join(pairs), width - 2, break_on_hyphens=False)
    return "\n".join([heading[1], *(f"  {line}".replace("\xa0", " ") for line in lines)])


def fitted(text: str) -> str:
    """Text for standard output: on a terminal, long lines are broken between words and go on indented."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_fitted(line, width) for line in text.split("\n"))


def _fitted(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def plain(value: Any) -> str:
    """One cell as text; control characters of foreign text are made visible, so that no name can move the cursor."""
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, int) and abs(value) >= _LONG:
        return f"{value:,}"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(value))
