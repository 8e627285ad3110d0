"""Tables on a terminal: aligned, never wider than they must be, missing values as a dash."""

from __future__ import annotations

from typing import Any


def print_table(rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if not rows:
        print("nothing to list")
        return
    # Without a terminal nobody wraps for us: a wide console keeps one row a line for grep and for logs.
    console = Console()
    if not console.is_terminal:
        console = Console(width=240)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(plain(value) for value in row.values()))
    console.print(table, markup=False)


def plain(value: Any) -> str:
    """One cell as text; control characters of foreign text are made visible, so that no name can move the cursor."""
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(value))
